"""Runs what a function of `foreachBatch` writes, as one graph for each batch."""
