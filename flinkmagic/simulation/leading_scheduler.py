"""A scheduler whose driver takes its time: planning, building broadcasts, listing files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.scheduling.clock import Clock
from flinkmagic.scheduling.default_scheduler import DefaultScheduler
from flinkmagic.scheduling.main_thread import ComponentMainThreadExecutor


class LeadingScheduler(DefaultScheduler):
    """Asks for the slots of a region only when the driver is ready for it; it holds none meanwhile.

    Parameters
    ----------
    lead_ms : Mapping of str to float
        By the id of a job vertex how long that takes once its inputs are consumable; 0 for one that is absent.
    """

    def __init__(
        self,
        execution_graph: ExecutionGraph,
        *,
        lead_ms: Mapping[str, float],
        main_thread: ComponentMainThreadExecutor,
        clock: Clock,
        **others: Any,
    ) -> None:
        super().__init__(execution_graph, main_thread=main_thread, clock=clock, **others)
        self._lead_ms = [lead_ms.get(vertex.id, 0.0) for vertex in execution_graph.job_vertices]
        self._decisions: Counter[int] = Counter()
        """By the first vertex of a region how often it was to be deployed: only the last decision counts."""

    def allocate_slots_and_deploy(self, vertices: Sequence[int]) -> None:
        """Carry out a decision of the strategy, after the lead of the region's vertices."""
        job_vertex_of = self.topology.job_vertex_of
        lead_ms = max(self._lead_ms[job_vertex_of[vertex]] for vertex in vertices)
        if lead_ms <= 0.0:
            super().allocate_slots_and_deploy(vertices)
            return
        first = vertices[0]
        self._decisions[first] += 1
        decision = self._decisions[first]

        def deploy() -> None:
            is_current = self._decisions[first] == decision
            if is_current and all(self.executions.state(vertex) is ExecutionState.CREATED for vertex in vertices):
                DefaultScheduler.allocate_slots_and_deploy(self, vertices)

        self._main_thread.schedule(deploy, lead_ms)
