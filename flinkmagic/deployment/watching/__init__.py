"""Watches what Spark reports about tasks and executors: events, and the records made from them."""
