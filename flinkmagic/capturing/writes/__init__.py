"""Defers writes: what Spark makes of them, where they go, what is pending, and what that asks of later lines."""
