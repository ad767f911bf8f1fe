"""Job graphs as JSON, for a store that other processes and other versions read.

What decides about execution graphs and scheduling is kept, and what people are shown. Handles by which a
gateway runs operators are not: they are a process's own, and a process that takes a job up gets them by
planning the same program again. Stream configs are not either: they are for the process that runs the operators.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flinkmagic.graph.exchange_mode import BatchShuffleMode, RuntimeExecutionMode, StreamExchangeMode
from flinkmagic.graph.execution_config import ExecutionConfig
from flinkmagic.graph.job_graph import (
    CoLocationGroup,
    JobEdge,
    JobGraph,
    JobVertex,
    OperatorIDPair,
    SlotSharingGroup,
)
from flinkmagic.graph.job_settings import InputDependencyConstraint, JobSettings
from flinkmagic.graph.partitioner import PartitionerKind, StreamPartitioner
from flinkmagic.graph.result_partition_type import DistributionPattern, ResultPartitionType
from flinkmagic.graph.stream_graph import Invokable, StreamEdge, StreamNode

Document = dict[str, Any]

_NODE_FIELDS = ("uid", "uid_hash", "description", "iteration_id", "iteration_wait_time_ms", "consumed_dataset_id")


def encode_job_graph(job_graph: JobGraph) -> Document:
    """Return a job graph as plain data."""
    vertices = list(job_graph.vertices.values())
    return {
        "name": job_graph.name,
        "job_id": job_graph.job_id,
        "job_type": job_graph.job_type.value,
        "upper_bound_max_parallelism": job_graph.config.upper_bound_max_parallelism,
        "parallelism": job_graph.config.parallelism,
        "max_parallelism": job_graph.config.max_parallelism,
        "chaining": job_graph.config.chaining,
        "batch_shuffle_mode": job_graph.config.batch_shuffle_mode.value,
        "input_dependency_constraint": job_graph.settings.input_dependency_constraint.value,
        "slot_sharing_groups": [[g.name, [v.id for v in g.vertices]] for g in job_graph.slot_sharing_groups],
        "co_location_groups": [[g.name, [v.id for v in g.vertices]] for g in job_graph.co_location_groups],
        "vertices": [_encode_vertex(vertex) for vertex in vertices],
        "edges": [_encode_edge(edge) for vertex in vertices for edge in vertex.inputs],
    }


def _encode_vertex(vertex: JobVertex) -> Document:
    return {
        "id": vertex.id,
        "name": vertex.name,
        "parallelism": vertex.parallelism,
        "max_parallelism": vertex.max_parallelism,
        "head": vertex.operators.index(vertex.head),
        "operators": [_encode_node(node) for node in vertex.operators],
        "operator_ids": [list(pair) for pair in vertex.operator_ids],
        "produced": [[dataset.id, dataset.result_type.value] for dataset in vertex.produced],
    }


def _encode_node(node: StreamNode) -> Document:
    return {
        "id": node.id,
        "name": node.name,
        "invokable": node.invokable.name,
        "parallelism": node.parallelism,
        "max_parallelism": node.max_parallelism,
        "slot_sharing_group": node.slot_sharing_group,
        "co_location_group": node.co_location_group,
        "metadata": None if node.metadata is None else dict(node.metadata),
        **{field: getattr(node, field) for field in _NODE_FIELDS},
    }


def _encode_edge(edge: JobEdge) -> Document:
    return {
        "producer": edge.producer.id,
        "dataset_index": edge.source.index,
        "place_among_consumers": edge.source.consumers.index(edge),
        "consumer": edge.target.id,
        "pattern": edge.pattern.value,
        "partitioner": edge.partitioner.kind.value,
        "source_operator": edge.stream_edge.source.id,
        "target_operator": edge.stream_edge.target.id,
        "type_number": edge.stream_edge.type_number,
        "exchange_mode": edge.stream_edge.exchange_mode.value,
    }


def decode_job_graph(document: Mapping[str, Any]) -> JobGraph:
    """Return the job graph that was encoded, without handles on operators."""
    config = ExecutionConfig(
        parallelism=document["parallelism"],
        max_parallelism=document["max_parallelism"],
        chaining=document["chaining"],
        batch_shuffle_mode=BatchShuffleMode(document["batch_shuffle_mode"]),
        upper_bound_max_parallelism=document["upper_bound_max_parallelism"],
    )
    constraint = InputDependencyConstraint(document["input_dependency_constraint"])
    settings = JobSettings(input_dependency_constraint=constraint)
    job_type = RuntimeExecutionMode(document["job_type"])
    job_graph = JobGraph(document["name"], job_type, config, settings, document["job_id"])
    for entry in document["vertices"]:
        job_graph.vertices[entry["id"]] = _decode_vertex(entry)
    _decode_groups(document, job_graph)
    _decode_edges(document, job_graph)
    return job_graph


def _decode_vertex(entry: Mapping[str, Any]) -> JobVertex:
    operators = tuple(_decode_node(node) for node in entry["operators"])
    operator_ids = tuple(OperatorIDPair(*pair) for pair in entry["operator_ids"])
    vertex = JobVertex(entry["id"], entry["name"], operators[entry["head"]], operators, operator_ids, {})
    vertex.parallelism = entry["parallelism"]
    vertex.max_parallelism = entry["max_parallelism"]
    return vertex


def _decode_node(entry: Mapping[str, Any]) -> StreamNode:
    node = StreamNode(
        entry["id"],
        entry["name"],
        Invokable[entry["invokable"]],
        entry["parallelism"],
        entry["max_parallelism"],
        entry["slot_sharing_group"],
        entry["co_location_group"],
    )
    for field in (*_NODE_FIELDS, "metadata"):
        setattr(node, field, entry[field])
    return node


def _decode_groups(document: Mapping[str, Any], job_graph: JobGraph) -> None:
    slot_sharing, co_location = [], []
    for name, members in document["slot_sharing_groups"]:
        slot_sharing.append(SlotSharingGroup(name))
        for vertex_id in members:
            slot_sharing[-1].vertices.append(job_graph.vertices[vertex_id])
            job_graph.vertices[vertex_id].slot_sharing_group = slot_sharing[-1]
    for name, members in document["co_location_groups"]:
        co_location.append(CoLocationGroup(name))
        for vertex_id in members:
            co_location[-1].vertices.append(job_graph.vertices[vertex_id])
            job_graph.vertices[vertex_id].co_location_group = co_location[-1]
    job_graph.slot_sharing_groups = tuple(slot_sharing)
    job_graph.co_location_groups = tuple(co_location)


def _decode_edges(document: Mapping[str, Any], job_graph: JobGraph) -> None:
    nodes = {node.id: node for vertex in job_graph.vertices.values() for node in vertex.operators}
    for entry in document["vertices"]:
        for dataset_id, result_type in entry["produced"]:
            job_graph.vertices[entry["id"]].add_result(ResultPartitionType(result_type), dataset_id)
    places: dict[int, int] = {}
    for entry in document["edges"]:
        partitioner = StreamPartitioner(PartitionerKind(entry["partitioner"]))
        source, target = nodes[entry["source_operator"]], nodes[entry["target_operator"]]
        mode = StreamExchangeMode(entry["exchange_mode"])
        edge = job_graph.vertices[entry["consumer"]].consume(
            job_graph.vertices[entry["producer"]].produced[entry["dataset_index"]],
            DistributionPattern(entry["pattern"]),
            partitioner,
            StreamEdge(source, target, entry["type_number"], partitioner, mode),
        )
        places[id(edge)] = entry["place_among_consumers"]
    for vertex in job_graph.vertices.values():
        for dataset in vertex.produced:
            dataset.consumers.sort(key=lambda edge: places[id(edge)])
