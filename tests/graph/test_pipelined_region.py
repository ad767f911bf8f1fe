from __future__ import annotations

from collections.abc import Callable

from flinkmagic.graph.exchange_mode import StreamExchangeMode
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.job_graph import JobGraph
from flinkmagic.graph.partitioner import PartitionerKind
from flinkmagic.graph.pipelined_region import logical_pipelined_regions
from flinkmagic.graph.transformations import (
    OneInputTransformation,
    PartitionTransformation,
    SinkTransformation,
    SourceTransformation,
    Transformation,
    TwoInputTransformation,
)

JobGraphOf = Callable[..., JobGraph]
PIPELINED, BATCH = StreamExchangeMode.PIPELINED, StreamExchangeMode.BATCH
RESCALE, HASH = PartitionerKind.RESCALE, PartitionerKind.HASH


def to(stream: Transformation, kind: PartitionerKind, mode: StreamExchangeMode) -> PartitionTransformation:
    return PartitionTransformation(stream, kind, mode)


def regions(graph: ExecutionGraph) -> list[list[str]]:
    """The last letter of each vertex's name, and the subtask."""
    found = graph.pipelined_regions
    vertices = [graph.execution_vertex(index) for index in range(graph.n_vertices)]
    names = [f"{vertex.job_vertex.name[-1]}{vertex.subtask}" for vertex in vertices]
    return [[names[index] for index in found.vertices_of(region)] for region in range(found.count)]


def test_blocking_results_part_and_pipelined_ones_join(job_graph: JobGraphOf) -> None:
    a = OneInputTransformation(to(SourceTransformation("s"), HASH, PIPELINED), "a")
    graph = ExecutionGraph(job_graph(a, SinkTransformation(to(a, HASH, BATCH), "t"), batch=True))
    assert regions(graph) == [["s0", "s1", "a0", "a1"], ["t0"], ["t1"]]
    assert graph.pipelined_regions.count == 3


def test_pointwise_regions_are_components(job_graph: JobGraphOf) -> None:
    source = SourceTransformation("s", parallelism=4)
    sink = SinkTransformation(to(source, RESCALE, PIPELINED), "t", parallelism=2)
    assert regions(ExecutionGraph(job_graph(sink))) == [["s0", "s1", "t0"], ["s2", "s3", "t1"]]


def test_equal_pointwise_subtasks_are_regions(job_graph: JobGraphOf) -> None:
    a = OneInputTransformation(to(SourceTransformation("s"), RESCALE, PIPELINED), "a")
    sink = SinkTransformation(to(a, RESCALE, PIPELINED), "t")
    graph = ExecutionGraph(job_graph(a, sink))
    assert regions(graph) == [["s0", "a0", "t0"], ["s1", "a1", "t1"]]


def test_any_all_to_all_edge_inside_a_logical_region_makes_it_one(job_graph: JobGraphOf) -> None:
    source = SourceTransformation("s")
    inner = OneInputTransformation(to(source, RESCALE, PIPELINED), "a")
    join = TwoInputTransformation(to(inner, RESCALE, PIPELINED), to(source, HASH, BATCH), "j")
    graph = ExecutionGraph(job_graph(inner, join, batch=True))
    assert regions(graph) == [["s0", "s1", "a0", "a1", "j0", "j1"]]


def test_regions_are_numbered_by_their_first_vertex(job_graph: JobGraphOf) -> None:
    a, b = SourceTransformation("a"), SourceTransformation("b")
    joined = TwoInputTransformation(to(a, RESCALE, BATCH), to(b, RESCALE, PIPELINED), "j")
    graph = ExecutionGraph(job_graph(joined, batch=True))
    firsts = [int(graph.pipelined_regions.vertices_of(r)[0]) for r in range(graph.pipelined_regions.count)]
    assert firsts == sorted(firsts)


def test_cycles_between_logical_regions_are_not_merged(job_graph: JobGraphOf) -> None:
    source = SourceTransformation("s")
    other = OneInputTransformation(to(source, HASH, BATCH), "o")
    join = TwoInputTransformation(to(source, HASH, PIPELINED), to(other, HASH, BATCH), "j")
    graph = job_graph(other, join, batch=True)
    assert sorted(logical_pipelined_regions(graph).values()) == [0, 0, 1]
    assert regions(ExecutionGraph(graph)) == [["s0", "s1", "j0", "j1"], ["o0"], ["o1"]]
