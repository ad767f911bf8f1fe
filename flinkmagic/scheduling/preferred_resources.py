"""Chooses the executors that are preferred for a slot (Flink's `DefaultPreferredLocationsRetriever`)."""

from __future__ import annotations

from collections.abc import Sequence

from flinkmagic.scheduling.executions import Executions
from flinkmagic.scheduling.scheduling_topology import SchedulingTopology

_MAX_DISTINCT_PRODUCERS = 8
_MAX_DISTINCT_CONSUMERS = 8


class PreferredResources:
    """Prefers the executor that a vertex ran on before, then those that hold what it reads.

    As in Flink, an input counts only if at most eight producers are read and at most eight consumers share them: beyond
    that no single executor is near.
    """

    def __init__(self, topology: SchedulingTopology, executions: Executions) -> None:
        self._topology = topology
        self._executions = executions

    def __call__(self, vertices: Sequence[int]) -> list[str]:
        """Return the executors that suit a slot for these vertices, best first."""
        last = self._executions.last_resource
        found = dict.fromkeys(last[vertex] for vertex in vertices if vertex in last)
        for vertex in vertices:
            for group in self._topology.consumed_groups(vertex):
                found.update(dict.fromkeys(self._holders(group)))
        return list(found)

    def _holders(self, group: int) -> list[str]:
        topology, last = self._topology, self._executions.last_resource
        start, end = topology.partition_start[group], topology.partition_end[group]
        consumers = topology.consumer_end[group] - topology.consumer_start[group]
        if end - start > _MAX_DISTINCT_PRODUCERS or consumers > _MAX_DISTINCT_CONSUMERS:
            return []
        producers = topology.producer_of[start:end]
        return [last[producer] for producer in producers if producer in last]
