"""Reads what applications have left in their event logs: jobs with graphs, findings and critical paths.

No Spark is needed here. The rules of findings are in `session.findings`, pictures are drawn in `display`, and jobs of
this process are in `session`.
"""
