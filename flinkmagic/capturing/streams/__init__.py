"""Defers the start of streaming queries.

They are planned in `planning.streaming`, and run in `deployment.streaming`.
"""
