from __future__ import annotations

from collections.abc import Callable

import pytest

from flinkmagic.errors import graph as errors
from flinkmagic.graph.exchange_mode import ChainingStrategy, GlobalStreamExchangeMode, StreamExchangeMode
from flinkmagic.graph.job_graph import JobGraph, JobVertex
from flinkmagic.graph.job_graph_generator import create_job_graph, result_type_of
from flinkmagic.graph.json_report import report_job_graph
from flinkmagic.graph.partitioner import PartitionerKind
from flinkmagic.graph.result_partition_type import DistributionPattern, ResultPartitionType
from flinkmagic.graph.stream_graph import Invokable, StreamGraph
from flinkmagic.graph.transformations import (
    CacheTransformation,
    FeedbackTransformation,
    OneInputTransformation,
    PartitionTransformation,
    SelectTransformation,
    SideOutputTransformation,
    SinkTransformation,
    SourceTransformation,
    SplitTransformation,
    Transformation,
    TwoInputTransformation,
)

StreamGraphOf = Callable[..., StreamGraph]
JobGraphOf = Callable[..., JobGraph]
Find = Callable[[JobGraph, str], JobVertex]
NEVER = ChainingStrategy.NEVER


def exchange(
    stream: Transformation,
    kind: PartitionerKind = PartitionerKind.REBALANCE,
    mode: StreamExchangeMode = StreamExchangeMode.UNDEFINED,
) -> PartitionTransformation:
    return PartitionTransformation(stream, kind, mode)


def test_names_nest_and_chains_are_listed_tail_first(job_graph: JobGraphOf) -> None:
    a = OneInputTransformation(SourceTransformation("s"), "a")
    b, c = OneInputTransformation(a, "b"), OneInputTransformation(a, "c")
    (vertex,) = job_graph(a, b, c, SinkTransformation(c, "d")).vertices.values()
    assert vertex.name == "Source: s -> a -> (b, c -> Sink: d)"
    assert [node.name for node in vertex.operators] == ["b", "Sink: d", "c", "a", "Source: s"]
    assert {config.node.name: config.chain_index for config in vertex.configs.values()} == {
        "Source: s": 1, "a": 2, "b": 3, "c": 3, "Sink: d": 4,
    }  # fmt: skip
    assert sorted(c.node.name for c in vertex.configs.values() if not c.chained_outputs) == ["Sink: d", "b"]
    assert vertex.invokable is Invokable.SOURCE
    assert vertex.tail.name == "b"
    assert vertex.id == vertex.operator_ids[-1]


def test_vertices_are_made_consumers_first_and_ordered_producers_first(job_graph: JobGraphOf) -> None:
    source = SourceTransformation("s")
    far = OneInputTransformation(exchange(source), "far")
    join = TwoInputTransformation(source, exchange(far), "join")
    graph = job_graph(far, join)
    assert [v.name for v in graph.vertices.values()] == ["join", "far", "Source: s"]
    assert [v.name for v in graph.vertices_in_topological_order()] == ["Source: s", "far", "join"]


@pytest.mark.parametrize(
    ("kind", "pattern"),
    [
        (kind, DistributionPattern.POINTWISE if kind.name in ("FORWARD", "RESCALE") else DistributionPattern.ALL_TO_ALL)
        for kind in PartitionerKind
    ],
)
def test_the_pattern_is_the_partitioners(
    job_graph: JobGraphOf, kind: PartitionerKind, pattern: DistributionPattern
) -> None:
    sink = SinkTransformation(exchange(SourceTransformation("s"), kind), "sink", chaining_strategy=NEVER)
    (edge,) = job_graph(sink).edges
    assert edge.pattern is pattern
    assert edge.ship_strategy_name == kind.name
    assert edge.partitioner.is_forward == (kind is PartitionerKind.FORWARD)
    assert edge.partitioner.is_broadcast == (kind is PartitionerKind.BROADCAST)


@pytest.mark.parametrize(
    ("mode", "result_type"),
    [
        (StreamExchangeMode.UNDEFINED, "BLOCKING"),
        (StreamExchangeMode.PIPELINED, "PIPELINED_BOUNDED"),
        (StreamExchangeMode.BATCH, "BLOCKING"),
        (StreamExchangeMode.HYBRID_FULL, "HYBRID_FULL"),
        (StreamExchangeMode.HYBRID_SELECTIVE, "HYBRID_SELECTIVE"),
    ],
)
def test_the_result_type_is_the_exchange_modes(
    job_graph: JobGraphOf, mode: StreamExchangeMode, result_type: str
) -> None:
    (edge,) = job_graph(SinkTransformation(exchange(SourceTransformation("s"), mode=mode), "sink"), batch=True).edges
    assert edge.result_type is ResultPartitionType(result_type)


@pytest.mark.parametrize(
    ("mode", "result_type"),
    [("ALL_EDGES_PIPELINED", "PIPELINED_BOUNDED"), ("ALL_EDGES_BLOCKING", "BLOCKING")],
)
def test_an_undefined_mode_is_the_jobs(stream_graph: StreamGraphOf, mode: str, result_type: str) -> None:
    for kind in (PartitionerKind.FORWARD, PartitionerKind.RESCALE, PartitionerKind.HASH):
        sink = SinkTransformation(exchange(SourceTransformation("s"), kind), "sink")
        (edge,) = stream_graph(sink).edges
        assert result_type_of(edge, GlobalStreamExchangeMode[mode]) is ResultPartitionType(result_type)


def readers(job_graph: JobGraphOf, *partitions: PartitionTransformation, **common: object) -> list[list[str]]:
    """The names of the sinks that read each result of the source."""
    sinks = [SinkTransformation(p, str(n), **common) for n, p in enumerate(partitions)]
    graph = job_graph(*sinks, batch=True)
    (source,) = [v for v in graph.vertices.values() if not v.inputs]
    return [[edge.target.name[-1] for edge in dataset.consumers] for dataset in source.produced]


def test_equal_blocking_results_are_shared(job_graph: JobGraphOf) -> None:
    source = SourceTransformation("s")
    assert readers(job_graph, exchange(source), exchange(source)) == [["0", "1"]]
    assert readers(job_graph, hashed := exchange(source, PartitionerKind.HASH), hashed) == [["0", "1"]]


def test_a_program_with_splits_shares_no_results(job_graph: JobGraphOf) -> None:
    split = SplitTransformation(SourceTransformation("s"))
    one = exchange(SelectTransformation(split, ["a"]), mode=StreamExchangeMode.BATCH)
    other = exchange(SelectTransformation(split, ["b"]), mode=StreamExchangeMode.BATCH)
    assert readers(job_graph, one, other) == [["0"], ["1"]]


def test_a_program_with_splits_makes_chains_from_its_sources_in_the_order_of_flink_1_11(job_graph: JobGraphOf) -> None:
    """Its sources are a ``HashSet<Integer>``: -1 is in bucket 0, source 1 in 1, source 2 and then -3 in 2, 17 in 1."""
    sources = [SourceTransformation(f"s{id}", id=id) for id in (1, 2, 17)]
    loops = []
    for at, source in enumerate(sources[:2]):
        loop = FeedbackTransformation(source, id=20 + at)
        body = OneInputTransformation(loop, f"b{at}", chaining_strategy=NEVER, id=30 + at)
        loop.add_feedback_edge(body)
        loops.append(body)
    select = SelectTransformation(SplitTransformation(sources[2], id=40), ["a"], id=41)
    sinks = [SinkTransformation(stream, f"k{at}", id=50 + at) for at, stream in enumerate((*loops, select))]
    in_order = [vertex.name for vertex in job_graph(*loops, *sinks).vertices_in_topological_order()]
    heads = [name.partition(" -> ")[0] for name in in_order if name.startswith(("Source", "IterationSource"))]
    assert heads == ["IterationSource-20", "Source: s1", "Source: s17", "Source: s2", "IterationSource-21"]


def test_results_that_differ_are_not_shared(job_graph: JobGraphOf) -> None:
    source = SourceTransformation("s")
    for one, other in (
        (exchange(source), exchange(source, PartitionerKind.SHUFFLE)),
        (exchange(source, PartitionerKind.HASH), exchange(source, PartitionerKind.HASH)),
        (exchange(source), exchange(SideOutputTransformation(source, "late"))),
        (exchange(source), exchange(source, mode=StreamExchangeMode.HYBRID_FULL)),
        (exchange(source, mode=StreamExchangeMode.PIPELINED), exchange(source, mode=StreamExchangeMode.PIPELINED)),
    ):
        assert readers(job_graph, one, other) == [["0"], ["1"]]


def test_results_for_consumers_of_different_parallelism_are_not_shared(job_graph: JobGraphOf) -> None:
    source = SourceTransformation("s")
    sinks = [SinkTransformation(exchange(source), str(n), parallelism=n) for n in (2, 3)]
    wide = SinkTransformation(exchange(source), "max", parallelism=2, max_parallelism=500)
    graph = job_graph(*sinks, wide, batch=True)
    assert [len(v.produced) for v in graph.vertices_in_topological_order()] == [3, 0, 0, 0]


def test_a_selective_result_that_is_shared_becomes_a_full_one(job_graph: JobGraphOf, vertex: Find) -> None:
    source = SourceTransformation("s")
    selective, full = StreamExchangeMode.HYBRID_SELECTIVE, StreamExchangeMode.HYBRID_FULL
    for modes in ((selective, selective), (selective, full), (full, selective)):
        sinks = [SinkTransformation(exchange(source, mode=mode), str(n)) for n, mode in enumerate(modes)]
        (dataset,) = vertex(job_graph(*sinks, batch=True), "Source").produced
        assert dataset.result_type is ResultPartitionType.HYBRID_FULL
        assert len(dataset.consumers) == 2


def test_a_selective_broadcast_is_full(job_graph: JobGraphOf) -> None:
    broadcast = exchange(SourceTransformation("s"), PartitionerKind.BROADCAST, StreamExchangeMode.HYBRID_SELECTIVE)
    (edge,) = job_graph(SinkTransformation(broadcast, "sink"), batch=True).edges
    assert edge.result_type is ResultPartitionType.HYBRID_FULL


def test_a_cached_result_outlives_the_job_and_has_its_name(job_graph: JobGraphOf, vertex: Find) -> None:
    mapped = OneInputTransformation(SourceTransformation("s"), "map")
    cache = CacheTransformation(mapped, dataset_id="kept")
    graph = job_graph(mapped, cache, SinkTransformation(exchange(cache), "sink"), batch=True)
    kept, read = vertex(graph, "Source").produced
    assert (kept.result_type, kept.id) == (ResultPartitionType.BLOCKING_PERSISTENT, "kept")
    assert read.result_type is ResultPartitionType.BLOCKING


def test_all_consumers_of_a_cache_that_its_own_job_reads_share_its_persistent_result(
    job_graph: JobGraphOf, vertex: Find
) -> None:
    mapped = OneInputTransformation(SourceTransformation("s"), "map")
    cache = CacheTransformation(mapped, dataset_id="kept", read_by_job=True)
    graph = job_graph(mapped, cache, SinkTransformation(cache, "one"), SinkTransformation(cache, "other"), batch=True)
    (kept,) = vertex(graph, "Source").produced
    assert (kept.result_type, kept.id) == (ResultPartitionType.BLOCKING_PERSISTENT, "kept")
    assert [edge.target.name for edge in kept.consumers] == ["Sink: one", "Sink: other"]


def test_a_default_group_is_one_for_the_job_in_streaming_and_one_a_region_in_batch(job_graph: JobGraphOf) -> None:
    def program() -> list[Transformation]:
        a = OneInputTransformation(exchange(SourceTransformation("s"), mode=StreamExchangeMode.PIPELINED), "a")
        return [a, SinkTransformation(exchange(a), "sink", slot_sharing_group="default")]

    (group,) = job_graph(*program()).slot_sharing_groups
    assert len(group.vertices) == 3
    sizes = [len(group.vertices) for group in job_graph(*program(), batch=True).slot_sharing_groups]
    assert sorted(sizes) == [1, 2]


def test_a_named_group_spans_regions(job_graph: JobGraphOf) -> None:
    source = SourceTransformation("s", slot_sharing_group="g")
    (group,) = job_graph(SinkTransformation(exchange(source), "sink"), batch=True).slot_sharing_groups
    assert group.name == "g"
    assert len(group.vertices) == 2


def test_what_flink_refuses(job_graph: JobGraphOf) -> None:
    source = SourceTransformation("s")
    hybrid = exchange(source, mode=StreamExchangeMode.HYBRID_FULL)
    with pytest.raises(errors.HybridInStreamingError):
        job_graph(SinkTransformation(hybrid, "sink"))
    with pytest.raises(errors.HybridWithSlotSharingGroupError):
        job_graph(SinkTransformation(hybrid, "sink", slot_sharing_group="g"), batch=True)
    left = SinkTransformation(exchange(source), "left", co_location_group="k")
    right = SinkTransformation(exchange(source), "right", co_location_group="k", slot_sharing_group="g")
    with pytest.raises(errors.CoLocationAcrossSlotSharingGroupsError, match="'Sink: right'"):
        job_graph(left, right)


def test_configs_tell_what_stays(job_graph: JobGraphOf, vertex: Find) -> None:
    source = SourceTransformation("s")
    stay, leave = OneInputTransformation(source, "stay"), OneInputTransformation(exchange(source), "leave")
    config = vertex(job_graph(stay, leave), "Source: s").configs[source.id]
    assert [edge.target.name for edge in config.chained_outputs] == ["stay"]


def test_a_job_id_is_random_unless_given(stream_graph: StreamGraphOf) -> None:
    graph = stream_graph(SinkTransformation(SourceTransformation("s"), "sink"))
    one, other = create_job_graph(graph), create_job_graph(graph)
    assert one.job_id != other.job_id
    assert len(one.job_id) == 32
    assert create_job_graph(graph, "ab" * 16).job_id == "ab" * 16
    assert list(one.vertices) == list(other.vertices)


@pytest.mark.parametrize(("batch", "mode"), [(False, "EAGER"), (True, "LAZY_FROM_SOURCES_WITH_BATCH_SLOT_REQUEST")])
def test_the_schedule_mode_is_what_flink_chose(stream_graph: StreamGraphOf, batch: bool, mode: str) -> None:
    split = SplitTransformation(SourceTransformation("s"))
    graph = stream_graph(SinkTransformation(SelectTransformation(split, ["a"]), "sink"), batch=batch)
    assert report_job_graph(create_job_graph(graph), graph)["schedule_mode"] == mode


def test_a_long_chain_needs_no_recursion(job_graph: JobGraphOf) -> None:
    stream: Transformation = SourceTransformation("s")
    for number in range(3000):
        stream = OneInputTransformation(stream, f"m{number}", chaining_strategy=[None, NEVER][number % 7 == 0])
    graph = job_graph(stream)
    assert sum(len(vertex.operators) for vertex in graph.vertices.values()) == 3001
