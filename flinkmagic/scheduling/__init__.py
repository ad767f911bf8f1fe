"""Ports Flink's job manager to Python: single-threaded, event-driven, deterministic under an injected clock.

The graphs that it schedules are made in `graph`. Nothing here knows Spark or runs a task: tasks run in `deployment`, or
on the virtual cluster of `simulation`, both behind gateways that are declared here.
"""
