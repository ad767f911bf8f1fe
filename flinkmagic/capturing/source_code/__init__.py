"""Reads the user's source: where a call is, how it is written, and which handler waits for it to raise.

Nothing here knows Spark's plans: `planning.provenance` finds the operators of a call. The names that a cell reads and
binds are found in `session.staleness.cell_names`.
"""
