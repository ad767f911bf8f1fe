"""Which subtasks share a slot: the local-input-preferred strategy.

Mirrors ``LocalInputPreferredSlotSharingStrategy``. Job vertices are taken in topological order, each in two passes:

1. a subtask joins the group of a co-located subtask, else the first free group among those of its producers, input by
   input;
2. the remaining ones join the first free group that remaining ones made, else a new one.

A group is free for a subtask if it belongs to the vertex's slot sharing group and holds no other subtask of the vertex.
Departure: if the first input settles pass 1 (nearly always), it is done for all subtasks together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from flinkmagic.graph.access_execution_graph import AccessExecutionGraph
from flinkmagic.graph.execution_job_vertex import ExecutionJobVertex
from flinkmagic.graph.intermediate_result import Connection
from flinkmagic.graph.job_graph import CoLocationGroup, SlotSharingGroup

_NONE = -1
_Groups = npt.NDArray[np.int32]


@dataclass(frozen=True)
class ExecutionSlotSharingGroups:
    """Which group each execution vertex is in. Mirrors ``ExecutionSlotSharingGroup``s, as a column."""

    group_of: _Groups
    """By execution vertex; groups are numbered as they were made."""
    count: int
    """How many groups there are."""

    def members(self) -> list[npt.NDArray[np.int64]]:
        """Return the execution vertices of each group, ascending."""
        order = np.argsort(self.group_of, kind="stable")
        ends = np.cumsum(np.bincount(self.group_of, minlength=self.count))
        return np.split(order, ends[:-1]) if self.count else []


def local_input_preferred(graph: AccessExecutionGraph) -> ExecutionSlotSharingGroups:
    """Assign subtasks to shared slots."""
    strategy = _LocalInputPreferred(graph.n_vertices)
    for job_vertex in graph.job_vertices:
        strategy.assign(job_vertex)
    return ExecutionSlotSharingGroups(strategy.group_of, strategy.count)


class _LocalInputPreferred:
    def __init__(self, n_vertices: int) -> None:
        self.group_of: _Groups = np.full(n_vertices, _NONE, dtype=np.int32)
        self.count = 0
        self._made: dict[SlotSharingGroup, list[_Groups]] = {}
        self._of_constraint: dict[CoLocationGroup, list[int]] = {}

    def assign(self, job_vertex: ExecutionJobVertex) -> None:
        group = job_vertex.job_vertex.slot_sharing_group
        # A vertex's subtasks are in groups of its own slot sharing group: other producers offer nothing.
        inputs = [c for c in job_vertex.inputs if c.result.producer.job_vertex.slot_sharing_group is group]
        co_location = job_vertex.job_vertex.co_location_group
        assigned = None if co_location else self._of_first_input(job_vertex, inputs)
        if assigned is None:
            assigned = self._one_by_one(job_vertex, inputs, co_location)
        self._assign_leftovers(assigned, group)
        self.group_of[job_vertex.slice] = assigned
        if co_location is not None:
            known = self._of_constraint.setdefault(co_location, [])
            known[: job_vertex.parallelism] = assigned.tolist()

    def _groups_of_producers(self, connection: Connection) -> _Groups:
        return self.group_of[connection.result.producer.slice]

    def _of_first_input(self, job_vertex: ExecutionJobVertex, inputs: Sequence[Connection]) -> _Groups | None:
        """Do pass 1 for all subtasks; return None if it has to be done one by one.

        In each group of the input the k-th consumer takes the k-th producer's group, as long as there are producers.
        """
        assigned: _Groups = np.full(job_vertex.parallelism, _NONE, dtype=np.int32)
        if not inputs:
            return assigned
        connection = inputs[0]
        if connection.result.producer.job_vertex.co_location_group is not None:
            return None  # its subtasks may share groups
        partition_bounds, consumer_bounds = connection.partition_bounds, connection.consumer_bounds
        sizes = np.diff(consumer_bounds)
        group = np.repeat(np.arange(connection.n_groups), sizes)
        position = np.arange(job_vertex.parallelism) - consumer_bounds[group]
        taking = position < np.diff(partition_bounds)[group]
        if len(inputs) > 1 and not taking.all():
            return None  # what the other inputs offer depends on the order
        producers = (partition_bounds[group] + position)[taking]
        assigned[taking] = self._groups_of_producers(connection)[producers]
        return assigned

    def _one_by_one(
        self, job_vertex: ExecutionJobVertex, inputs: Sequence[Connection], co_location: CoLocationGroup | None
    ) -> _Groups:
        co_located = self._of_constraint.get(co_location, []) if co_location else []
        candidates = [_Candidates(self._groups_of_producers(connection), connection) for connection in inputs]
        taken: set[int] = set()
        assigned: _Groups = np.full(job_vertex.parallelism, _NONE, dtype=np.int32)
        for subtask in range(job_vertex.parallelism):
            if subtask < len(co_located):
                group = co_located[subtask]
            else:
                offers = (group for candidate in candidates for group in candidate.groups_for(subtask))
                group = next((group for group in offers if group not in taken), _NONE)
            assigned[subtask] = group
            taken.add(group)
        return assigned

    def _assign_leftovers(self, assigned: _Groups, group: SlotSharingGroup) -> None:
        leftovers = np.flatnonzero(assigned == _NONE)
        if not leftovers.size:
            return
        made = self._made.setdefault(group, [])
        if made:
            existing = np.concatenate(made)
            free = np.ones(self.count, dtype=np.bool_)
            free[assigned[assigned != _NONE]] = False
            joined = existing[free[existing]][: leftovers.size]
            assigned[leftovers[: joined.size]] = joined
            leftovers = leftovers[joined.size :]
        if leftovers.size:
            new = np.arange(self.count, self.count + leftovers.size, dtype=np.int32)
            assigned[leftovers] = new
            made.append(new)
            self.count += len(new)


class _Candidates:
    """The groups of the producers of one input, each offered once: once refused or taken, a group is not free."""

    def __init__(self, groups: _Groups, connection: Connection) -> None:
        self._groups = groups.tolist()
        self._connection = connection
        self._left: dict[int, list[int]] = {}

    def groups_for(self, subtask: int) -> Iterator[int]:
        """Offer the groups of the producers that a subtask reads, in their order."""
        number = self._connection.group_of_consumer(subtask)
        left = self._left.get(number)
        if left is None:
            partitions = self._connection.partition_range(number)
            left = self._left[number] = self._groups[partitions.start : partitions.stop][::-1]
        while left:
            yield left.pop()
