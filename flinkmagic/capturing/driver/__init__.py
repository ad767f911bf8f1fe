"""Asks the driver what a capture has to know; Java answers each question in one call.

The Java classes of capturing are in `driver/java`. What the answers mean for pending writes is decided in `sql` and
`writes`. Physical plans are read in `planning.plan_reader`.
"""
