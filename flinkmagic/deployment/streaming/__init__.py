"""Runs streaming queries, and watches them.

A query is deployed, restarted and cancelled as a whole; jobs of mode BATCH run in `stages`, by the rules of `board`.
Queries are planned in `planning.streaming`; the functions of `foreachBatch` run in `session.batch_runs`.
"""
