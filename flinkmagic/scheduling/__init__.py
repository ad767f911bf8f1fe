"""Flink's job manager in Python: single-threaded, event-driven, deterministic under an injected clock."""
