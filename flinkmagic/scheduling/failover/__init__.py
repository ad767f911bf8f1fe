"""Handles failures: what is restarted, when, and what is recorded.

The restart itself is carried out by `default_scheduler`. Failures of Spark's stages are explained in
`deployment.failures`; the texts of errors are in `errors.scheduling`.
"""
