"""Runs one stage of a job in Spark: its thread, properties, writes and observed metrics.

When a stage is submitted is decided on the `board`, and what it runs is a handle of `planning.stage_handles`. What
Spark reports about its tasks is read in `watching`.
"""
