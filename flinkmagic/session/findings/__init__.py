"""Tells why a job is slow: rules look at its tasks, its plan and what its operators have measured."""
