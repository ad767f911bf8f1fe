"""Decides how long simulated tasks take."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping

from flinkmagic.graph.access_execution_graph import AccessExecutionGraph
from flinkmagic.scheduling.task_executor_gateway import TaskDeploymentDescriptor


class SampledTaskTimes:
    """Draws times that depend only on seed, subtask and attempt, not on the order of events.

    Parameters
    ----------
    default_ms : float
        The approximate work of a task.
    by_name : mapping of str to float
        The same for single job vertices, by their name or that of one of their operators.
    measured_ms : mapping of int to float
        The same for single execution vertices, taken as it is: from a real run, for example. What `by_name` says about
        a vertex takes precedence.
    spread : float
        The largest random change of a time, as a fraction of it.
    endless : collection of int
        Ids of operators that never end by themselves: unbounded sources.
    partition_request_timeout_ms : float
        How long a task waits for a pipelined input to appear.
    waits_for_any : bool
        Whether tasks start when one of their inputs is available, and wait for the others.
    """

    def __init__(
        self,
        graph: AccessExecutionGraph,
        *,
        seed: int,
        default_ms: float,
        by_name: Mapping[str, float] | None = None,
        measured_ms: Mapping[int, float] | None = None,
        spread: float = 0.2,
        endless: Collection[int] = (),
        initialization_ms: float = 20.0,
        partition_request_timeout_ms: float = 10_000.0,
        waits_for_any: bool = False,
    ) -> None:
        self.partition_request_timeout_ms = float("inf") if waits_for_any else partition_request_timeout_ms
        self._waits_for_any = waits_for_any
        self._seed = seed
        self._spread = spread
        self._initialization_ms = initialization_ms
        self._measured_ms = dict(measured_ms or {})
        self._read_while_written = {result.id for result in graph.results if not result.result_type.is_blocking}
        self._work_ms: dict[str, float] = {}
        self._told: set[str] = set()
        for job_vertex in graph.job_vertices:
            given = [by_name[name] for name in job_vertex.job_vertex.names if by_name and name in by_name]
            if given:
                self._told.add(job_vertex.id)
            is_endless = any(operator.id in endless for operator in job_vertex.job_vertex.operators)
            self._work_ms[job_vertex.id] = float("inf") if is_endless else (given or [default_ms])[0]

    def initialization_ms(self, descriptor: TaskDeploymentDescriptor) -> float:
        """Return the time from submission to RUNNING."""
        return self._initialization_ms

    def work_ms(self, descriptor: TaskDeploymentDescriptor) -> float:
        """Return what the task has to do; infinity for one that has no end."""
        attempt = descriptor.attempt_id
        measured = self._measured_ms.get(descriptor.vertex)
        if measured is not None and attempt.job_vertex_id not in self._told:
            return measured
        chance = random.Random(f"{self._seed}/{attempt}")
        return self._work_ms[attempt.job_vertex_id] * (1.0 + self._spread * chance.uniform(-1.0, 1.0))

    def is_read_while_written(self, dataset_id: str) -> bool:
        """Return whether a result is consumed before it is finished (PIPELINED and HYBRID)."""
        return dataset_id in self._read_while_written

    def may_come_up_later(self, dataset_id: str) -> bool:
        """Return whether a task may be there before those that make the result."""
        return self._waits_for_any or dataset_id in self._read_while_written
