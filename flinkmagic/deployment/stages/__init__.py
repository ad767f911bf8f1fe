"""Runs one stage of a job in Spark: its thread, properties, writes and observed metrics."""
