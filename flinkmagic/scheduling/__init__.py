"""Ports Flink's job manager to Python: single-threaded, event-driven, deterministic under an injected clock."""
