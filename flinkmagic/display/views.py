"""Views of the graphs: what readers see of a StreamGraph, a JobGraph, an ExecutionGraph.

A node's words come from its transformation: from `metadata` (``call``, ``cell``, ``line``, ``code``, ``variable``,
``name``, ``operator``, ``text``; all optional), then `description`, then Flink's name for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from flinkmagic import amounts
from flinkmagic.display.snapshot import ClusterView, EdgeView, GraphView, NodeView, OperatorLine
from flinkmagic.graph.job_graph import JobEdge, JobGraph, JobVertex
from flinkmagic.graph.stream_graph import Invokable, StreamEdge, StreamGraph, StreamNode


class Words:
    """Turns nodes into operator lines; knows whether all of a job's lines are in one cell."""

    def __init__(self, nodes: Iterable[StreamNode]) -> None:
        cells = {str(node.metadata["cell"]) for node in nodes if node.metadata and node.metadata.get("cell")}
        self.one_cell = len(cells) < 2

    def line(self, node: StreamNode) -> OperatorLine:
        """Return the words for one operator."""
        facts: Mapping[str, Any] = node.metadata or {}
        call = str(facts.get("call") or "")
        operator = str(facts.get("operator") or ("" if call else node.description or "") or node.name)
        return OperatorLine(
            call=call,
            operator=operator,
            where=self._where(facts),
            code=str(facts.get("code") or ""),
            variable=str(facts.get("variable") or ""),
            text=str(facts.get("text") or ""),
            node_ids=(node.id,),
            name=str(facts.get("name") or ""),
            reads=str(facts.get("reads") or ""),
            does=tuple(filter(None, [str(facts["does"])])) if "does" in facts else None,
        )

    def _where(self, facts: Mapping[str, Any]) -> str:
        line = f"line {facts['line']}" if facts.get("line") else ""
        cell = "" if self.one_cell and line else str(facts.get("cell") or "")
        return ", ".join(part for part in (cell, line) if part)


def role(node: StreamNode) -> str:
    """Return a stream node's part in the graph."""
    if node.iteration_id is not None:
        return "iteration"
    if not node.in_edges:
        return "source"
    if node.name.startswith("Sink: ") or (node.metadata or {}).get("role") == "sink":
        return "sink"
    words = f"{node.name} {(node.metadata or {}).get('operator') or ''}".lower()
    if len(node.in_edges) > 1 and node.invokable is not Invokable.ONE_INPUT:
        return "union" if "union" in words else "join" if "join" in words or "cartesian" in words else "operator"
    return "operator"


def merged(lines: Sequence[OperatorLine]) -> tuple[OperatorLine, ...]:
    """Return `lines` with neighbours that have the same call, or none, joined: ``HashAggregate → Project``."""
    kept: list[OperatorLine] = []
    for line in lines:
        last = kept[-1] if kept else None
        is_told = line.call or (line.does is not None and last is not None and last.does is not None)
        if last and is_told and (last.call, last.where) == (line.call, line.where):
            operator = " → ".join(part for part in (last.operator, line.operator) if part)
            text = "\n".join(part for part in (last.text, line.text) if part)
            kept[-1] = replace(
                line, operator=operator, text=text, name=line.name or last.name, does=_all_done(last, line),
                variable=line.variable or last.variable, node_ids=last.node_ids + line.node_ids,
                reads=max(last.reads, line.reads, key=len),
            )  # fmt: skip
        else:
            kept.append(line)
    return tuple(kept)


def _all_done(first: OperatorLine, then: OperatorLine) -> tuple[str, ...] | None:
    if first.does is None or then.does is None:
        return then.does
    return tuple(dict.fromkeys((*first.does, *then.does)))


def stream_view(stream_graph: StreamGraph, job_graph: JobGraph | None = None) -> GraphView:
    """Return the view of a StreamGraph; with `job_graph`, chains are framed and nodes can be painted."""
    words = Words(stream_graph.nodes.values())
    vertices = job_graph.vertices_by_operator() if job_graph is not None else {}
    vertex_of = {number: vertex.id for number, vertex in vertices.items()}
    nodes = tuple(
        NodeView(
            id=str(node.id),
            role=role(node),
            name=node.name,
            operators=(words.line(node),),
            parallelism=node.parallelism,
            vertex_id=vertex_of.get(node.id, ""),
            facts=_stream_facts(node),
        )
        for node in stream_graph.nodes.values()
    )
    edges = tuple(_stream_edge(edge, vertex_of) for edge in stream_graph.edges)
    summary = amounts.count(len(nodes), "operator")
    if vertices:
        summary += f" in {amounts.count(len(set(vertex_of.values())), 'job vertex', 'job vertices')}"
    return GraphView("stream", stream_graph.name, nodes, edges, _chains(job_graph), summary)


def _stream_edge(edge: StreamEdge, vertex_of: Mapping[int, str]) -> EdgeView:
    source, target = edge.source.id, edge.target.id
    facts = [("exchange mode", edge.exchange_mode.name)]
    if edge.output_tag is not None:
        facts.append(("side output", edge.output_tag.id))
    if edge.selected_names:
        facts.append(("selected", ", ".join(edge.selected_names)))
    chained = source in vertex_of and vertex_of[source] == vertex_of.get(target)
    return EdgeView(str(source), str(target), str(edge.partitioner), chained=chained, facts=tuple(facts))


def _stream_facts(node: StreamNode) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, str(value))
        for name, value in (
            ("id", node.label),
            ("slot sharing group", node.slot_sharing_group),
            ("co-location group", node.co_location_group),
            ("chaining", node.chaining_strategy.name if node.chaining_strategy else None),
            ("uid", node.uid),
        )
        if value is not None
    )


def _chains(job_graph: JobGraph | None) -> tuple[ClusterView, ...]:
    """Frame the operators that run in one vertex, if there are several."""
    if job_graph is None:
        return ()
    return tuple(
        ClusterView(
            id=f"chain-{vertex.id}",
            label="one job vertex",
            nodes=tuple(str(node.id) for node in reversed(vertex.operators)),
            vertex_id=vertex.id,
            facts=(("vertex", vertex.name), ("subtasks", str(_parallelism(vertex)))),
        )
        for vertex in job_graph.vertices_in_topological_order()
        if len(vertex.operators) > 1
    )


def _parallelism(vertex: JobVertex) -> int:
    """Return a vertex's parallelism; one that is undecided in the job graph is 1 in the execution graph."""
    return max(vertex.parallelism, 1)


def job_view(job_graph: JobGraph) -> GraphView:
    """Return the view of a JobGraph, in topological order."""
    vertices = job_graph.vertices_in_topological_order()
    nodes = vertex_nodes(job_graph)
    edges = tuple(job_edge(edge) for vertex in vertices for edge in vertex.inputs)
    operators = sum(len(vertex.operators) for vertex in vertices)
    tasks = sum(map(_parallelism, vertices))
    summary = (
        f"{amounts.count(operators, 'operator')} in {amounts.count(len(vertices), 'job vertex', 'job vertices')}, "
        f"{amounts.count(tasks, 'task')}"
    )
    return GraphView("job", job_graph.name, nodes, edges, (), summary)


def vertex_nodes(job_graph: JobGraph) -> tuple[NodeView, ...]:
    """Return a box for each job vertex, in topological order."""
    vertices = job_graph.vertices_in_topological_order()
    words = Words(node for vertex in vertices for node in vertex.operators)
    return tuple(
        NodeView(
            id=vertex.id,
            role=_vertex_role(vertex),
            name=vertex.name,
            operators=merged([words.line(node) for node in reversed(vertex.operators)]),
            parallelism=_parallelism(vertex),
            vertex_id=vertex.id,
            badges=_badges(vertex),
            facts=_vertex_facts(vertex),
        )
        for vertex in vertices
    )


def _vertex_role(vertex: JobVertex) -> str:
    """Return the role of a vertex's most telling operator: a sink, else a join or a union, else a source."""
    roles = [role(node) for node in vertex.operators]
    for name in ("sink", "iteration", "join", "union"):
        if name in roles:
            return name
    return "source" if "source" in roles else "operator"


def _badges(vertex: JobVertex) -> tuple[str, ...]:
    readers = max((len(dataset.consumers) for dataset in vertex.produced), default=0)
    badges = [f"shared by {readers}"] if readers > 1 else []
    if any(dataset.result_type.is_persistent for dataset in vertex.produced):
        badges.append("kept")
    return tuple(badges)


def _vertex_facts(vertex: JobVertex) -> tuple[tuple[str, str], ...]:
    facts = [("vertex", vertex.id), ("slot sharing group", vertex.slot_sharing_group.name)]
    if vertex.max_parallelism > 0:
        facts.append(("max parallelism", str(vertex.max_parallelism)))
    if vertex.co_location_group is not None:
        facts.append(("co-location group", vertex.co_location_group.name))
    return tuple(facts)


def job_edge(edge: JobEdge) -> EdgeView:
    """Return the arrow of a JobEdge."""
    return EdgeView(
        edge.producer.id,
        edge.target.id,
        edge.ship_strategy_name,
        edge.result_type.name,
        facts=(("distribution", edge.pattern.name), ("data set", edge.source.id)),
    )
