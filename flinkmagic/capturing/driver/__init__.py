"""Asks the driver what a capture has to know; Java answers each question in one call."""
