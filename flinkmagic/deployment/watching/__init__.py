"""Watches what Spark reports about tasks and executors: events, and the records made from them.

What an event means for a job is decided on its `board`.
"""
