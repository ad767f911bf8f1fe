"""What a failure restarts."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from flinkmagic.errors.scheduling import PartitionNotFoundError
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.execution_state import ExecutionState as S
from flinkmagic.graph.job_graph import JobGraph
from flinkmagic.scheduling.failover.failover_strategy import (
    RestartAllFailoverStrategy,
    RestartPipelinedRegionFailoverStrategy,
)
from flinkmagic.scheduling.scheduling_topology import SchedulingTopology

ERROR = ValueError("broken")


class Missing:
    """Says that some partitions are gone."""

    def __init__(self, *partitions: int) -> None:
        self._partitions = partitions

    def unavailable_partitions(self, start: int, end: int) -> Iterable[int]:
        return [partition for partition in self._partitions if start <= partition < end]


def running(job_graph: JobGraph) -> ExecutionGraph:
    graph = ExecutionGraph(job_graph)
    for state in (S.SCHEDULED, S.DEPLOYING, S.INITIALIZING, S.RUNNING):
        graph.transition(np.arange(graph.n_vertices), state, 0.0)
    return graph


def restarted(graph: ExecutionGraph, vertex: int, error: BaseException = ERROR, *missing: int) -> list[int]:
    strategy = RestartPipelinedRegionFailoverStrategy(SchedulingTopology(graph), graph.state, Missing(*missing))
    return strategy.tasks_needing_restart(vertex, error)


CHAIN = [("a", 2, ()), ("b", 2, ("a:hash",)), ("c", 2, ("b:forward/BATCH",))]


def test_the_failed_region_and_all_that_reads_of_it(job) -> None:
    graph = running(job(CHAIN))
    assert restarted(graph, 5) == [5]
    assert restarted(graph, 2) == [2, 4]
    assert restarted(graph, 0) == [0, 2, 3, 4, 5]


def test_producers_of_what_is_gone_with_their_other_readers(job) -> None:
    graph = running(job(CHAIN))
    assert restarted(graph, 4, ERROR, 2) == [2, 4]
    assert restarted(graph, 4, ERROR, 1, 2) == [1, 2, 3, 4, 5]


def test_a_partition_that_the_failed_task_could_not_read_counts_as_gone(job) -> None:
    graph = running(job(CHAIN))
    lost = PartitionNotFoundError(graph.results[1].id, 0)
    assert restarted(graph, 4, lost) == [2, 4]
    wrapped = RuntimeError("fetch failed")
    wrapped.__cause__ = lost
    assert restarted(graph, 4, wrapped) == [2, 4]


def test_a_pipelined_region_restarts_as_a_whole(job) -> None:
    graph = running(job([("a", 2, ()), ("b", 2, ("a:hash",))], batch=False))
    assert restarted(graph, 3) == [0, 1, 2, 3]


def test_what_cannot_be_read_twice_is_made_again(job) -> None:
    stages = [("a", 1, ()), ("b", 1, ("a:hash",))]
    selective = running(job(stages, shuffle_mode="ALL_EXCHANGES_HYBRID_SELECTIVE"))
    assert restarted(selective, 1) == [0, 1]
    full = running(job(stages, shuffle_mode="ALL_EXCHANGES_HYBRID_FULL"))
    assert restarted(full, 1) == [1]


def test_tasks_that_never_started_are_passed_through_and_left_out(job) -> None:
    graph = ExecutionGraph(job([("a", 2, ()), ("b", 2, ("a:hash",))]))
    for state in (S.SCHEDULED, S.DEPLOYING, S.INITIALIZING, S.RUNNING):
        graph.transition(np.arange(2), state, 0.0)
    assert restarted(graph, 0) == [0]
    # the readers have not started, but they need both
    assert restarted(graph, 0, ERROR, 1) == [0, 1]


def test_full_restart_takes_all_that_ever_started(job) -> None:
    graph = running(job(CHAIN))
    graph.reset_for_new_execution(3, 0.0)
    assert RestartAllFailoverStrategy(graph.state).tasks_needing_restart(5, ERROR) == [0, 1, 2, 4, 5]
