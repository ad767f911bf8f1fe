"""Watches what Spark reports about tasks and executors: events, and the records made from them.

What an event means for a job's executions is not decided here, but on the `board`. The progress of streaming queries is
read in `streaming.query_progress`, and event logs are read in `history`.
"""
