"""Streaming queries whose start is deferred."""
