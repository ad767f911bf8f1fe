"""Actions of a session, carried out through the machine: `show()`, `count()`, `toPandas()` and the like."""
