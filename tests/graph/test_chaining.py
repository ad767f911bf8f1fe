from __future__ import annotations

from collections.abc import Callable

import pytest

from flinkmagic.graph.chaining import Chaining, is_chainable
from flinkmagic.graph.exchange_mode import ChainingStrategy, StreamExchangeMode
from flinkmagic.graph.job_graph import JobGraph, JobVertex
from flinkmagic.graph.partitioner import PartitionerKind
from flinkmagic.graph.stream_graph import StreamGraph
from flinkmagic.graph.transformations import (
    MultipleInputTransformation,
    OneInputTransformation,
    PartitionTransformation,
    SinkTransformation,
    SourceTransformation,
    Transformation,
    TwoInputTransformation,
    UnionTransformation,
)

StreamGraphOf = Callable[..., StreamGraph]
JobGraphOf = Callable[..., JobGraph]
Find = Callable[[JobGraph, str], JobVertex]
WITH_INPUTS = ChainingStrategy.HEAD_WITH_INPUTS


def chained(graph: StreamGraph) -> bool:
    """Whether the edge into the last node is chained."""
    (edge,) = list(graph.nodes.values())[-1].in_edges
    assert Chaining(graph).is_chained_output(edge) == is_chainable(edge, graph.chaining_enabled)
    return is_chainable(edge, graph.chaining_enabled)


def source(name: str = "source", **common: object) -> SourceTransformation:
    return SourceTransformation(name, **common)


def test_equal_neighbours_are_chained_whatever_their_max_parallelism_and_co_location(
    stream_graph: StreamGraphOf,
) -> None:
    assert chained(stream_graph(SinkTransformation(source(), "sink", max_parallelism=7, co_location_group="k")))


@pytest.mark.parametrize(
    "sink",
    [
        lambda: SinkTransformation(UnionTransformation([s := source(), s]), "two in-edges"),
        lambda: SinkTransformation(PartitionTransformation(source(), PartitionerKind.REBALANCE), "not forward"),
        lambda: SinkTransformation(source(), "another parallelism", parallelism=5),
        lambda: SinkTransformation(source(), "another group", slot_sharing_group="g"),
        lambda: SinkTransformation(source(chaining_strategy=ChainingStrategy.NEVER), "upstream NEVER"),
        lambda: SinkTransformation(source(), "NEVER", chaining_strategy=ChainingStrategy.NEVER),
        lambda: SinkTransformation(source(), "HEAD", chaining_strategy=ChainingStrategy.HEAD),
        lambda: SinkTransformation(source(), "SOURCES", chaining_strategy=ChainingStrategy.HEAD_WITH_SOURCES),
    ],
    ids=lambda sink: "",
)
def test_each_condition_can_keep_neighbours_apart(
    stream_graph: StreamGraphOf, sink: Callable[[], Transformation]
) -> None:
    graph = stream_graph(sink())
    assert not any(is_chainable(edge, graph.chaining_enabled) for edge in graph.edges)


def test_a_blocking_exchange_and_disabled_chaining_keep_neighbours_apart(stream_graph: StreamGraphOf) -> None:
    blocking = PartitionTransformation(source(), PartitionerKind.FORWARD, StreamExchangeMode.BATCH)
    assert not chained(stream_graph(SinkTransformation(blocking, "sink"), batch=True))
    hybrid = PartitionTransformation(source(), PartitionerKind.FORWARD, StreamExchangeMode.HYBRID_FULL)
    assert chained(stream_graph(SinkTransformation(hybrid, "sink"), batch=True))
    assert not chained(stream_graph(SinkTransformation(source(), "sink"), chaining=False))


def test_heads_and_tails_of_iterations_are_never_chained(job_graph: JobGraphOf) -> None:
    from flinkmagic.graph.transformations import FeedbackTransformation

    feedback = FeedbackTransformation(source())
    body = OneInputTransformation(feedback, "body")
    feedback.add_feedback_edge(body)
    assert len(job_graph(body).vertices) == 4


# HEAD_WITH_INPUTS


def test_a_join_takes_its_inputs_into_its_task(job_graph: JobGraphOf) -> None:
    flights = OneInputTransformation(source("flights"), "Filter")
    carriers = PartitionTransformation(source("carriers"), PartitionerKind.BROADCAST, StreamExchangeMode.BATCH)
    join = TwoInputTransformation(flights, carriers, "Join", chaining_strategy=WITH_INPUTS)
    project = OneInputTransformation(join, "Project", operator_factory="handle")
    graph = job_graph(flights, join, project, batch=True)
    build, stage = graph.vertices_in_topological_order()
    assert build.name == "Source: carriers"
    assert stage.name == "Join [Source: flights -> Filter] -> Project"
    assert [node.name for node in stage.operators] == ["Project", "Join", "Filter", "Source: flights"]
    assert stage.operator_factory == "handle"
    assert stage.head.name == "Join"
    assert [(edge.producer.name, edge.partitioner.kind) for edge in stage.inputs] == [
        ("Source: carriers", PartitionerKind.BROADCAST)
    ]


def test_taken_inputs_may_have_another_parallelism(job_graph: JobGraphOf) -> None:
    parts = [source(f"part {n}", parallelism=n) for n in (3, 4)]
    union = MultipleInputTransformation(
        [PartitionTransformation(part, PartitionerKind.RESCALE) for part in parts], "Union", parallelism=7,
        chaining_strategy=WITH_INPUTS,
    )  # fmt: skip
    narrowed = PartitionTransformation(union, PartitionerKind.RESCALE)
    coalesce = OneInputTransformation(narrowed, "Coalesce", parallelism=2, chaining_strategy=WITH_INPUTS)
    write = SinkTransformation(coalesce, "Write", parallelism=2)
    (stage,) = job_graph(union, coalesce, write, batch=True).vertices.values()
    assert stage.name == "Coalesce [Union [Source: part 3, Source: part 4]] -> Sink: Write"
    assert stage.parallelism == 2
    assert [node.name for node in stage.operators] == [
        "Sink: Write", "Coalesce", "Union", "Source: part 3", "Source: part 4",
    ]  # fmt: skip


def test_an_exchange_into_a_taken_chain_feeds_the_stage(job_graph: JobGraphOf, vertex: Find) -> None:
    exchanged = PartitionTransformation(source("a"), PartitionerKind.HASH, StreamExchangeMode.BATCH)
    sort = OneInputTransformation(exchanged, "Sort")
    other = OneInputTransformation(
        PartitionTransformation(source("b"), PartitionerKind.HASH, StreamExchangeMode.BATCH), "Sort too"
    )
    join = TwoInputTransformation(sort, other, "Join", chaining_strategy=WITH_INPUTS)
    graph = job_graph(sort, other, join, batch=True)
    stage = vertex(graph, "Join")
    assert stage.name == "Join [Sort, Sort too]"
    assert [edge.producer.name for edge in stage.inputs] == ["Source: a", "Source: b"]
    assert [edge.stream_edge.target.name for edge in stage.inputs] == ["Sort", "Sort too"]


def test_a_self_join_takes_its_one_input_once(job_graph: JobGraphOf) -> None:
    both = source("both")
    join = TwoInputTransformation(both, both, "Join", chaining_strategy=WITH_INPUTS)
    (stage,) = job_graph(join, batch=True).vertices.values()
    assert stage.name == "Join [Source: both]"
    assert len(stage.operators) == 2


def test_a_chain_that_something_else_reads_too_is_left_alone(job_graph: JobGraphOf) -> None:
    shared = source("shared")
    exchanged = PartitionTransformation(shared, PartitionerKind.HASH, StreamExchangeMode.BATCH)
    count = OneInputTransformation(exchanged, "Count")
    join = TwoInputTransformation(shared, count, "Join", chaining_strategy=WITH_INPUTS)
    graph = job_graph(count, join, batch=True)
    # Taken into the join, "shared" would wait for "Count", which reads it.
    assert [v.name for v in graph.vertices_in_topological_order()] == ["Source: shared", "Join [Count]"]


def test_an_input_of_two_takers_is_left_alone(job_graph: JobGraphOf) -> None:
    shared = source("shared")
    left = OneInputTransformation(shared, "left", chaining_strategy=WITH_INPUTS)
    right = OneInputTransformation(shared, "right", chaining_strategy=WITH_INPUTS)
    graph = job_graph(left, right, batch=True)
    assert sorted(v.name for v in graph.vertices.values()) == ["Source: shared", "left", "right"]


@pytest.mark.parametrize(
    ("common", "settings"),
    [
        ({"slot_sharing_group": "g"}, {}),
        ({"chaining_strategy": ChainingStrategy.NEVER}, {}),
        ({}, {"chaining": False}),
    ],
)
def test_what_keeps_an_input_out(job_graph: JobGraphOf, common: dict[str, object], settings: dict[str, bool]) -> None:
    join = TwoInputTransformation(
        source("a", **common), source("b", **common), "Join", chaining_strategy=WITH_INPUTS, slot_sharing_group="other"
    )
    assert len(job_graph(join, **settings).vertices) == 3


def test_an_all_to_all_input_is_kept_out(job_graph: JobGraphOf) -> None:
    shuffled = PartitionTransformation(source("a"), PartitionerKind.REBALANCE)
    graph = job_graph(TwoInputTransformation(shuffled, source("b"), "Join", chaining_strategy=WITH_INPUTS))
    assert sorted(v.name for v in graph.vertices.values()) == ["Join [Source: b]", "Source: a"]
