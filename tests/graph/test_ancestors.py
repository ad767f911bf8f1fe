"""The part of a job graph that some of its vertices need."""

from __future__ import annotations

from typing import Any

from flinkmagic.graph.ancestors import with_ancestors
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.job_graph import JobGraph
from flinkmagic.graph.json_report import report_execution_graph
from flinkmagic.graph.partitioner import PartitionerKind
from flinkmagic.graph.transformations import (
    OneInputTransformation,
    PartitionTransformation,
    SinkTransformation,
    SourceTransformation,
    TwoInputTransformation,
)


def hashed(of):
    return PartitionTransformation(of, PartitionerKind.HASH)


def two_sinks(job_graph) -> JobGraph:
    """Two sources; `left` reads one of them and the shared vertex, `right` the shared one and another of its own."""
    shared = OneInputTransformation(hashed(SourceTransformation("a")), "shared")
    left = TwoInputTransformation(hashed(SourceTransformation("b")), hashed(shared), "join")
    alone = OneInputTransformation(hashed(shared), "alone")
    return job_graph(SinkTransformation(hashed(left), "left"), SinkTransformation(hashed(alone), "right"), batch=True)


def report(graph: JobGraph) -> dict[str, Any]:
    return report_execution_graph(ExecutionGraph(graph))


def names(graph: JobGraph) -> list[str]:
    return [vertex.name for vertex in graph.vertices_in_topological_order()]


def test_it_holds_the_vertices_and_all_that_they_read(job_graph, vertex) -> None:
    whole = two_sinks(job_graph)
    before = report(whole)
    part = with_ancestors(whole, [vertex(whole, "Sink: right").id])
    assert names(part) == ["Source: a", "shared", "alone", "Sink: right"]
    assert [(edge.producer.name, edge.target.name) for vertex in part.vertices.values() for edge in vertex.inputs] == [
        ("alone", "Sink: right"), ("shared", "alone"), ("Source: a", "shared"),
    ]  # fmt: skip
    readers = [[edge.target.name for edge in dataset.consumers] for dataset in vertex(part, "shared").produced]
    assert readers == [["alone"]]
    assert part.job_id == whole.job_id
    assert {one: two.operators for one, two in part.vertices.items()} == {
        one: two.operators for one, two in whole.vertices.items() if one in part.vertices
    }
    groups = ([one.name for one in group.vertices if one.id in part.vertices] for group in whole.slot_sharing_groups)
    assert [[one.name for one in group.vertices] for group in part.slot_sharing_groups] == [
        one for one in groups if one
    ]
    graph = ExecutionGraph(part)
    assert [one.name for one in graph.job_vertices] == names(part)
    assert report(whole) == before


def test_the_part_of_all_vertices_is_the_whole(job_graph) -> None:
    whole = two_sinks(job_graph)
    assert report(with_ancestors(whole, whole.vertices)) == report(whole)
