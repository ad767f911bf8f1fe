"""Tracks where finished partitions are, and when they may be deleted.

Mirrors Flink's `JobMasterPartitionTracker` (what is where) and `RegionPartitionGroupReleaseStrategy` (what is no longer
needed).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from flinkmagic.scheduling.scheduling_topology import SchedulingTopology
from flinkmagic.scheduling.task_executor_gateway import ResultPartitionID, TaskExecutorGateway


class _Holder(NamedTuple):
    resource_id: str
    gateway: TaskExecutorGateway
    partition_id: ResultPartitionID


class JobMasterPartitionTracker:
    """Knows the executor that holds each partition, and tells it which ones to delete.

    Only partitions that the scheduler releases (BLOCKING and HYBRID) are tracked. PIPELINED ones end with
    their tasks.
    """

    def __init__(self, job_id: str, topology: SchedulingTopology) -> None:
        self._job_id = job_id
        self._topology = topology
        self._is_released_by_scheduler = [
            result.result_type.is_blocking or result.result_type.is_hybrid for result in topology.results
        ]
        self._is_tracked = bytearray(topology.n_partitions)
        # invariant: a partition has an entry here exactly if its byte above is 1
        self._holders: dict[int, _Holder] = {}

    def start_tracking(
        self, partition: int, partition_id: ResultPartitionID, resource_id: str, gateway: TaskExecutorGateway
    ) -> None:
        """Record that an attempt on an executor makes a partition; the gateway will be asked to delete it."""
        if self._is_released_by_scheduler[self._topology.result_of[partition]]:
            self._is_tracked[partition] = 1
            self._holders[partition] = _Holder(resource_id, gateway, partition_id)

    def is_tracked(self, partition: int) -> bool:
        """Return whether a partition is being made or exists somewhere."""
        return bool(self._is_tracked[partition])

    def unavailable_partitions(self, start: int, end: int) -> Iterable[int]:
        """Return those of the partitions from `start` up to `end` that exist nowhere."""
        if self._is_tracked.find(0, start, end) < 0:
            return ()
        return [partition for partition in range(start, end) if not self._is_tracked[partition]]

    def tracked_partitions(self) -> list[int]:
        """Return all tracked partitions, ascending."""
        return sorted(self._holders)

    def partitions_on(self, resource_id: str) -> list[int]:
        """Return the partitions that an executor holds, ascending."""
        return [p for p, holder in sorted(self._holders.items()) if holder.resource_id == resource_id]

    def stop_tracking(self, partitions: Iterable[int]) -> None:
        """Forget partitions without notifying their executors: they are lost, or belong to others now."""
        for partition in partitions:
            if self._is_tracked[partition]:
                self._is_tracked[partition] = 0
                del self._holders[partition]

    def stop_tracking_and_release(self, partitions: Iterable[int]) -> None:
        """Forget partitions and have their executors delete them."""
        by_executor: dict[str, tuple[TaskExecutorGateway, list[ResultPartitionID]]] = {}
        for partition in partitions:
            if self._is_tracked[partition]:
                self._is_tracked[partition] = 0
                holder = self._holders.pop(partition)
                told = by_executor.setdefault(holder.resource_id, (holder.gateway, []))[1]
                told.append(holder.partition_id)
        for gateway, partition_ids in by_executor.values():
            gateway.release_partitions(self._job_id, partition_ids)

    def end(self, *, keep_all: bool, keep_persistent: bool) -> None:
        """Forget everything, as the job is over; delete what is not kept."""
        tracked = self.tracked_partitions()
        results, result_of = self._topology.results, self._topology.result_of
        kept = [p for p in tracked if keep_all or (keep_persistent and results[result_of[p]].result_type.is_persistent)]
        self.stop_tracking(kept)
        self.stop_tracking_and_release(tracked)


class RegionPartitionGroupReleaseStrategy:
    """Finds partitions whose consumers are all finished, region by region.

    Departure: a partition counts as consumed only while all its consumer regions are finished. Flink keeps the mark of
    a consumer that finished once and was restarted; with two consumers that may release what the restarted one still
    reads.
    """

    def __init__(self, topology: SchedulingTopology) -> None:
        self._topology = topology
        self._is_finished = bytearray(topology.n_vertices)
        self._unfinished_in_region = [topology.region_size(region) for region in range(topology.n_regions)]
        self._releasable_by_region = bytearray(topology.n_groups)
        self._unfinished_regions: list[int] = [0] * topology.n_groups
        """By group: consumer regions that are not finished."""
        self._open_groups = np.zeros(topology.n_partitions, dtype=np.int32)
        """By partition: groups with a consumer region that is not finished."""
        for connection in topology.connections:
            first, end = connection.first_group, connection.first_group + connection.n_groups
            result_type = topology.type_of_group(first)
            if (result_type.is_blocking or result_type.is_hybrid) and not result_type.is_persistent:
                self._releasable_by_region[first:end] = b"\x01" * connection.n_groups
            for group in range(first, end):
                self._unfinished_regions[group] = len(topology.consumer_regions(group))
            result = connection.result
            self._open_groups[result.first_partition : result.first_partition + result.n_partitions] += 1

    def vertex_finished(self, vertex: int) -> list[int]:
        """Record that a vertex is FINISHED; return the partitions that may be released now."""
        if self._is_finished[vertex]:
            return []
        self._is_finished[vertex] = 1
        region = self._topology.region_of[vertex]
        left = self._unfinished_in_region[region] - 1
        self._unfinished_in_region[region] = left
        if left:
            return []
        releasable: list[int] = []
        for group in self._topology.consumed_groups_of_region(region):
            self._unfinished_regions[group] -= 1
            if self._unfinished_regions[group] == 0:
                releasable += self._close(group)
        return releasable

    def vertex_unfinished(self, vertex: int) -> None:
        """Record that a vertex that was FINISHED runs again."""
        if not self._is_finished[vertex]:
            return
        self._is_finished[vertex] = 0
        region = self._topology.region_of[vertex]
        self._unfinished_in_region[region] += 1
        if self._unfinished_in_region[region] > 1:
            return
        for group in self._topology.consumed_groups_of_region(region):
            self._unfinished_regions[group] += 1
            if self._unfinished_regions[group] == 1:
                start, end = self._topology.partition_start[group], self._topology.partition_end[group]
                self._open_groups[start:end] += 1

    def _close(self, group: int) -> list[int]:
        start, end = self._topology.partition_start[group], self._topology.partition_end[group]
        still_open = self._open_groups[start:end]
        still_open -= 1
        if not self._releasable_by_region[group]:
            return []
        consumed: list[int] = (np.flatnonzero(still_open == 0) + start).tolist()
        return consumed
