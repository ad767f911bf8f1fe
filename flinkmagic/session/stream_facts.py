"""Tells what each vertex of a streaming job has read and written in its query's last batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from flinkmagic.amounts import size
from flinkmagic.deployment.streaming.query_progress import QuerySeen, StageProgress
from flinkmagic.display.measures import Facts
from flinkmagic.graph.access_execution_graph import AccessExecutionGraph
from flinkmagic.graph.ancestors import with_inputs
from flinkmagic.graph.execution_job_vertex import ExecutionJobVertex
from flinkmagic.graph.partitioner import PartitionerKind


def stream_facts(graph: AccessExecutionGraph, queries: Mapping[str, QuerySeen]) -> dict[str, Facts]:
    """Return readable names and values by the id of a job vertex.

    Spark plans each batch anew, and may join in another way than was drawn. Its stages are those of the vertices, in
    the order of the plan, as long as there are as many shuffles; else nothing is told.

    Parameters
    ----------
    queries : mapping of str to QuerySeen
        By the id of the job vertex in which the query ends.
    """
    vertices = {vertex.id: vertex for vertex in graph.job_vertices}
    facts: dict[str, Facts] = {}
    for sink, seen in queries.items():
        if seen.measures is None:
            continue
        own = _in_order_of_plan(vertices[sink])
        if len(own) != len(seen.measures.stages):
            continue
        stages = dict(zip((vertex.id for vertex in own), seen.measures.stages, strict=True))
        for vertex in own:
            told = _told(stages[vertex.id], [stages[each] for each in _read(vertex) if each in stages])
            if told:
                facts[vertex.id] = ((f"batch {seen.measures.batch}", told),)
    return facts


def _in_order_of_plan(sink: ExecutionJobVertex) -> list[ExecutionJobVertex]:
    """Return a sink's vertex, and those below a shuffle that it depends on, as they stand in the plan.

    The planner has numbered the operators of a plan from its top, each before those below it, from left to right.
    """
    found = with_inputs(sink)
    sent = {
        connection.result.producer.id
        for vertex in found
        for connection in vertex.inputs
        if connection.job_edge.partitioner.kind is PartitionerKind.BROADCAST
    }
    return [sink, *sorted((one for one in found if one.id not in sent and one is not sink), key=_number)]


def _number(vertex: ExecutionJobVertex) -> int:
    return min(int((node.metadata or {}).get("node") or 0) for node in vertex.job_vertex.operators)


def _read(vertex: ExecutionJobVertex) -> Iterable[str]:
    return [connection.result.producer.id for connection in vertex.inputs]


def _told(stage: StageProgress, inputs: Iterable[StageProgress]) -> str:
    read = [each.rows_out for each in inputs] + [stage.rows_in]
    known = [rows for rows in read if rows is not None]
    parts = [f"{sum(known):,} rows read"] if known else []
    parts += [f"{stage.rows_out:,} written"] if stage.rows_out is not None else []
    parts += [size(stage.bytes_out)] if stage.bytes_out is not None else []
    return ", ".join(parts)
