"""Tells why a job is slow: rules look at its tasks, its plan and what its operators have measured.

The rules are in `rules`, and what they know is in `facts`. Nothing is measured here (`deployment.watching`,
`planning.stage_metrics`), and nothing is drawn: `Finding` is a class of `display.findings`.
"""
