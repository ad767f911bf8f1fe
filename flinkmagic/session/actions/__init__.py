"""Runs a session's actions (`show()`, `count()`, `toPandas()` and the like) under Flink's scheduler."""
