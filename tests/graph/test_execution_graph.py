from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from flinkmagic.errors import graph as errors
from flinkmagic.errors.scheduling import IllegalStateTransitionError
from flinkmagic.graph.execution import ExecutionAttemptID
from flinkmagic.graph.execution_graph import MAX_PRIOR_EXECUTIONS, ExecutionGraph
from flinkmagic.graph.execution_job_vertex import default_max_parallelism
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.graph.job_graph import JobGraph
from flinkmagic.graph.partitioner import PartitionerKind
from flinkmagic.graph.transformations import (
    OneInputTransformation,
    PartitionTransformation,
    SinkTransformation,
    SourceTransformation,
)

JobGraphOf = Callable[..., JobGraph]
S = ExecutionState


@pytest.fixture
def graph(job_graph: JobGraphOf) -> ExecutionGraph:
    """Three readers, two writers, all to all."""
    source = SourceTransformation("Read", parallelism=3)
    sink = SinkTransformation(PartitionTransformation(source, PartitionerKind.HASH), "Write", parallelism=2)
    return ExecutionGraph(job_graph(sink), at_ms=10.0)


def run(graph: ExecutionGraph, index: int, at_ms: float = 20.0) -> None:
    for step, state in enumerate((S.SCHEDULED, S.DEPLOYING, S.INITIALIZING, S.RUNNING)):
        graph.transition(index, state, at_ms + step)


def test_vertices_have_global_indices_in_topological_order(graph: ExecutionGraph) -> None:
    assert graph.n_vertices == 5
    assert graph.n_partitions == 3
    read, write = graph.job_vertices
    assert (read.name, read.vertices) == ("Source: Read", range(3))
    assert (write.name, write.vertices) == ("Sink: Write", range(3, 5))
    assert [graph.execution_vertex(index).task_name for index in range(5)] == [
        "Source: Read (1/3)", "Source: Read (2/3)", "Source: Read (3/3)", "Sink: Write (1/2)", "Sink: Write (2/2)",
    ]  # fmt: skip
    assert graph.job_vertex_by_id(write.id) is write
    with pytest.raises(IndexError, match="5 execution vertices, no number 5"):
        graph.execution_vertex(5)


def test_partitions_know_their_producers(graph: ExecutionGraph) -> None:
    assert [graph.produced_partitions(index) for index in range(5)] == [[0], [1], [2], [], []]
    assert graph.results[0].producer is graph.job_vertices[0]


def test_everything_begins_in_created(graph: ExecutionGraph) -> None:
    execution = graph.execution_vertex(4).current_execution
    assert execution.attempt_id == ExecutionAttemptID(graph.job_vertices[1].id, 1, 0)
    assert str(execution.attempt_id) == f"{graph.job_vertices[1].id}_1_0"
    assert (execution.state, execution.timestamps) == (S.CREATED, {S.CREATED: 10.0})
    assert graph.timestamps(S.CREATED).tolist() == [10.0] * 5
    assert np.isnan(graph.timestamps(S.RUNNING)).all()


def test_transitions_are_dated(graph: ExecutionGraph) -> None:
    run(graph, 1)
    graph.transition(1, S.FINISHED, 30.0)
    vertex = graph.execution_vertex(1)
    assert vertex.state is S.FINISHED
    assert vertex.current_execution.timestamps == {
        S.CREATED: 10.0, S.SCHEDULED: 20.0, S.DEPLOYING: 21.0, S.INITIALIZING: 22.0, S.RUNNING: 23.0, S.FINISHED: 30.0,
    }  # fmt: skip
    assert graph.execution_vertex(0).state is S.CREATED


def test_a_vertex_may_be_an_element_of_an_array(graph: ExecutionGraph) -> None:
    index = np.array([4])[0]
    graph.transition(index, S.FAILED, 20.0, ValueError("boom"))
    assert str(graph.current_execution(4).error) == "boom"
    with pytest.raises(IllegalStateTransitionError):
        graph.transition(index, S.RUNNING, 21.0)


def test_many_vertices_move_together_or_not_at_all(graph: ExecutionGraph) -> None:
    graph.transition(np.array([0, 1, 2]), S.SCHEDULED, 20.0)
    assert graph.state.tolist() == [1, 1, 1, 0, 0]
    with pytest.raises(IllegalStateTransitionError, match=r"Write \(1/2\)#0 cannot go from CREATED"):
        graph.transition(np.array([2, 3]), S.DEPLOYING, 21.0)
    assert graph.state.tolist() == [1, 1, 1, 0, 0]


def test_an_illegal_transition_tells_the_history(graph: ExecutionGraph) -> None:
    run(graph, 0)
    with pytest.raises(IllegalStateTransitionError) as refused:
        graph.transition(0, S.SCHEDULED, 40.0)
    assert refused.value.history == (
        "CREATED at 10 ms", "SCHEDULED at 20 ms", "DEPLOYING at 21 ms", "INITIALIZING at 22 ms", "RUNNING at 23 ms",
    )  # fmt: skip
    assert (refused.value.source, refused.value.target) == ("RUNNING", "SCHEDULED")


def test_only_a_recovering_job_manager_finishes_what_was_not_deployed(graph: ExecutionGraph) -> None:
    with pytest.raises(IllegalStateTransitionError):
        graph.transition(0, S.FINISHED, 20.0)
    graph.transition(0, S.FINISHED, 20.0, recovering=True)
    assert graph.execution_vertex(0).state is S.FINISHED


def test_a_restart_is_a_new_execution_and_keeps_the_old_one(graph: ExecutionGraph) -> None:
    run(graph, 3)
    graph.assign_resource(3, "executor-1", "slot-7")
    graph.transition(3, S.FAILED, 25.0, ValueError("boom"))
    graph.reset_for_new_execution(3, 50.0)
    vertex = graph.execution_vertex(3)
    (old,) = vertex.prior_executions
    assert (old.attempt, old.state, old.resource_id, old.slot, str(old.error)) == (
        0, S.FAILED, "executor-1", "slot-7", "boom",
    )  # fmt: skip
    assert old.timestamps[S.FAILED] == 25.0
    new = vertex.current_execution
    assert (new.attempt, new.state, new.resource_id, new.slot, new.error) == (1, S.CREATED, None, None, None)
    assert new.timestamps == {S.CREATED: 50.0}
    assert vertex.task_name_with_attempt == "Sink: Write (1/2)#1"
    assert graph.execution_vertex(4).current_execution.timestamps == {S.CREATED: 10.0}


def test_only_the_latest_prior_executions_are_kept(graph: ExecutionGraph) -> None:
    for attempt in range(MAX_PRIOR_EXECUTIONS + 3):
        graph.reset_for_new_execution(0, float(attempt))
    kept = graph.execution_vertex(0).prior_executions
    assert [execution.attempt for execution in kept] == list(range(3, MAX_PRIOR_EXECUTIONS + 3))


def test_resources_and_slots_are_named_per_execution(graph: ExecutionGraph) -> None:
    for index, names in ((0, ("e1", "s1")), (1, ("e1", "s2")), (2, ("e2", "s1"))):
        graph.assign_resource(index, *names)
    executions = [graph.current_execution(index) for index in range(4)]
    assert [(e.resource_id, e.slot) for e in executions] == [("e1", "s1"), ("e1", "s2"), ("e2", "s1"), (None, None)]


def test_an_archive_does_not_change(graph: ExecutionGraph) -> None:
    run(graph, 0)
    graph.assign_resource(0, "e1", "s1")
    archive = graph.archive()
    graph.transition(0, S.FAILED, 90.0, ValueError("boom"))
    graph.reset_for_new_execution(0, 91.0)
    graph.assign_resource(1, "e2", "s2")
    execution = archive.current_execution(0)
    assert (execution.state, execution.attempt, execution.resource_id, execution.error) == (S.RUNNING, 0, "e1", None)
    assert archive.prior_executions(0) == ()
    assert archive.current_execution(1).resource_id is None
    with pytest.raises(ValueError, match="read-only"):
        archive.state[0] = 0
    assert archive.job_graph is graph.job_graph
    assert not hasattr(archive, "transition")


@pytest.mark.parametrize(
    ("parallelism", "expected"), [(1, 128), (85, 128), (86, 256), (90, 256), (200, 512), (30_000, 32_768)]
)
def test_the_default_max_parallelism_leaves_room(parallelism: int, expected: int) -> None:
    assert default_max_parallelism(parallelism, 1 << 15) == expected


def test_parallelism_above_the_maximum_is_refused(job_graph: JobGraphOf) -> None:
    mapped = OneInputTransformation(SourceTransformation("s"), "map", parallelism=5, max_parallelism=4)
    with pytest.raises(errors.ParallelismAboveMaxError, match="'map' has parallelism 5, above its max parallelism 4"):
        ExecutionGraph(job_graph(mapped))
    wide = OneInputTransformation(SourceTransformation("s"), "wide", parallelism=32_769)
    with pytest.raises(errors.ParallelismAboveMaxError, match="above its max parallelism 32768"):
        ExecutionGraph(job_graph(wide))


def test_an_undecided_parallelism_is_one(job_graph: JobGraphOf) -> None:
    graph = ExecutionGraph(job_graph(SinkTransformation(SourceTransformation("s"), "sink"), parallelism=-1))
    assert [(v.job_vertex.parallelism, v.parallelism) for v in graph.job_vertices] == [(-1, 1)]


def test_co_located_subtasks_must_be_in_one_region(job_graph: JobGraphOf) -> None:
    left = SinkTransformation(SourceTransformation("a"), "left", co_location_group="k", parallelism=3)
    right = SinkTransformation(SourceTransformation("b"), "right", co_location_group="k", parallelism=3)
    with pytest.raises(errors.CoLocationAcrossRegionsError, match="Subtask 0 of"):
        ExecutionGraph(job_graph(left, right))


def test_nothing_grows_with_the_product_of_two_parallelisms(job_graph: JobGraphOf) -> None:
    source = SourceTransformation("s", parallelism=30_000)
    sink = SinkTransformation(PartitionTransformation(source, PartitionerKind.HASH), "sink", parallelism=30_000)
    graph = ExecutionGraph(job_graph(sink))
    assert graph.n_groups == 1
    assert graph.pipelined_regions.count == 1
    (connection,) = graph.connections
    assert len(connection.partition_range(0)) * len(connection.consumer_range(0)) == 900_000_000
