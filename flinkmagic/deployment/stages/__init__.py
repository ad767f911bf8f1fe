"""How one stage of a job runs at Spark: its thread, properties, writes and observed metrics."""
