"""Keeps what outlives a job manager: its jobs and their journals, and who leads.

The rows of a job that outlive it are stored in `reuse`.
"""
