"""Failures: what is restarted, when, and what is recorded."""
