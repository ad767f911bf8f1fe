"""Reads what applications have left in their event logs: jobs with graphs, findings and critical paths."""
