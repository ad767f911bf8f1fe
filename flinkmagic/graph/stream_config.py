"""What is known of each operator of a chain. Mirrors ``StreamConfig``.

Departure from Flink: there is nothing in it that only the task itself would read, such as its gates and its writers.
"""

from __future__ import annotations

from dataclasses import dataclass

from flinkmagic.graph.stream_graph import StreamEdge, StreamNode


@dataclass(eq=False)
class StreamConfig:
    """One operator of a chain."""

    node: StreamNode
    """The operator, with its factory, description and metadata."""
    chain_index: int
    """Place in the chain: 1 for the operator at which the task starts, 0 for those that run as its chained inputs."""
    chained_outputs: list[StreamEdge]
    """What stays in the task."""
