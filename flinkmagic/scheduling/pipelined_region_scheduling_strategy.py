"""Decides which regions are scheduled when (Flink's `PipelinedRegionSchedulingStrategy`).

The rules, in the order in which the code keeps them:

1. A region without inputs from elsewhere is scheduled at the start.
2. A region is scheduled once, as a whole, by one call, with its vertices ascending.
3. It is scheduled as soon as its inputs are consumable: a BLOCKING one when all of its partitions are finished, a
   HYBRID one when all regions that make it are scheduled. A region that makes part of an input itself waits only for
   the other parts.
4. What a step schedules may make HYBRID consumers schedulable; they belong to the same step.
5. The regions of a step are scheduled in topological order.

Flink asks the topology for the state of every partition of a group each time that one of them finishes: quadratic for
all-to-all edges, 2 s for 16,000 sources. Here each group counts what it still misses, and a consumer is looked at when
the count reaches zero.

Departure: vertices that wait for their restart count as not finished from the moment of the failure
(`on_vertices_reset`), so that no region starts on results that are about to be made again. Flink may start one within
the restart delay; it then fails because its input is missing, and restarts again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from flinkmagic.errors.base import InvariantViolatedError
from flinkmagic.graph.execution_config import InputDependencyConstraint
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.scheduling.scheduling_topology import SchedulingTopology

_NOT_SCHEDULED, _SCHEDULED, _WAITS_FOR_RESTART = 0, 1, 2


class SchedulerOperations(Protocol):
    """What a strategy may do (Flink's `SchedulerOperations`)."""

    def allocate_slots_and_deploy(self, vertices: Sequence[int]) -> None:
        """Give slots to the vertices, wait for all of them, then deploy."""


class PipelinedRegionSchedulingStrategy:
    """Schedules region by region (with Flink's `SchedulingStrategy`, of which this is the only one).

    Parameters
    ----------
    input_dependency : InputDependencyConstraint
        Whether a region needs all of its inputs or any (Flink up to 1.10). With ANY a task must be able to
        wait for its other inputs by itself.
    """

    def __init__(
        self,
        operations: SchedulerOperations,
        topology: SchedulingTopology,
        input_dependency: InputDependencyConstraint = InputDependencyConstraint.ALL,
    ) -> None:
        self._operations = operations
        self._topology = topology
        self._needs_all = input_dependency is InputDependencyConstraint.ALL
        self._finished = bytearray(topology.n_vertices)
        self._scheduled = bytearray(topology.n_regions)
        self._must_wait = bytearray(topology.n_regions)
        """Regions that have inputs to wait for."""
        self._missing: list[int] = [0] * topology.n_groups
        """By group: partitions not finished (BLOCKING), or regions not scheduled that make it (HYBRID)."""
        self._missing_elsewhere: dict[tuple[int, int], int] = {}
        """The same for a region that makes part of what it reads, counting the other regions' parts only."""
        self._cross_groups: dict[int, list[int]] = {}
        """Groups made by several regions one of which reads them too: those regions."""
        self._is_awaited = bytearray(topology.n_groups)
        """Groups that are BLOCKING or HYBRID."""
        self._is_blocking_group = bytearray(topology.n_groups)
        self._has_hybrid = False
        for connection in topology.connections:
            if not topology.type_of_group(connection.first_group).must_be_pipelined_consumed:
                self._init_connection(connection.first_group, connection.n_groups)

    def _init_connection(self, first_group: int, n_groups: int) -> None:
        topology = self._topology
        is_blocking = topology.type_of_group(first_group).is_blocking
        end = first_group + n_groups
        starts, ends = topology.partition_start, topology.partition_end
        self._is_awaited[first_group:end] = b"\x01" * n_groups
        if is_blocking:
            self._is_blocking_group[first_group:end] = b"\x01" * n_groups
            self._missing[first_group:end] = [ends[g] - starts[g] for g in range(first_group, end)]
        else:
            self._has_hybrid = True
        for group in range(first_group, end):
            producers = topology.producer_regions(group)
            if not is_blocking:
                self._missing[group] = len(producers)
            if len(producers) > 1:
                self._init_cross_group(group, producers, is_blocking)
            for region in self._readers(group):
                self._must_wait[region] = 1

    def _init_cross_group(self, group: int, producers: list[int], is_blocking: bool) -> None:
        topology = self._topology
        both = set(producers).intersection(topology.consumer_regions(group))
        if not both:
            return
        self._cross_groups[group] = sorted(both)
        for region in both:
            if is_blocking:
                first = topology.producer_of[topology.partition_start[group]]
                count = topology.partition_end[group] - topology.partition_start[group]
                own = topology.region_of[first : first + count].count(region)
                self._missing_elsewhere[group, region] = count - own
            else:
                self._missing_elsewhere[group, region] = len(producers) - 1

    def start_scheduling(self, finished: Sequence[int] = ()) -> None:
        """Schedule what can be scheduled; `finished` are vertices that a former process finished."""
        regions = self._topology.regions_of(finished)
        if not regions:
            self._maybe_schedule([r for r in range(self._topology.n_regions) if not self._must_wait[r]])
            return
        for vertex in finished:
            self._count_finished(vertex)
        for region in regions:
            if all(self._finished[vertex] for vertex in self._topology.vertices_of(region)):
                self._mark_scheduled(region)
        self._maybe_schedule(range(self._topology.n_regions))

    def on_execution_finished(self, vertex: int) -> None:
        """Handle the end of a vertex that is FINISHED."""
        closed = self._count_finished(vertex)
        if closed:
            regions: set[int] = set()
            for group in closed:
                regions.update(self._topology.consumer_regions(group))
            self._maybe_schedule(sorted(regions))

    def on_vertices_reset(self, vertices: Iterable[int]) -> None:
        """Handle the coming restart of vertices: what they made no longer counts."""
        topology = self._topology
        for vertex in vertices:
            if self._finished[vertex]:
                self._finished[vertex] = 0
                for group in topology.produced_groups(vertex):
                    if self._is_blocking_group[group]:
                        self._missing[group] += 1
                        self._count_elsewhere(group, topology.region_of[vertex], 1)
            region = topology.region_of[vertex]
            if self._scheduled[region] == _SCHEDULED:
                self._scheduled[region] = _WAITS_FOR_RESTART
                self._count_scheduled(region, 1)

    def restart_tasks(self, vertices: Iterable[int]) -> None:
        """Schedule vertices, all in CREATED, again."""
        regions = self._topology.regions_of(vertices)
        for region in regions:
            if self._scheduled[region] == _SCHEDULED:
                self._count_scheduled(region, 1)
            self._scheduled[region] = _NOT_SCHEDULED
        self._maybe_schedule(regions)

    def restart_immediately(self, vertices: Iterable[int]) -> None:
        """Schedule regions, all in CREATED, without regard to their inputs: they run already.

        Not part of Flink's strategy: see `DefaultScheduler.replace_executions`.
        """
        for region in self._topology.regions_of(vertices):
            self._mark_scheduled(region)
            self._operations.allocate_slots_and_deploy(self._topology.vertices_of(region))

    def _count_finished(self, vertex: int) -> list[int]:
        """Count a vertex as finished; return the groups for which it may have been the last one missing."""
        if self._finished[vertex]:
            return []
        self._finished[vertex] = 1
        topology, missing = self._topology, self._missing
        job_vertex = topology.job_vertex_of[vertex]
        subtask = vertex - topology.first_vertex[job_vertex]
        closed = []
        for first, offsets in topology.outputs_of[job_vertex]:
            group = first if offsets is None else first + offsets[subtask]
            if self._is_blocking_group[group]:
                left = missing[group] - 1
                missing[group] = left
                if self._count_elsewhere(group, topology.region_of[vertex], -1) or left == 0:
                    closed.append(group)
        return closed

    def _count_elsewhere(self, group: int, made_in: int, change: int) -> bool:
        """Count for the regions that make a part of the group themselves; return whether one misses nothing now."""
        complete = False
        for region in self._cross_groups.get(group, ()):
            if region != made_in:
                self._missing_elsewhere[group, region] += change
                complete |= self._missing_elsewhere[group, region] == 0
        return complete

    def _count_scheduled(self, region: int, change: int) -> list[int]:
        """Count a region as scheduled (-1) or not (1); return the HYBRID groups that it makes."""
        if not self._has_hybrid:
            return []
        produced = self._topology.produced_groups_of_region(region)
        groups = [g for g in produced if self._is_awaited[g] and not self._is_blocking_group[g]]
        for group in groups:
            self._missing[group] += change
            self._count_elsewhere(group, region, change)
        return groups

    def _mark_scheduled(self, region: int) -> list[int]:
        self._scheduled[region] = _SCHEDULED
        return self._count_scheduled(region, -1)

    def _readers(self, group: int) -> list[int]:
        """Return the regions that must wait for a group."""
        readers = self._topology.consumer_regions(group)
        if group in self._cross_groups:
            return readers
        made_in = self._topology.region_of[self._topology.producer_of[self._topology.partition_start[group]]]
        return [region for region in readers if region != made_in] if made_in in readers else readers

    def _maybe_schedule(self, candidates: Iterable[int]) -> None:
        """Find all regions that can start now, then schedule them in topological order."""
        to_schedule: list[int] = []
        while candidates:
            opened: list[int] = []
            for region in candidates:
                if self._scheduled[region] == _NOT_SCHEDULED and self._are_inputs_consumable(region):
                    to_schedule.append(region)
                    opened += self._mark_scheduled(region)
            consumers: set[int] = set()
            for group in opened:
                consumers.update(self._readers(group))
            candidates = sorted(consumers)
        to_schedule.sort()
        for region in to_schedule:
            self._operations.allocate_slots_and_deploy(self._topology.vertices_of(region))

    def _are_inputs_consumable(self, region: int) -> bool:
        if not self._must_wait[region]:
            return True
        topology = self._topology
        any_input = False
        for group in topology.consumed_groups_of_region(region):
            if not self._is_awaited[group]:
                continue
            if (group, region) in self._missing_elsewhere:
                consumable = self._missing_elsewhere[group, region] == 0
            elif topology.region_of[topology.producer_of[topology.partition_start[group]]] == region:
                continue
            else:
                consumable = self._missing[group] == 0
            any_input = True
            if consumable != self._needs_all:
                return consumable
        return self._needs_all or not any_input

    def validate(self, states: npt.NDArray[np.uint8]) -> None:
        """Repeat the counting; raise `InvariantViolatedError` if the result differs.

        For tests: it looks at everything.
        """
        topology = self._topology
        for vertex, finished in enumerate(self._finished):
            if finished and states[vertex] != ExecutionState.FINISHED.value:
                raise InvariantViolatedError(f"vertex {vertex}, which counts as finished, is FINISHED")
        for group in range(topology.n_groups):
            if not self._is_awaited[group]:
                continue
            producers = topology.producer_of[topology.partition_start[group] : topology.partition_end[group]]
            if self._is_blocking_group[group]:
                missing = {(p, topology.region_of[p]) for p in producers if not self._finished[p]}
            else:
                regions = {topology.region_of[p] for p in producers}
                missing = {(r, r) for r in regions if self._scheduled[r] != _SCHEDULED}
            if self._missing[group] != len(missing):
                raise InvariantViolatedError(f"group {group} misses {len(missing)}, not {self._missing[group]}")
            for region in self._cross_groups.get(group, ()):
                elsewhere = sum(1 for _, made_in in missing if made_in != region)
                if self._missing_elsewhere[group, region] != elsewhere:
                    raise InvariantViolatedError(f"region {region} misses {elsewhere} of group {group}")
