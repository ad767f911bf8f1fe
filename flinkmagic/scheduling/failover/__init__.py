"""Failures: what is restarted for one, when, and what is remembered of it."""
