"""Handles failures: what is restarted, when, and what is recorded."""
