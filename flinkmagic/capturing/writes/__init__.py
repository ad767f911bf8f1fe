"""Defers writes: what Spark makes of them, where they go, what is pending, and what that asks of later lines.

PySpark's writers are hooked in `hooks`, and writes in SQL texts are found in `sql`. A deferred write is not planned or
run here, but in `planning` and `deployment.stages`.
"""
