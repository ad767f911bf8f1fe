"""Plans streaming queries as Transformations.

The queries are deferred in `capturing.streams` and run in `deployment.streaming`. No stage handles are made here: Spark
runs a query as a whole.
"""
