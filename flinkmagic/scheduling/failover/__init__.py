"""Handles failures: what is restarted, when, and what is recorded.

How a lost executor or a failed Spark stage becomes the failure of an execution is decided in `deployment.board`.
"""
