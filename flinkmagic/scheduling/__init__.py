"""Ports Flink's job manager to Python: single-threaded, event-driven, deterministic under an injected clock.

A dispatcher runs a master for each job, whose `DefaultScheduler` decides what is deployed, and what is restarted
(`failover`), on which slots (`slots`). Spark is not known here: executions are deployed through a gateway
(`task_executor_gateway`), which `deployment` and `simulation` implement.
"""
