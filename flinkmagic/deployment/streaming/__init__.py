"""Runs streaming queries, and watches them.

Spark runs a query as a whole; here it is started, restarted and cancelled. Queries are planned in `planning.streaming`,
and the jobs of their batches are those of `session.batch_runs`.
"""
