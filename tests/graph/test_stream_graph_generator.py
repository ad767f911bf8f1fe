from __future__ import annotations

from collections.abc import Callable

import pytest

from flinkmagic.errors import graph as errors
from flinkmagic.graph.environment import StreamExecutionEnvironment
from flinkmagic.graph.exchange_mode import GlobalStreamExchangeMode, StreamExchangeMode
from flinkmagic.graph.partitioner import PartitionerKind
from flinkmagic.graph.stream_graph import Invokable, StreamGraph
from flinkmagic.graph.transformations import (
    CacheTransformation,
    CoFeedbackTransformation,
    FeedbackTransformation,
    MultipleInputTransformation,
    OneInputTransformation,
    OutputTag,
    PartitionTransformation,
    SelectTransformation,
    SideOutputTransformation,
    SinkTransformation,
    SourceTransformation,
    SplitTransformation,
    Transformation,
    TwoInputTransformation,
    UnionTransformation,
)

StreamGraphOf = Callable[..., StreamGraph]


def arrows(graph: StreamGraph) -> list[str]:
    return [f"{e.source.name} -{e.partitioner}-> {e.target.name}" for e in graph.edges]


def test_only_what_an_operator_reaches_is_in_the_graph(stream_graph: StreamGraphOf) -> None:
    source = SourceTransformation("used")
    PartitionTransformation(SourceTransformation("dangling"), PartitionerKind.HASH)
    graph = stream_graph(SinkTransformation(source, "sink"))
    assert [node.name for node in graph.nodes.values()] == ["Source: used", "Sink: sink"]
    assert [graph.nodes[id].name for id in graph.source_ids + graph.sink_ids] == ["Source: used", "Sink: sink"]


def test_an_implicit_edge_is_forward_between_equal_parallelisms_and_rebalance_between_others(
    stream_graph: StreamGraphOf,
) -> None:
    same = OneInputTransformation(SourceTransformation("source"), "same")
    assert arrows(stream_graph(same, OneInputTransformation(same, "other", parallelism=7))) == [
        "Source: source -FORWARD-> same",
        "same -REBALANCE-> other",
    ]


def test_of_partitions_in_a_row_the_last_spreads_and_the_first_says_how_it_is_exchanged(
    stream_graph: StreamGraphOf,
) -> None:
    stream: Transformation = SourceTransformation("source")
    stream = PartitionTransformation(stream, PartitionerKind.HASH, StreamExchangeMode.PIPELINED)
    stream = PartitionTransformation(stream, PartitionerKind.SHUFFLE, StreamExchangeMode.HYBRID_FULL)
    (edge,) = stream_graph(SinkTransformation(stream, "sink"), batch=True).edges
    assert edge.partitioner.kind is PartitionerKind.SHUFFLE
    assert edge.exchange_mode is StreamExchangeMode.PIPELINED


@pytest.mark.parametrize(("batch", "mode"), [(False, StreamExchangeMode.UNDEFINED), (True, StreamExchangeMode.BATCH)])
def test_exchange_mode_batch_is_undefined_in_streaming(
    stream_graph: StreamGraphOf, batch: bool, mode: StreamExchangeMode
) -> None:
    partition = PartitionTransformation(SourceTransformation("s"), PartitionerKind.HASH, StreamExchangeMode.BATCH)
    (edge,) = stream_graph(SinkTransformation(partition, "sink"), batch=batch).edges
    assert edge.exchange_mode is mode


def test_forward_between_different_parallelisms_is_refused_edge_by_edge(stream_graph: StreamGraphOf) -> None:
    union = UnionTransformation([SourceTransformation("fits"), SourceTransformation("does not", parallelism=4)])
    forward = PartitionTransformation(union, PartitionerKind.FORWARD)
    with pytest.raises(errors.ForwardChangesParallelismError, match=r"'Source: does not-\d+' \(parallelism 4\)"):
        stream_graph(SinkTransformation(forward, "sink"))


def test_a_union_with_itself_has_two_edges_that_can_be_told_apart(stream_graph: StreamGraphOf) -> None:
    source = SourceTransformation("source")
    graph = stream_graph(SinkTransformation(UnionTransformation([source, source]), "sink"))
    assert len(set(graph.edges)) == 2


def test_inputs_are_numbered_by_position(stream_graph: StreamGraphOf) -> None:
    sources = [SourceTransformation(f"s{i}") for i in range(3)]
    join = TwoInputTransformation(sources[0], sources[1], "join")
    many = MultipleInputTransformation([join, sources[2], UnionTransformation(sources[:2])], "many")
    graph = stream_graph(join, many)
    by_name = {node.name: node for node in graph.nodes.values()}
    assert [edge.type_number for edge in by_name["join"].in_edges] == [1, 2]
    assert [edge.type_number for edge in by_name["many"].in_edges] == [1, 2, 3, 3]
    assert by_name["many"].invokable is Invokable.MULTIPLE_INPUT


def test_a_slot_sharing_group_is_inherited_where_all_inputs_agree(stream_graph: StreamGraphOf) -> None:
    a, b = SourceTransformation("a", slot_sharing_group="x"), SourceTransformation("b", slot_sharing_group="y")
    same = TwoInputTransformation(a, PartitionTransformation(a, PartitionerKind.HASH), "same")
    mixed = TwoInputTransformation(a, b, "mixed")
    told = TwoInputTransformation(a, b, "told", slot_sharing_group="z")
    groups = {n.name: n.slot_sharing_group for n in stream_graph(same, mixed, told).nodes.values()}
    assert groups["same"] == "x"
    assert groups["mixed"] == "default"
    assert groups["told"] == "z"


def test_max_parallelism_is_the_operators_own_or_the_jobs(stream_graph: StreamGraphOf) -> None:
    source = SourceTransformation("source", max_parallelism=10)
    graph = stream_graph(SinkTransformation(source, "sink"), max_parallelism=64)
    assert [node.max_parallelism for node in graph.nodes.values()] == [10, 64]
    graph = stream_graph(SinkTransformation(SourceTransformation("source"), "sink"))
    assert [node.max_parallelism for node in graph.nodes.values()] == [-1, -1]


def test_side_outputs_go_along_edges(stream_graph: StreamGraphOf) -> None:
    source = SourceTransformation("source")
    late = SideOutputTransformation(PartitionTransformation(source, PartitionerKind.RESCALE), "late")
    (edge,) = stream_graph(SinkTransformation(late, "sink")).edges
    assert edge.output_tag == OutputTag("late")
    assert edge.partitioner.kind is PartitionerKind.RESCALE


def test_a_side_output_has_one_type(stream_graph: StreamGraphOf) -> None:
    source = SourceTransformation("source")
    texts = SinkTransformation(SideOutputTransformation(source, OutputTag("x", "STRING")), "texts")
    longs = SinkTransformation(SideOutputTransformation(source, OutputTag("x", "LONG")), "longs")
    with pytest.raises(errors.SideOutputTypeClashError, match="'x' is read as STRING and as LONG"):
        stream_graph(texts, longs)


def test_an_iteration_has_a_head_and_a_tail_of_its_own(stream_graph: StreamGraphOf) -> None:
    feedback = FeedbackTransformation(SourceTransformation("source"))
    body = OneInputTransformation(feedback, "body", slot_sharing_group="loop")
    feedback.add_feedback_edge(body)
    graph = stream_graph(body)
    ((head, tail),) = graph.iterations
    assert (head.id, tail.id) == (-1, -2)
    assert head.label == f"iteration-source:{feedback.id}"
    assert tail.label == f"iteration-sink:{feedback.id}"
    assert head.co_location_group == tail.co_location_group == f"IterationCoLocationGroup-{feedback.id}"
    assert head.slot_sharing_group == tail.slot_sharing_group == "loop"
    assert (head.max_parallelism, tail.max_parallelism) == (-1, 2)
    assert sorted(arrows(graph)) == sorted(
        [
            "Source: source -FORWARD-> body",
            f"IterationSource-{feedback.id} -FORWARD-> body",
            f"body -FORWARD-> IterationSink-{feedback.id}",
        ]
    )


def test_a_co_iteration_feeds_the_second_input(stream_graph: StreamGraphOf) -> None:
    feedback = CoFeedbackTransformation()
    join = TwoInputTransformation(SourceTransformation("source"), feedback, "join")
    feedback.add_feedback_edge(join)
    graph = stream_graph(join)
    node = next(node for node in graph.nodes.values() if node.name == "join")
    assert [(edge.source.invokable, edge.type_number) for edge in node.in_edges] == [
        (Invokable.SOURCE, 1),
        (Invokable.ITERATION_HEAD, 2),
    ]


def test_what_flink_refuses_of_iterations(stream_graph: StreamGraphOf) -> None:
    feedback = FeedbackTransformation(SourceTransformation("source"))
    body = OneInputTransformation(feedback, "body")
    with pytest.raises(errors.NoFeedbackEdgesError):
        stream_graph(body)
    feedback.add_feedback_edge(body)
    with pytest.raises(errors.IterationInBatchError):
        stream_graph(body, batch=True)
    feedback.add_feedback_edge(OneInputTransformation(body, "wide", parallelism=9))
    with pytest.raises(errors.FeedbackParallelismError):
        stream_graph(body)


def test_selections_go_along_edges(stream_graph: StreamGraphOf) -> None:
    split = SplitTransformation(OneInputTransformation(SourceTransformation("source"), "map"))
    outer = SelectTransformation(SelectTransformation(split, ["inner"]), ["outer"])
    graph = stream_graph(SinkTransformation(outer, "sink"))
    assert graph.has_split
    assert [edge.selected_names for edge in graph.edges] == [(), ("outer",)]


def test_a_program_with_splits_keeps_its_blocking_exchanges(stream_graph: StreamGraphOf) -> None:
    select = SelectTransformation(SplitTransformation(SourceTransformation("source")), ["a"])
    partition = PartitionTransformation(select, PartitionerKind.FORWARD, StreamExchangeMode.BATCH)
    (edge,) = stream_graph(SinkTransformation(partition, "sink")).edges
    assert edge.exchange_mode is StreamExchangeMode.BATCH


def test_what_flink_refuses_of_splits(stream_graph: StreamGraphOf) -> None:
    source = SourceTransformation("source")
    select = SelectTransformation(SplitTransformation(source), ["a"])
    again = UnionTransformation([source, PartitionTransformation(select, PartitionerKind.HASH)])
    with pytest.raises(errors.SplitOfSplitError):
        stream_graph(SinkTransformation(SplitTransformation(again), "sink"))
    with pytest.raises(errors.SplitOfSideOutputError):
        stream_graph(SinkTransformation(SplitTransformation(SideOutputTransformation(source, "x")), "sink"))
    with pytest.raises(errors.SideOutputOfSelectError):
        stream_graph(SinkTransformation(SideOutputTransformation(select, "x"), "sink"))


def test_batch_needs_bounded_sources_and_streaming_does_not(stream_graph: StreamGraphOf) -> None:
    def sink() -> Transformation:
        return SinkTransformation(SourceTransformation("endless", bounded=False), "sink")

    with pytest.raises(errors.UnboundedSourceInBatchError, match="'endless'"):
        stream_graph(sink(), batch=True)
    assert len(stream_graph(sink()).nodes) == 2


def test_a_program_needs_an_operator() -> None:
    with pytest.raises(errors.NoOperatorsError):
        StreamExecutionEnvironment("empty").get_stream_graph()


@pytest.mark.parametrize(
    ("shuffle_mode", "mode"),
    [
        (None, GlobalStreamExchangeMode.ALL_EDGES_BLOCKING),
        ("ALL_EXCHANGES_PIPELINED", GlobalStreamExchangeMode.ALL_EDGES_PIPELINED),
        ("ALL_EXCHANGES_HYBRID_SELECTIVE", GlobalStreamExchangeMode.ALL_EDGES_HYBRID_SELECTIVE),
    ],
)
def test_the_shuffle_mode_counts_in_batch_only(
    stream_graph: StreamGraphOf, shuffle_mode: str | None, mode: GlobalStreamExchangeMode
) -> None:
    def sink() -> Transformation:
        return SinkTransformation(SourceTransformation("source"), "sink")

    assert stream_graph(sink(), batch=True, shuffle_mode=shuffle_mode).global_exchange_mode is mode
    streaming = stream_graph(sink(), shuffle_mode=shuffle_mode)
    assert streaming.global_exchange_mode is GlobalStreamExchangeMode.ALL_EDGES_PIPELINED


def test_a_cache_is_written_by_an_edge_of_its_own_and_read_as_a_source(stream_graph: StreamGraphOf) -> None:
    mapped = OneInputTransformation(SourceTransformation("source"), "map", parallelism=3)
    cache = CacheTransformation(mapped, dataset_id="kept")
    graph = stream_graph(mapped, cache, SinkTransformation(cache, "sink"), batch=True)
    assert arrows(graph) == [
        "Source: source -REBALANCE-> map",
        "map -FORWARD-> CacheWrite: Cache",
        "map -REBALANCE-> Sink: sink",
    ]
    assert [edge.dataset_id for edge in graph.edges] == [None, "kept", None]
    cached = CacheTransformation(mapped, dataset_id="kept", cached=True)
    graph = stream_graph(SinkTransformation(cached, "sink"), batch=True)
    assert arrows(graph) == ["CacheRead: Cache -FORWARD-> Sink: sink"]
    assert graph.nodes[graph.source_ids[0]].consumed_dataset_id == "kept"


def test_a_cache_that_its_own_job_reads_is_one_result_and_no_task(stream_graph: StreamGraphOf) -> None:
    mapped = OneInputTransformation(SourceTransformation("source"), "map", parallelism=3)
    cache = CacheTransformation(mapped, dataset_id="kept", read_by_job=True)
    sinks = [SinkTransformation(cache, "one", parallelism=3), SinkTransformation(cache, "other", parallelism=3)]
    graph = stream_graph(mapped, cache, *sinks, batch=True)
    assert arrows(graph) == [
        "Source: source -REBALANCE-> map",
        "map -FORWARD-> Sink: one",
        "map -FORWARD-> Sink: other",
    ]
    assert [(edge.dataset_id, edge.exchange_mode.name) for edge in graph.edges] == [
        (None, "UNDEFINED"),
        ("kept", "BATCH"),
        ("kept", "BATCH"),
    ]


def test_only_operators_and_side_outputs_can_be_cached_in_batch_only(stream_graph: StreamGraphOf) -> None:
    source = SourceTransformation("source")
    with pytest.raises(errors.CacheInStreamingError):
        stream_graph(CacheTransformation(source))
    with pytest.raises(errors.CacheOfVirtualStreamError):
        stream_graph(CacheTransformation(PartitionTransformation(source, PartitionerKind.HASH)), batch=True)


def test_the_callers_things_are_carried_to_the_node(stream_graph: StreamGraphOf) -> None:
    handle = object()
    sink = SinkTransformation(
        SourceTransformation("source"), "sink", description="a label", metadata={"line": 3}, operator_factory=handle,
    )  # fmt: skip
    graph = stream_graph(sink)
    node = graph.nodes[graph.sink_ids[0]]
    assert (node.description, node.metadata) == ("a label", {"line": 3})
    assert node.operator_factory is handle


def test_a_long_chain_that_only_its_end_registers_needs_no_recursion(stream_graph: StreamGraphOf) -> None:
    stream: Transformation = SourceTransformation("source")
    for number in range(4000):
        stream = OneInputTransformation(stream, f"map {number}")
    assert len(stream_graph(stream).nodes) == 4001
