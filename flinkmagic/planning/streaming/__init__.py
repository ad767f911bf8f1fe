"""Plans streaming queries as Transformations.

Nothing is started here: Spark plans each batch anew, and `deployment.streaming` runs the queries.
"""
