"""Which regions are scheduled when, with decisions that are only written down."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from flinkmagic.errors.base import InvariantViolatedError
from flinkmagic.graph.execution_config import InputDependencyConstraint
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.graph.job_graph import JobGraph
from flinkmagic.scheduling.pipelined_region_scheduling_strategy import PipelinedRegionSchedulingStrategy
from flinkmagic.scheduling.scheduling_topology import SchedulingTopology

ANY = InputDependencyConstraint.ANY


class Decisions:
    """The strategy over a job, and what it has decided since it was last asked."""

    def __init__(self, job_graph: JobGraph, constraint: InputDependencyConstraint | None = None) -> None:
        graph = ExecutionGraph(job_graph)
        self.topology = SchedulingTopology(graph)
        self._calls: list[list[int]] = []
        self.strategy = PipelinedRegionSchedulingStrategy(
            self, self.topology, constraint or InputDependencyConstraint.ALL
        )
        self.states = graph.state
        self.first = {jv.job_vertex.head.name.removeprefix("Source: "): jv.first for jv in graph.job_vertices}

    def allocate_slots_and_deploy(self, vertices: Sequence[int]) -> None:
        self._calls.append(list(vertices))

    def taken(self) -> list[list[int]]:
        calls, self._calls = self._calls, []
        return calls

    def finish(self, *vertices: int) -> list[list[int]]:
        for vertex in vertices:
            self.states[vertex] = ExecutionState.FINISHED.value
            self.strategy.on_execution_finished(vertex)
            self.strategy.validate(self.states)
        return self.taken()

    def reset(self, *vertices: int) -> None:
        self.strategy.on_vertices_reset(vertices)
        for vertex in vertices:
            self.states[vertex] = ExecutionState.CREATED.value
        self.strategy.validate(self.states)


def test_sources_start_and_consumers_follow_when_all_of_a_blocking_result_is_finished(job) -> None:
    d = Decisions(job([("a", 2, ()), ("b", 3, ("a:hash",))]))
    d.strategy.start_scheduling()
    assert d.taken() == [[0], [1]]
    assert d.finish(1) == []
    assert d.finish(0) == [[2], [3], [4]]


def test_pointwise_consumers_wait_for_their_own_producers_only(job) -> None:
    d = Decisions(job([("a", 4, ()), ("b", 2, ("a:rescale",))]))
    d.strategy.start_scheduling()
    assert d.taken() == [[0], [1], [2], [3]]
    assert d.finish(2, 0) == []
    assert d.finish(3) == [[5]]
    assert d.finish(1) == [[4]]


def test_a_pipelined_job_is_one_region_and_one_call(job) -> None:
    d = Decisions(job([("a", 2, ()), ("b", 3, ("a:hash",))], batch=False))
    d.strategy.start_scheduling()
    assert d.taken() == [[0, 1, 2, 3, 4]]
    assert d.finish(0, 1) == []


def test_all_inputs_are_needed_or_any(job) -> None:
    stages = [("a", 1, ()), ("b", 1, ()), ("join", 1, ("a:hash", "b:hash"))]
    both = Decisions(job(stages))
    both.strategy.start_scheduling()
    both.taken()
    assert both.finish(0) == []
    assert both.finish(1) == [[2]]
    either = Decisions(job(stages), ANY)
    either.strategy.start_scheduling()
    assert either.taken() == [[0], [1]]
    assert either.finish(1) == [[2]]
    assert either.finish(0) == []


def test_hybrid_consumers_belong_to_the_step_that_schedules_their_producers(job) -> None:
    stages = [("a", 2, ()), ("b", 2, ("a:hash",)), ("c", 1, ("b:hash",))]
    d = Decisions(job(stages, shuffle_mode="ALL_EXCHANGES_HYBRID_FULL"))
    d.strategy.start_scheduling()
    assert d.taken() == [[0], [1], [2], [3], [4]]
    assert d.finish(0, 1, 2, 3) == []


def test_a_hybrid_consumer_with_a_blocking_input_waits_for_that(job) -> None:
    stages = [("a", 1, ()), ("b", 1, ()), ("join", 2, ("a:hash", "b:hash/BATCH"))]
    d = Decisions(job(stages, shuffle_mode="ALL_EXCHANGES_HYBRID_FULL"))
    d.strategy.start_scheduling()
    assert d.taken() == [[0], [1]]
    assert d.finish(0) == []
    assert d.finish(1) == [[2], [3]]


def test_restarted_regions_are_scheduled_again_in_topological_order(job) -> None:
    d = Decisions(job([("a", 2, ()), ("b", 2, ("a:hash",))]))
    d.strategy.start_scheduling()
    d.finish(0, 1)
    d.taken()
    d.reset(3, 2, 1)
    d.strategy.restart_tasks((3, 2, 1))
    assert d.taken() == [[1]]
    assert d.finish(1) == [[2], [3]]


def test_what_waits_for_its_restart_does_not_count_as_finished(job) -> None:
    d = Decisions(job([("a", 1, ()), ("b", 1, ()), ("join", 1, ("a:hash", "b:hash"))]))
    d.strategy.start_scheduling()
    d.taken()
    assert d.finish(0) == []
    d.reset(0)
    assert d.finish(1) == []
    d.strategy.restart_tasks((0,))
    assert d.taken() == [[0]]
    assert d.finish(0) == [[2]]


def test_a_hybrid_consumer_does_not_start_while_its_producer_waits_for_a_restart(job) -> None:
    stages = [("a", 1, ()), ("b", 1, ()), ("join", 1, ("a:hash", "b:hash/BATCH"))]
    d = Decisions(job(stages, shuffle_mode="ALL_EXCHANGES_HYBRID_FULL"))
    d.strategy.start_scheduling()
    d.taken()
    d.reset(0)
    assert d.finish(1) == []
    d.strategy.restart_tasks((0,))
    assert d.taken() == [[0], [2]]


def test_finished_vertices_of_a_former_process_are_not_scheduled(job) -> None:
    d = Decisions(job([("a", 2, ()), ("b", 2, ("a:hash",)), ("c", 1, ("b:hash",))]))
    d.states[:3] = ExecutionState.FINISHED.value
    d.strategy.start_scheduling(finished=[0, 1, 2])
    assert d.taken() == [[3]]
    assert d.finish(3) == [[4]]


def test_a_region_that_makes_part_of_its_own_input_waits_for_the_other_parts_only(job) -> None:
    stages = [
        ("a", 2, ()),
        ("b", 6, ("a:rescale/PIPELINED", "a:rescale/BATCH")),
        ("c", 7, ("a:rescale/PIPELINED", "b:rescale/BATCH")),
        ("d", 2, ("a:rescale/PIPELINED",)),
        ("e", 3, ("c:rescale/PIPELINED", "b:rescale/BATCH")),
    ]
    d = Decisions(job(stages))
    assert d.topology.n_regions == 2
    first, second = d.topology.vertices_of(0), d.topology.vertices_of(1)
    d.strategy.start_scheduling()
    assert d.taken() == [second]
    # the middle subtask of e reads the third and the fourth subtask of b, one of each region
    awaited = d.first["b"] + 3
    assert awaited in second
    assert d.finish(*(vertex for vertex in second if vertex != awaited)) == []
    assert d.finish(awaited) == [first]
    d.reset(awaited)
    assert d.finish(awaited) == []


def test_counters_that_went_wrong_are_found(job) -> None:
    d = Decisions(job([("a", 2, ()), ("b", 3, ("a:hash",))]))
    d.strategy.start_scheduling()
    d.finish(0)
    d.strategy._missing[0] = 0
    with pytest.raises(InvariantViolatedError, match="group 0 misses 1, not 0"):
        d.strategy.validate(d.states)
    with pytest.raises(InvariantViolatedError, match="counts as finished"):
        d.strategy.validate(np.zeros_like(d.states))


@pytest.mark.parametrize("parallelism", [300, 600])
def test_the_work_does_not_grow_with_the_square_of_the_width(job, parallelism: int) -> None:
    d = Decisions(job([("a", parallelism, ()), ("b", parallelism, ("a:hash",))]))
    asked = 0
    consumable = d.strategy._are_inputs_consumable

    def counting(region: int) -> bool:
        nonlocal asked
        asked += 1
        return consumable(region)

    d.strategy._are_inputs_consumable = counting
    d.strategy.start_scheduling()
    for vertex in range(parallelism):
        d.strategy.on_execution_finished(vertex)
    assert len(d.taken()) == 2 * parallelism
    assert asked == 2 * parallelism
