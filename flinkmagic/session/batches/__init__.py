"""The batches of streams: what a function of `foreachBatch` writes is one graph for each batch."""
