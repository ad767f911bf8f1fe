"""Runs streaming queries, and watches them."""
