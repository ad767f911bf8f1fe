"""Defers writes: what Spark makes of them, where they go, what is pending, and what that asks of later lines.

Deferred writes run as the sinks of a job (`session`), or on their own lines, if a later line needs them before the end
of the cell (`deferral`).
"""
