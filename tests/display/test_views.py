from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from flinkmagic.display import JobSnapshot, execution_view, job_view, regions_view, states_by_vertex, stream_view
from flinkmagic.display.snapshot import OperatorLine
from flinkmagic.display.views import merged
from flinkmagic.graph.environment import StreamExecutionEnvironment
from flinkmagic.graph.exchange_mode import ChainingStrategy, RuntimeExecutionMode, StreamExchangeMode
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.graph.job_graph import JobGraph
from flinkmagic.graph.job_graph_generator import create_job_graph
from flinkmagic.graph.partitioner import PartitionerKind
from flinkmagic.graph.stream_graph import StreamGraph
from flinkmagic.graph.transformations import (
    OneInputTransformation,
    PartitionTransformation,
    SinkTransformation,
    SourceTransformation,
    Transformation,
    TwoInputTransformation,
)

AGG = 'groupBy("hour").agg(F.avg("delay"))'


def said(call: str, operator: str, line: int, variable: str = "", cell: str = "cell 3") -> Mapping[str, Any]:
    return {
        "call": call, "operator": operator, "line": line, "cell": cell, "variable": variable, "code": f"v = {call}",
    }  # fmt: skip


def exchange(upstream: Transformation, kind: PartitionerKind) -> PartitionTransformation:
    return PartitionTransformation(upstream, kind, StreamExchangeMode.BATCH)


def compiled(cell_of_carriers: str = "cell 3") -> tuple[StreamGraph, JobGraph, ExecutionGraph]:
    """Flights joined with broadcast carriers; one aggregate read by two sinks."""
    env = StreamExecutionEnvironment("delays", RuntimeExecutionMode.BATCH, 4)
    flights = SourceTransformation("flights", metadata=said("spark.read.parquet('f')", "Scan parquet", 1))
    late = OneInputTransformation(flights, "Filter", metadata=said('where("delay > 15")', "Filter", 2, "late"))
    carriers = SourceTransformation(
        "carriers", parallelism=1, metadata=said("spark.read.csv('c')", "Scan csv", 3, cell=cell_of_carriers)
    )
    join = TwoInputTransformation(
        late, exchange(carriers, PartitionerKind.BROADCAST), "BroadcastHashJoin",
        chaining_strategy=ChainingStrategy.HEAD_WITH_INPUTS, metadata=said("join(carriers)", "BroadcastHashJoin", 4),
    )  # fmt: skip
    partial = OneInputTransformation(join, "Agg", metadata=said(AGG, "HashAggregate (partial)", 5))
    shuffled = exchange(partial, PartitionerKind.HASH)
    operators = [late, join, partial]
    for number in (1, 2):
        final = OneInputTransformation(shuffled, f"Agg{number}", metadata=said(AGG, "HashAggregate", 5))
        operators += [
            final,
            SinkTransformation(final, f"out{number}", metadata=said("write.parquet()", "Write", 6)),
        ]
    for operator in operators:
        env.add_operator(operator)
    stream_graph = env.get_stream_graph()
    job_graph = create_job_graph(stream_graph)
    return stream_graph, job_graph, ExecutionGraph(job_graph)


def test_stream_view_shows_the_users_call_first_and_sparks_operator_second() -> None:
    stream_graph, job_graph, _ = compiled()
    view = stream_view(stream_graph, job_graph)
    by_title = {node.title: node for node in view.nodes}
    assert by_title["join(carriers)"].operators[0].subtitle == "line 4 · BroadcastHashJoin"
    assert by_title['where("delay > 15")'].operators[0].code == 'v = where("delay > 15")'
    assert [node.role for node in view.nodes if "read" in node.title] == ["source", "source"]
    assert by_title["join(carriers)"].role == "join"
    assert by_title["write.parquet()"].role == "sink"
    assert view.summary == "9 operators in 4 job vertices"


def test_stream_edges_say_their_partitioner_and_whether_they_are_chained() -> None:
    stream_graph, job_graph, _ = compiled()
    view = stream_view(stream_graph, job_graph)
    kinds = sorted((edge.label, edge.chained) for edge in view.edges)
    assert kinds == [("BROADCAST", False)] + [("FORWARD", True)] * 5 + [("HASH", False)] * 2
    assert {cluster.label for cluster in view.clusters} == {"one job vertex"}
    assert sorted(len(cluster.nodes) for cluster in view.clusters) == [2, 2, 4]
    assert all(node.vertex_id in job_graph.vertices for node in view.nodes)


def test_a_stream_graph_alone_has_no_frames() -> None:
    view = stream_view(compiled()[0])
    assert view.clusters == ()
    assert {node.vertex_id for node in view.nodes} == {""}
    assert view.summary == "9 operators"


def test_job_view_lists_a_chain_from_its_source_on_and_says_what_is_shared() -> None:
    _, job_graph, _ = compiled()
    view = job_view(job_graph)
    join = next(node for node in view.nodes if node.role == "join")
    assert [(line.title, line.operator) for line in join.operators] == [
        ("spark.read.parquet('f')", "Scan parquet"), ('where("delay > 15")', "Filter"),
        ("join(carriers)", "BroadcastHashJoin"), (AGG, "HashAggregate (partial)"),
    ]  # fmt: skip
    assert join.badges == ("shared by 2",)
    assert [node.parallelism for node in view.nodes] == [1, 4, 4, 4]
    assert [(edge.label, dict(edge.facts)["distribution"]) for edge in view.edges] == [
        ("BROADCAST · blocking", "ALL_TO_ALL"), ("HASH · blocking", "ALL_TO_ALL"), ("HASH · blocking", "ALL_TO_ALL"),
    ]  # fmt: skip
    assert view.summary == "9 operators in 4 job vertices, 13 tasks"


def test_cells_are_named_where_there_are_several() -> None:
    stream_graph, job_graph, _ = compiled(cell_of_carriers="cell 1")
    notes = {line.where for node in stream_view(stream_graph, job_graph).nodes for line in node.operators}
    assert notes == {"cell 1, line 3"} | {f"cell 3, line {line}" for line in (1, 2, 4, 5, 6)}


def test_operators_of_one_call_are_one_line() -> None:
    lines = [OperatorLine("agg()", op, "line 5") for op in ("Project", "HashAggregate")] + [OperatorLine("", "Sort")]
    assert [(line.call, line.operator) for line in merged(lines)] == [
        ("agg()", "Project → HashAggregate"),
        ("", "Sort"),
    ]


def test_execution_view_lists_who_reads_of_whom() -> None:
    view = execution_view(compiled()[2])
    pairs = [edge.pairs for edge in view.edges]
    assert pairs[0] == tuple((0, consumer) for consumer in range(4))
    assert pairs[1] == tuple((producer, consumer) for producer in range(4) for consumer in range(4))
    assert view.summary == "13 execution vertices of 4 job vertices, 13 pipelined regions"


def streaming(parallelism: int, sink_parallelism: int, kind: PartitionerKind) -> ExecutionGraph:
    env = StreamExecutionEnvironment("live", RuntimeExecutionMode.STREAMING, parallelism)
    mapped = OneInputTransformation(SourceTransformation("clicks", bounded=False), "Map")
    split = PartitionTransformation(mapped, kind)
    sink = SinkTransformation(split, "out", parallelism=sink_parallelism)
    env.add_operator(mapped)
    env.add_operator(sink)
    return ExecutionGraph(create_job_graph(env.get_stream_graph()))


def test_pointwise_connections_follow_flinks_rule() -> None:
    (edge,) = execution_view(streaming(2, 5, PartitionerKind.RESCALE)).edges
    assert edge.pairs == ((0, 0), (0, 1), (0, 2), (1, 3), (1, 4))
    assert edge.label == "RESCALE · pipelined bounded"


def test_too_many_connections_are_one_arrow() -> None:
    (edge,) = execution_view(streaming(100, 100, PartitionerKind.HASH)).edges
    assert edge.pairs is None
    assert dict(edge.facts)["distribution"] == "ALL_TO_ALL"


def test_regions_frame_the_vertices_that_run_together() -> None:
    assert [(frame.label, len(frame.nodes)) for frame in regions_view(compiled()[2]).clusters] == [
        ("1 region", 1), ("4 regions", 1), ("4 regions", 1),
        ("4 regions", 1),
    ]  # fmt: skip
    (frame,) = regions_view(streaming(3, 2, PartitionerKind.HASH)).clusters
    assert (frame.label, len(frame.nodes)) == ("1 region over 2 vertices", 2)
    (frame,) = regions_view(streaming(2, 4, PartitionerKind.RESCALE)).clusters
    assert (frame.label, len(frame.nodes)) == ("2 regions over 2 vertices", 2)


def test_snapshots_carry_the_states_of_the_execution_graph() -> None:
    _, job_graph, graph = compiled()
    for state in (ExecutionState.SCHEDULED, ExecutionState.DEPLOYING, ExecutionState.INITIALIZING):
        graph.transition(0, state, 1.0)
    snapshot = JobSnapshot("delays", "RUNNING", states=states_by_vertex(graph.archive()))
    graph.transition(0, ExecutionState.RUNNING, 2.0)
    painted = job_view(job_graph).paint(snapshot)
    assert painted.nodes[0].id == graph.job_vertices[0].id
    assert painted.nodes[0].state_counts == {"INITIALIZING": 1}
    assert snapshot.task_counts == {"CREATED": 12, "INITIALIZING": 1}
    assert stream_view(compiled()[0]).nodes[0].states == b""
    painted = job_view(job_graph).paint(JobSnapshot("delays", "RUNNING", states=states_by_vertex(graph)))
    assert painted.nodes[0].leading_state == "RUNNING"


def test_a_node_that_nothing_was_said_of_goes_by_flinks_name() -> None:
    graph = streaming(1, 1, PartitionerKind.HASH)
    assert [node.title for node in job_view(graph.job_graph).nodes] == ["Map", "Sink: out"]


@pytest.mark.parametrize("description", ["<b>kept as it is</b>", "Reads clicks"])
def test_descriptions_are_shown_where_there_is_no_call(description: str) -> None:
    env = StreamExecutionEnvironment("d", RuntimeExecutionMode.BATCH, 1)
    env.add_operator(SinkTransformation(SourceTransformation("s", description=description), "t"))
    view = stream_view(env.get_stream_graph())
    assert [node.title for node in view.nodes if node.role == "source"] == [description]
