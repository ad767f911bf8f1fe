"""Judges SQL statements, catalog and cache calls: what they read and change, and the writes among them."""
