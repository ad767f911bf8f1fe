"""Judges SQL statements, catalog and cache calls: what they read and change, and the writes among them.

SQL texts are parsed in the driver (`capturing.driver`); the writes are deferred in `capturing.writes`.
"""
