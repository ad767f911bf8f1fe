"""Defers the start of streaming queries.

The user gets a query that has yet to start (`deferred_query`). It is not planned or run here: its plan is made in
`planning.streaming`, and it runs in `deployment.streaming`.
"""
