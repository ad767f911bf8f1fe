"""Asks the driver what a capture has to know; Java answers each question in one call.

The questions are about logical plans and SQL texts. Those about physical plans are in `planning`.
"""
