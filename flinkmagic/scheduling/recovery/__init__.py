"""Keeps what outlives a job manager: its jobs and their journals, and who leads.

The lock of a leader is taken by `job_manager_runner`. Rows are not stored here, but in `reuse`, which also decides
which recorded writes need not run again.
"""
