"""Decides which tasks are restarted when one fails (Flink's `FailoverStrategy` and its two implementations)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np
import numpy.typing as npt

from flinkmagic.errors.scheduling import PartitionNotFoundError
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.scheduling.scheduling_topology import SchedulingTopology

StateColumn = npt.NDArray[np.uint8]

_CREATED = ExecutionState.CREATED.value


class ResultPartitionAvailabilityChecker(Protocol):
    """Knows which finished partitions can still be read (Flink's class of that name)."""

    def unavailable_partitions(self, start: int, end: int) -> Iterable[int]:
        """Return those of the partitions from `start` up to `end` that cannot be read."""


class FailoverStrategy(Protocol):
    """Proposes what to restart (Flink's `FailoverStrategy`)."""

    def tasks_needing_restart(self, vertex: int, cause: BaseException) -> list[int]:
        """Return the vertices to restart, ascending, after `vertex` failed with `cause`."""


class RestartPipelinedRegionFailoverStrategy:
    """Restarts regions (Flink's `RestartPipelinedRegionFailoverStrategy`).

    1. The region of the failed task is restarted.
    2. If an input of a restarted region is no longer available, the regions that make what is missing are restarted.
       What cannot be read twice (PIPELINED, HYBRID_SELECTIVE) is never available.
    3. All consumers of a restarted region are restarted.

    Tasks that are still CREATED are traversed and left out: they never started.

    Parameters
    ----------
    states : array of uint8
        The code of each vertex's state, live.
    availability : ResultPartitionAvailabilityChecker
        Asked for the partitions of results that can be read twice.
    """

    def __init__(
        self,
        topology: SchedulingTopology,
        states: StateColumn,
        availability: ResultPartitionAvailabilityChecker,
    ) -> None:
        self._topology = topology
        self._states = states
        self._availability = availability
        self._is_all_to_all = [
            all(offsets is None for _, offsets in inputs + outputs)
            for inputs, outputs in zip(topology.inputs_of, topology.outputs_of, strict=True)
        ]
        """Job vertices whose subtasks all read the same groups and write the same groups."""

    def tasks_needing_restart(self, vertex: int, cause: BaseException) -> list[int]:
        topology, states = self._topology, self._states
        regions = self._regions_to_restart(topology.region_of[vertex], _lost_partition(topology, cause))
        return sorted(v for region in regions for v in topology.vertices_of(region) if states[v] != _CREATED)

    def _regions_to_restart(self, failed: int, lost: int | None) -> set[int]:
        topology = self._topology
        restarted, to_visit = {failed}, [failed]
        seen_consumed: set[int] = set()
        seen_produced: set[int] = set()
        seen_job_vertices: set[int] = set()
        while to_visit:
            region = to_visit.pop()
            if topology.region_size(region) == 1:
                job_vertex = topology.job_vertex_of[topology.vertices_of(region)[0]]
                if self._is_all_to_all[job_vertex]:
                    if job_vertex in seen_job_vertices:
                        continue
                    seen_job_vertices.add(job_vertex)
            involved: set[int] = set()
            for group in topology.consumed_groups_of_region(region):
                if group not in seen_consumed:
                    seen_consumed.add(group)
                    involved.update(self._regions_that_make_what_is_missing(group, lost))
            for group in topology.produced_groups_of_region(region):
                if group not in seen_produced:
                    seen_produced.add(group)
                    involved.update(topology.consumer_regions(group))
            involved -= restarted
            restarted |= involved
            to_visit += involved
        return restarted

    def _regions_that_make_what_is_missing(self, group: int, lost: int | None) -> Iterable[int]:
        topology = self._topology
        if not topology.is_reconsumable_group[group]:
            return topology.producer_regions(group)
        start, end = topology.partition_start[group], topology.partition_end[group]
        missing = {
            topology.region_of[topology.producer_of[partition]]
            for partition in self._availability.unavailable_partitions(start, end)
        }
        if lost is not None and start <= lost < end:
            missing.add(topology.region_of[topology.producer_of[lost]])
        return missing


class RestartAllFailoverStrategy:
    """Restarts everything that ever started (Flink's `RestartAllFailoverStrategy`).

    Only a simulation may ask for it (``--failover full``): a job on Spark restarts by regions.
    """

    def __init__(self, states: StateColumn) -> None:
        self._states = states

    def tasks_needing_restart(self, vertex: int, cause: BaseException) -> list[int]:
        started: list[int] = np.flatnonzero(self._states != _CREATED).tolist()
        return started


def _lost_partition(topology: SchedulingTopology, cause: BaseException) -> int | None:
    """Return the partition that a task could not read, if that is why it failed."""
    seen: set[int] = set()
    error: BaseException | None = cause
    while error is not None and id(error) not in seen:
        if isinstance(error, PartitionNotFoundError):
            return topology.partition_index(error.dataset_id, error.partition)
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return None
