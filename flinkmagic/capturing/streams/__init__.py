"""Defers the start of streaming queries."""
