"""Judges SQL statements, catalog and cache calls: what they read and change, and the writes among them.

Spark parses the statements (`driver.sql_reader`). How a write is deferred, and which pending writes a line needs, is
decided in `writes`, not here.
"""
