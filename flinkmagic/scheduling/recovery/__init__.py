"""Keeps what outlives a job manager: its jobs and their journals, and who leads."""
