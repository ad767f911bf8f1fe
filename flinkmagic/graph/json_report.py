"""Reports the graphs of a job as JSON data, in the form in which Flink's own are recorded for comparison.

Operators have their transformation's id; the head and the tail of an iteration have ``iteration-source:<id>`` and
``iteration-sink:<id>``. A job vertex has the id of its head. Streams that are split and selected are reported as in
Flink 1.11, the last version that had them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flinkmagic.graph.access_execution_graph import AccessExecutionGraph
from flinkmagic.graph.compilation import Compilation
from flinkmagic.graph.exchange_mode import RuntimeExecutionMode
from flinkmagic.graph.execution_job_vertex import ExecutionJobVertex
from flinkmagic.graph.intermediate_result import Connection
from flinkmagic.graph.job_graph import JobEdge, JobGraph, JobVertex
from flinkmagic.graph.slot_sharing import ExecutionSlotSharingGroups, local_input_preferred
from flinkmagic.graph.stream_graph import StreamEdge, StreamGraph, StreamNode

Section = dict[str, Any]


def report_graphs(compilation: Compilation) -> Section:
    """Report the graphs as far as they could be made, a refusal as ``error`` with its stage."""
    report: Section = {}
    stream_graph, job_graph, execution_graph = (
        compilation.stream_graph,
        compilation.job_graph,
        compilation.execution_graph,
    )
    if stream_graph is not None:
        report["name"] = stream_graph.name
        report["stream_graph"] = report_stream_graph(stream_graph, job_graph)
        if job_graph is not None:
            report["job_graph"] = report_job_graph(job_graph, stream_graph)
    if execution_graph is not None:
        report["execution_graph"] = report_execution_graph(execution_graph)
        report["slot_sharing"] = report_slot_sharing(execution_graph, local_input_preferred(execution_graph))
    if compilation.refusal is not None:
        kind = type(compilation.refusal).__name__
        report["error"] = {"stage": compilation.refusal.stage, "class": kind, "message": str(compilation.refusal)}
    return report


def report_stream_graph(graph: StreamGraph, job_graph: JobGraph | None = None) -> Section:
    """Report nodes and edges, virtual nodes resolved; with a JobGraph the operators' ids, too."""
    label = {node.id: node.label for node in graph.nodes.values()}
    section: Section = {}
    if not graph.has_split:
        section["job_type"] = graph.job_type.name
        section["dynamic"] = False
        section["global_exchange_mode"] = graph.global_exchange_mode.name
        section["all_vertices_in_same_slot_sharing_group_by_default"] = (
            graph.all_vertices_in_same_slot_sharing_group_by_default
        )
    section["nodes"] = [_node(node) for node in graph.nodes.values()]
    section["edges"] = [_edge(edge, graph.has_split) for edge in graph.edges]
    section["sources"] = [label[id] for id in graph.source_ids]
    section["sinks"] = [label[id] for id in graph.sink_ids]
    section["iterations"] = [[head.label, tail.label] for head, tail in graph.iterations]
    if job_graph is not None:
        section["operator_ids"] = {
            str(node.label): operator_id
            for vertex in job_graph.vertices_in_topological_order()
            for node, operator_id in zip(vertex.operators, vertex.operator_ids, strict=True)
        }
    return section


def _node(node: StreamNode) -> Section:
    return {
        "id": node.label,
        "name": node.name,
        "parallelism": node.parallelism,
        "max_parallelism": node.max_parallelism,
        "slot_sharing_group": node.slot_sharing_group,
        "co_location_group": node.co_location_group,
        "chaining_strategy": node.chaining_strategy and node.chaining_strategy.name,
        "in_edges": [edge.source.label for edge in node.in_edges],
    }


def _edge(edge: StreamEdge, has_split: bool) -> Section:
    section: Section = {
        "source": edge.source.label,
        "target": edge.target.label,
        "partitioner": str(edge.partitioner),
        "exchange_mode": edge.exchange_mode.name,
        "output_tag": edge.output_tag and edge.output_tag.id,
        "type_number": edge.type_number,
    }
    if has_split:
        section["selected_names"] = None if edge.selected_names is None else list(edge.selected_names)
    return section


def report_job_graph(graph: JobGraph, stream_graph: StreamGraph) -> Section:
    """Report vertices, with their chains, and edges."""
    vertices = graph.vertices_in_topological_order()
    slot_sharing: dict[object, int] = {}
    co_location: dict[object, int] = {}
    section: Section = {}
    if stream_graph.has_split:
        # Flink up to 1.12; the scheduler follows pipelined regions, of which both modes are special cases.
        is_eager = graph.job_type is RuntimeExecutionMode.STREAMING
        section["schedule_mode"] = "EAGER" if is_eager else "LAZY_FROM_SOURCES_WITH_BATCH_SLOT_REQUEST"
    else:
        section["job_type"] = graph.job_type.name
    section["vertices"] = [
        {
            **_vertex(vertex),
            "slot_sharing_group": slot_sharing.setdefault(vertex.slot_sharing_group, len(slot_sharing)),
            "co_location_group": None
            if vertex.co_location_group is None
            else co_location.setdefault(vertex.co_location_group, len(co_location)),
        }
        for vertex in vertices
    ]
    section["edges"] = [_job_edge(edge) for vertex in vertices for edge in vertex.inputs]
    section["topological_order"] = [vertex.head.label for vertex in vertices]
    section["insertion_order"] = [vertex.head.label for vertex in graph.vertices.values()]
    return section


def _vertex(vertex: JobVertex) -> Section:
    return {
        "head": vertex.head.label,
        "id": vertex.id,
        "name": vertex.name,
        "chain": [node.label for node in vertex.operators],
        "chain_index": {str(config.node.label): config.chain_index for config in vertex.configs.values()},
        "parallelism": vertex.parallelism,
        "max_parallelism": vertex.max_parallelism,
        "invokable": vertex.invokable.value,
        "produced": [
            {"result_type": dataset.result_type.name, "consumers": len(dataset.consumers)}
            for dataset in vertex.produced
        ],
    }


def _job_edge(edge: JobEdge) -> Section:
    return {
        "source": edge.producer.head.label,
        "target": edge.target.head.label,
        "distribution": edge.pattern.name,
        "result_type": edge.result_type.name,
        "partitioner": edge.ship_strategy_name,
        "dataset_index": edge.source.index,
        "input_index": edge.input_index,
        "forward": edge.partitioner.is_forward,
        "broadcast": edge.partitioner.is_broadcast,
    }


def report_execution_graph(graph: AccessExecutionGraph) -> Section:
    """Report subtasks, what each reads, and regions."""
    regions = graph.pipelined_regions
    return {
        "job_vertices": [
            {
                "head": job_vertex.job_vertex.head.label,
                "parallelism": job_vertex.parallelism,
                "max_parallelism": job_vertex.max_parallelism,
            }
            for job_vertex in graph.job_vertices
        ],
        "vertices": [
            {
                "head": job_vertex.job_vertex.head.label,
                "subtask": subtask,
                "produced_subpartitions": [r.n_subpartitions(subtask) for r in job_vertex.produced_results],
            }
            for job_vertex in graph.job_vertices
            for subtask in range(job_vertex.parallelism)
        ],
        "inputs": [
            _input(connection, job_vertex, subtask)
            for job_vertex in graph.job_vertices
            for subtask in range(job_vertex.parallelism)
            for connection in job_vertex.inputs
        ],
        "regions": [report_vertices(graph, regions.vertices_of(region)) for region in range(regions.count)],
    }


def _input(connection: Connection, job_vertex: ExecutionJobVertex, subtask: int) -> Section:
    subpartition = connection.subpartition_of(subtask)
    return {
        "vertex": job_vertex.job_vertex.head.label,
        "subtask": subtask,
        "input": connection.job_edge.input_index,
        "producer": connection.result.producer.job_vertex.head.label,
        "dataset_index": connection.result.dataset.index,
        "partitions": list(connection.partition_range(connection.group_of_consumer(subtask))),
        "subpartitions": [subpartition, subpartition],
    }


def report_slot_sharing(graph: AccessExecutionGraph, groups: ExecutionSlotSharingGroups) -> list[Any]:
    """Report the subtasks of each execution slot sharing group."""
    return [report_vertices(graph, members) for members in groups.members()]


def report_vertices(graph: AccessExecutionGraph, vertices: Iterable[int]) -> list[list[int | str]]:
    """Report execution vertices as pairs of head and subtask."""
    pairs = []
    for index in vertices:
        job_vertex = graph.job_vertex_of(int(index))
        pairs.append([job_vertex.job_vertex.head.label, int(index) - job_vertex.first])
    return pairs
