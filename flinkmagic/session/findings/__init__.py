"""Tells why a job is slow: rules look at its tasks, its plan and what its operators have measured.

The rules are in `rules`, the facts that they look at in `facts`. How findings are drawn is up to `display`.
"""
