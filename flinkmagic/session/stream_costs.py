"""Tells what each vertex of a streaming job has read and written in its query's last batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from flinkmagic.deployment.streaming.query_progress import QuerySeen, StageProgress
from flinkmagic.display.costs import VertexCost
from flinkmagic.graph.access_execution_graph import AccessExecutionGraph
from flinkmagic.graph.ancestors import with_inputs
from flinkmagic.graph.execution_job_vertex import ExecutionJobVertex
from flinkmagic.graph.partitioner import PartitionerKind


def stream_costs(graph: AccessExecutionGraph, queries: Mapping[str, QuerySeen]) -> dict[str, VertexCost]:
    """Return the rows and bytes of each query's last batch by the id of a job vertex.

    Spark plans each batch anew, and may join in another way than was drawn. Its stages are those of the vertices, in
    the order of the plan, as long as there are as many shuffles; else nothing is told.

    Parameters
    ----------
    queries : mapping of str to QuerySeen
        By the id of the job vertex in which the query ends.
    """
    vertices = {vertex.id: vertex for vertex in graph.job_vertices}
    found: dict[str, VertexCost] = {}
    for sink, seen in queries.items():
        if seen.measures is None:
            continue
        own = _in_order_of_plan(vertices[sink])
        if len(own) != len(seen.measures.stages):
            continue
        stages = dict(zip((vertex.id for vertex in own), seen.measures.stages, strict=True))
        for vertex in own:
            inputs = [stages[each] for each in _read(vertex) if each in stages]
            found[vertex.id] = _cost(seen.measures.batch, stages[vertex.id], inputs)
    return found


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


def _cost(batch: int, stage: StageProgress, inputs: Sequence[StageProgress]) -> VertexCost:
    rows = _sum([stage.rows_in, *(each.rows_out for each in inputs)])
    return VertexCost(None, rows, stage.rows_out, _sum([each.bytes_out for each in inputs]), stage.bytes_out, batch)


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None
