"""Reads what the rules need to know of a job that runs, or ran, on Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from flinkmagic.deployment import DeploymentSnapshot, TaskRecord
from flinkmagic.deployment.watching.call_events import CallEvents
from flinkmagic.graph.access_execution_graph import AccessExecutionGraph
from flinkmagic.graph.execution_job_vertex import ExecutionJobVertex
from flinkmagic.graph.job_graph import JobGraph, JobVertex
from flinkmagic.graph.stream_graph import StreamNode
from flinkmagic.planning.stage_handles import StageHandle, stage_handle
from flinkmagic.planning.stage_metrics import NOTHING, Metrics, StageMetrics
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.session.findings.facts import InputFacts, JobFacts, OperatorFacts, VertexFacts

NO_METRICS = StageMetrics()


@dataclass(frozen=True)
class LastStage:
    """The stage that an action has run itself, after its job."""

    graph: JobGraph
    """The job's, with the stage's vertex."""
    vertex: JobVertex
    stage: StageHandle
    tasks: tuple[TaskRecord, ...]
    """All attempts."""
    metrics: StageMetrics
    ended_ms: float
    """When the action had its answer, milliseconds since the epoch."""
    action: Mapping[str, Any]
    """The metadata of the action (see `OperatorLabel`): its line, which may not be that of the query's operators."""

    @classmethod
    def of(
        cls,
        graph: JobGraph,
        vertex: JobVertex,
        stage: StageHandle,
        events: CallEvents,
        metrics: StageMetrics,
        action: Mapping[str, Any],
    ) -> LastStage:
        """Return what Spark has reported of the stage; what it had lost, and made again for it, belongs to it, too."""
        tasks = tuple(
            task._replace(
                vertex_id=vertex.id,
                vertex=vertex.name,
                # Spark counts the batches of kept rows as records.
                rows_in=None if stage.row_metrics() else task.rows_in,
                rows_out=None,
                bytes_out=task.result_bytes,
                role="task" if task.stage in events.last_stages else "helper",
            )
            for task in events.tasks
        )
        return cls(graph, vertex, stage, tasks, metrics, events.ended_ms, action)


def job_facts(
    graph: AccessExecutionGraph,
    state: DeploymentSnapshot,
    *,
    partition_bytes: Mapping[str, tuple[int, ...]],
    metrics: Mapping[str, StageMetrics],
    last: LastStage | None = None,
) -> JobFacts:
    """Return the facts of a job that its tasks tell.

    Parameters
    ----------
    partition_bytes, metrics : mapping
        By the id of a job vertex.
    last : LastStage, optional
        Of an action's job.
    """
    info = state.job
    attempts: dict[str, list[TaskRecord]] = {}
    helpers = []
    for task in (*state.tasks, *(() if last is None else last.tasks)):
        if task.role == "helper":
            helpers.append(task)
        else:
            attempts.setdefault(task.vertex_id, []).append(task)
    vertices = [
        _vertex(vertex, attempts[vertex.id], partition_bytes.get(vertex.id, ()), metrics.get(vertex.id, NO_METRICS))
        for vertex in graph.job_vertices
        if vertex.id in attempts
    ]
    if last is not None and last.vertex.id in attempts:
        own, kind, stage = attempts[last.vertex.id], last.stage.kind, last.stage.name
        vertices.append(vertex_facts(last.vertex, own, last.metrics, kind=kind, stage=stage, above=last.action))
    return JobFacts(
        vertices=tuple(vertices),
        started_ms=info.started_ms,
        ended_ms=info.ended_ms if last is None else last.ended_ms,
        slots=state.slots_total,
        slots_of_session=state.slots_of_session,
        is_finished=info.job_status is JobStatus.FINISHED,
        helpers=tuple(helpers),
    )


def _vertex(
    vertex: ExecutionJobVertex, attempts: list[TaskRecord], written: tuple[int, ...], metrics: StageMetrics
) -> VertexFacts:
    handle = stage_handle(vertex.job_vertex)
    if handle is None:
        return vertex_facts(vertex.job_vertex, attempts, metrics, written=written)
    above = vertex.job_vertex.tail.metadata or {} if handle.is_committed else handle.above or None
    return vertex_facts(
        vertex.job_vertex, attempts, metrics, kind=handle.kind, stage=handle.name, above=above, written=written
    )


def vertex_facts(
    vertex: JobVertex,
    attempts: Iterable[TaskRecord],
    metrics: StageMetrics,
    *,
    kind: str = "",
    stage: str = "",
    above: Mapping[str, Any] | None = None,
    written: tuple[int, ...] = (),
) -> VertexFacts:
    """Return the facts of a vertex.

    Parameters
    ----------
    above : mapping, optional
        The metadata of the exchange that its stage writes, or of the write's command.
    """
    own = vertex.tail.id if kind == "write" else -1
    return VertexFacts(
        id=vertex.id,
        name=vertex.name,
        kind=kind,
        stage=stage,
        operators=tuple(_operator(node, metrics.operators) for node in reversed(vertex.operators)),
        inputs=tuple(
            InputFacts(
                edge.producer.id,
                edge.partitioner.kind.name,
                edge.stream_edge.target.id,
                edge.stream_edge.source.id,
            )
            for edge in vertex.inputs
        ),
        attempts=tuple(attempts),
        written=written,
        above=None if above is None else _facts(own, above, metrics.top),
        words=metrics.words,
    )


def _operator(node: StreamNode, metrics: Mapping[int, Metrics]) -> OperatorFacts:
    metadata = node.metadata or {}
    own = metrics.get(metadata.get("node", -1), NOTHING)
    return _facts(node.id, metadata, own, tuple(edge.source.id for edge in node.in_edges))


def _facts(id: int, metadata: Mapping[str, Any], metrics: Metrics, inputs: tuple[int, ...] = ()) -> OperatorFacts:
    return OperatorFacts(
        id=id,
        kind=str(metadata.get("kind") or ""),
        operator=str(metadata.get("operator") or ""),
        text=str(metadata.get("text") or ""),
        cell=str(metadata.get("cell") or ""),
        line=int(metadata.get("line") or 0),
        code=str(metadata.get("code") or ""),
        variable=str(metadata.get("variable") or ""),
        metrics=metrics,
        inputs=inputs,
    )
