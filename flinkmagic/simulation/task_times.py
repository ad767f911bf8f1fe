"""Decides how long simulated tasks take."""

from __future__ import annotations

import random

from flinkmagic.graph.access_execution_graph import AccessExecutionGraph
from flinkmagic.scheduling.task_executor_gateway import TaskDeploymentDescriptor
from flinkmagic.simulation.options import SimulationOptions

PARTITION_REQUEST_TIMEOUT_MS = 10_000.0
"""How long a task waits for a pipelined input to appear."""


class SampledTaskTimes:
    """Draws times that depend only on seed, subtask and attempt, not on the order of events.

    Parameters
    ----------
    options : SimulationOptions
        What `task_ms_by_name` says about a vertex takes precedence over what was measured.
    waits_for_any : bool
        Whether tasks start when one of their inputs is available, and wait for the others.
    """

    def __init__(self, graph: AccessExecutionGraph, options: SimulationOptions, *, waits_for_any: bool) -> None:
        self.partition_request_timeout_ms = float("inf") if waits_for_any else PARTITION_REQUEST_TIMEOUT_MS
        self.initialization_ms = options.initialization_ms
        """The time from submission to RUNNING."""
        self._waits_for_any = waits_for_any
        self._options = options
        self._read_while_written = {result.id for result in graph.results if not result.result_type.is_blocking}
        self._work_ms: dict[str, float] = {}
        self._told: set[str] = set()
        for job_vertex in graph.job_vertices:
            by_name = options.task_ms_by_name
            given = [by_name[name] for name in job_vertex.job_vertex.names if name in by_name]
            if given:
                self._told.add(job_vertex.id)
            is_endless = any(operator.id in options.endless for operator in job_vertex.job_vertex.operators)
            self._work_ms[job_vertex.id] = float("inf") if is_endless else (given or [options.task_ms])[0]

    def work_ms(self, descriptor: TaskDeploymentDescriptor) -> float:
        """Return what the task has to do; infinity for one that has no end."""
        attempt = descriptor.attempt_id
        measured = (self._options.measured_ms or {}).get(descriptor.vertex)
        if measured is not None and attempt.job_vertex_id not in self._told:
            return measured
        chance = random.Random(f"{self._options.seed}/{attempt}")
        return self._work_ms[attempt.job_vertex_id] * (1.0 + self._options.spread * chance.uniform(-1.0, 1.0))

    def is_read_while_written(self, dataset_id: str) -> bool:
        """Return whether a result is consumed before it is finished (PIPELINED and HYBRID)."""
        return dataset_id in self._read_while_written

    def may_come_up_later(self, dataset_id: str) -> bool:
        """Return whether a task may be there before those that make the result."""
        return self._waits_for_any or dataset_id in self._read_while_written
