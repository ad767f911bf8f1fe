"""Counters and shortcuts against the plain definitions, on random programs.

The definitions are Flink's, read off partition by partition and vertex by vertex, with no thought of cost.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from flinkmagic.graph.execution_config import InputDependencyConstraint as Constraint
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.execution_state import ExecutionState as S
from flinkmagic.graph.job_graph import JobGraph
from flinkmagic.scheduling.failover.failover_strategy import RestartPipelinedRegionFailoverStrategy
from flinkmagic.scheduling.partition_tracker import RegionPartitionGroupReleaseStrategy
from flinkmagic.scheduling.pipelined_region_scheduling_strategy import PipelinedRegionSchedulingStrategy
from flinkmagic.scheduling.scheduling_topology import SchedulingTopology
from tests.graph.consumer_groups import consumed_groups, consumer_groups, result_of

PIPELINED_WEB = [
    ("a", 2, ()),
    ("b", 6, ("a:rescale/PIPELINED", "a:rescale/BATCH")),
    ("c", 7, ("a:rescale/PIPELINED", "b:rescale/BATCH")),
    ("d", 2, ("a:rescale/PIPELINED",)),
    ("e", 3, ("c:rescale/PIPELINED", "b:rescale/BATCH")),
]


def programs(job, seed: int) -> JobGraph:
    """A random program, or for some seeds one whose regions read of themselves and of others."""
    from tests.benchmarks._random_topologies import random_job

    if seed % 10 == 0:
        return job(PIPELINED_WEB)
    return random_job(random.Random(seed), f"{seed:032x}")


class Definition:
    """What is scheduled, restarted and released, by the rules alone."""

    def __init__(self, graph: ExecutionGraph, constraint: Constraint) -> None:
        self.graph = graph
        self.needs_all = constraint is Constraint.ALL
        self.region_of = graph.pipelined_regions.region_of.tolist()
        self.n_regions = graph.pipelined_regions.count
        self.finished: set[int] = set()
        self.scheduled: set[int] = set()

    def members(self, region: int) -> list[int]:
        return [vertex for vertex, own in enumerate(self.region_of) if own == region]

    def step(self) -> list[list[int]]:
        """Schedule all that can be: regions whose inputs are there, those that this makes possible too."""
        new: set[int] = set()
        while True:
            ready = [
                region
                for region in range(self.n_regions)
                if region not in self.scheduled | new and self.is_ready(region, new)
            ]
            if not ready:
                break
            new.update(ready)
        self.scheduled |= new
        return [self.members(region) for region in sorted(new, key=lambda region: self.members(region)[0])]

    def is_ready(self, region: int, new: set[int]) -> bool:
        inputs = []
        for vertex in self.members(region):
            for group in consumed_groups(self.graph, vertex):
                elsewhere = [p for p in group.producers if self.region_of[p] != region]
                if not elsewhere or group.result_type.must_be_pipelined_consumed:
                    continue
                if group.result_type.is_blocking:
                    inputs.append(self.finished.issuperset(elsewhere))
                else:
                    inputs.append(all(self.region_of[p] in self.scheduled | new for p in elsewhere))
        return all(inputs) if self.needs_all else not inputs or any(inputs)

    def restarts(self, vertex: int, gone: set[int]) -> list[int]:
        """The failed region, makers of what is missing, all readers; again and again."""
        regions = {self.region_of[vertex]}
        while True:
            more: set[int] = set()
            for member in (m for region in regions for m in self.members(region)):
                for group in consumed_groups(self.graph, member):
                    for partition, producer in zip(group.partitions, group.producers, strict=True):
                        if partition in gone or not group.result_type.is_reconsumable:
                            more.add(self.region_of[producer])
                for partition in self.graph.produced_partitions(member):
                    for readers in consumer_groups(self.graph, partition):
                        more.update(self.region_of[reader] for reader in readers.consumers)
            if more <= regions:
                break
            regions |= more
        return [v for region in regions for v in self.members(region) if self.graph.state_of(v) is not S.CREATED]

    def releasable(self) -> set[int]:
        """Partitions all readers' regions of which are finished."""
        done = {r for r in range(self.n_regions) if self.finished.issuperset(self.members(r))}
        return {
            partition
            for partition in range(self.graph.n_partitions)
            if (result := result_of(self.graph, partition).result_type).is_blocking or result.is_hybrid
            if all(
                self.region_of[reader] in done
                for readers in consumer_groups(self.graph, partition)
                for reader in readers.consumers
            )
        }


class Gone:
    def __init__(self, partitions: set[int]) -> None:
        self._partitions = partitions

    def unavailable_partitions(self, start: int, end: int) -> list[int]:
        return [partition for partition in range(start, end) if partition in self._partitions]


class Decisions:
    def __init__(self) -> None:
        self.calls: list[list[int]] = []

    def allocate_slots_and_deploy(self, vertices: Sequence[int]) -> None:
        self.calls.append(list(vertices))


def set_state(graph: ExecutionGraph, vertices: Sequence[int], state: S) -> None:
    path = [S.SCHEDULED, S.DEPLOYING, S.INITIALIZING, S.RUNNING, S.FINISHED]
    for step in path[: path.index(state) + 1]:
        waiting = [v for v in vertices if graph.state_of(v).value < step.value]
        if waiting:
            graph.transition(np.asarray(waiting), step, 0.0)


@pytest.mark.parametrize("constraint", list(Constraint))
@pytest.mark.parametrize("seed", range(40))
def test_scheduling_and_release(job, seed: int, constraint: Constraint) -> None:
    chance = random.Random(seed)
    graph = ExecutionGraph(programs(job, seed))
    topology = SchedulingTopology(graph)
    decisions, definition = Decisions(), Definition(graph, constraint)
    strategy = PipelinedRegionSchedulingStrategy(decisions, topology, constraint)
    release = RegionPartitionGroupReleaseStrategy(topology)
    strategy.start_scheduling()
    expected = definition.step()
    running: list[int] = []
    released: set[int] = set()
    while True:
        assert decisions.calls == expected
        running += [vertex for call in decisions.calls for vertex in call]
        decisions.calls = []
        if not running:
            break
        vertex = running.pop(chance.randrange(len(running)))
        set_state(graph, [vertex], S.FINISHED)
        released.update(release.vertex_finished(vertex))
        strategy.on_execution_finished(vertex)
        definition.finished.add(vertex)
        expected = definition.step()
        assert released == definition.releasable()
    strategy.validate(graph.state)


@pytest.mark.parametrize("seed", range(40))
def test_restart_sets(job, seed: int) -> None:
    chance = random.Random(seed)
    graph = ExecutionGraph(programs(job, seed))
    definition = Definition(graph, Constraint.ALL)
    started = [vertex for vertex in range(graph.n_vertices) if chance.random() < 0.8]
    set_state(graph, started, S.RUNNING)
    topology = SchedulingTopology(graph)
    for vertex in started[:15]:
        gone = {partition for partition in range(graph.n_partitions) if chance.random() < 0.1}
        strategy = RestartPipelinedRegionFailoverStrategy(topology, graph.state, Gone(gone))
        restarted = strategy.tasks_needing_restart(vertex, ValueError("broken"))
        assert restarted == sorted(definition.restarts(vertex, gone))
