"""Streaming queries that run, and what watches them."""
