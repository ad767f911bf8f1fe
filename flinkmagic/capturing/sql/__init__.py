"""SQL statements, calls of the catalog and of the cache: what they read and change, and the writes among them."""
