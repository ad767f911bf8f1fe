"""Streaming queries as Transformations."""
