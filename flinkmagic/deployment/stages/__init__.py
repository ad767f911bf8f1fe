"""Runs one stage of a job in Spark: its thread, properties, writes and observed metrics.

When a stage runs is decided on the `board`; what runs is the handle that `planning` has made.
"""
