"""Immutable snapshots, from which the pictures, the texts and the widget are drawn.

`GraphView` is one graph of a job as a reader sees it: boxes, arrows, clusters. `JobSnapshot` is how far the job has
come at one moment. A view is built once (`flinkmagic.display.views`), then painted with one snapshot after another;
neither keeps hold of a graph, so both may pass between threads and into JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from flinkmagic.display.costs import VertexCost
from flinkmagic.display.findings import FindingsView
from flinkmagic.display.measures import VertexMeasures
from flinkmagic.display.palette import ATTENTION, STATES
from flinkmagic.display.queries import QueryView

GraphKind = Literal["stream", "job", "execution", "regions", "timeline", "findings"]

STATE_NAMES: tuple[str, ...] = tuple(STATES)
"""Names of Flink's ExecutionState; a subtask's state is kept as one byte, the index into this."""

REUSED = "reused"
"""The badge of what was there before the job began."""

LEFT_OUT = "not run"
"""The badge of what is not part of a run of some of the sinks."""

_CODE = {name: code for code, name in enumerate(STATE_NAMES)}
_NOT_YET_RUNNING = ("CREATED", "SCHEDULED", "DEPLOYING", "INITIALIZING")

KIND_TITLES: dict[GraphKind, str] = {
    "stream": "Stream graph",
    "job": "Job graph",
    "execution": "Execution graph",
    "regions": "Regions and slots",
    "timeline": "Timeline",
    "findings": "Findings",
}


def state_counts(states: bytes) -> dict[str, int]:
    """Return how many subtasks are in each state, in the order of a task's life, without zeros."""
    return {name: found for code, name in enumerate(STATE_NAMES) if (found := states.count(code))}


def leading_state(states: bytes) -> str:
    """Return the state that represents several subtasks.

    As in Flink's ExecutionJobVertex.getAggregateState: any failed subtask makes the vertex FAILED, then any cancelled
    one CANCELED, then any running one RUNNING; a vertex with some subtasks finished and others not begun counts as
    RUNNING. Departure: INITIALIZING, DEPLOYING and SCHEDULED count too, if nothing runs yet.
    """
    if not states:
        return "CREATED"
    speaker = next(name for name in ATTENTION if _CODE[name] in states)
    return "RUNNING" if _CODE["FINISHED"] in states and speaker in _NOT_YET_RUNNING else speaker


@dataclass(frozen=True)
class OperatorLine:
    """One operator of a box: the user's words for it first, Spark's second."""

    call: str = ""
    """What the user wrote, such as ``groupBy("hour").agg(...)``; empty if an operator is the planner's own."""
    operator: str = ""
    """The physical operator (or the Flink operator's name)."""
    where: str = ""
    """``"cell 3, line 4"`` or ``"line 4"``."""
    code: str = ""
    """The text of that line."""
    variable: str = ""
    """The name that the result was bound to."""
    text: str = ""
    """What Spark itself says about the operator: its columns, keys, files."""
    node_ids: tuple[int, ...] = ()
    """Ids of the StreamNodes."""
    name: str = ""
    """The name that the user gave the operator; empty if there is none."""
    reads: str = ""
    """For a part of a SQL text: the tables that it reads."""
    does: tuple[str, ...] | None = None
    """For a part of a SQL text: what it does. The call is then the whole text, which says nothing about the part."""

    @property
    def phrase(self) -> str:
        """What a part of a SQL text does, and with which tables: ``"lineitem: scan, filter"``."""
        return ": ".join(part for part in (self.reads, ", ".join(self.does or ())) if part) if self.does else ""

    @property
    def title(self) -> str:
        call = self.call if self.does is None else self.phrase
        return self.name or call or self.operator

    @property
    def subtitle(self) -> str:
        parts = [self.where, self.operator if self.operator != self.title else ""]
        return " · ".join(part for part in parts if part)


@dataclass(frozen=True)
class NodeView:
    """A box: a stream node, a job vertex, or a job vertex with its subtasks."""

    id: str
    role: str
    name: str
    operators: tuple[OperatorLine, ...] = ()
    parallelism: int = 1
    vertex_id: str = ""
    """The job vertex whose subtasks run this node: their states paint it. Empty: none is known."""
    badges: tuple[str, ...] = ()
    states: bytes = b""
    facts: tuple[tuple[str, str], ...] = ()
    members: tuple[str, ...] = ()
    """The job vertices that a box represents, if there are several."""
    cost: VertexCost | None = None
    """What its tasks cost, once all of them are done, or a stream's last batch."""
    marks: tuple[str, ...] = ()
    """What was found to have lost time in it, a line for each finding."""

    @property
    def main_operator(self) -> OperatorLine:
        """The operator that gives the box its name: the last one that the user named, else the last one."""
        named = [line for line in self.operators if line.name]
        return (named or self.operators or (OperatorLine(operator=self.name),))[-1]

    @property
    def title(self) -> str:
        """The box's display name."""
        return self.main_operator.title

    @property
    def leading_state(self) -> str:
        return leading_state(self.states)

    @property
    def state_counts(self) -> dict[str, int]:
        return state_counts(self.states)


@dataclass(frozen=True)
class EdgeView:
    """An arrow: a stream edge or a job edge."""

    source: str
    target: str
    partitioner: str
    result_type: str = ""
    chained: bool = False
    """Whether both ends run in one job vertex."""
    pairs: tuple[tuple[int, int], ...] | None = None
    """(producing subtask, consuming subtask), if there are few enough of them to be drawn."""
    facts: tuple[tuple[str, str], ...] = ()

    @property
    def label(self) -> str:
        """The partitioner, and how the result is passed on: ``"HASH · blocking"``."""
        kind = self.result_type.replace("_", " ").lower()
        return f"{self.partitioner} · {kind}" if kind else self.partitioner


@dataclass(frozen=True)
class ClusterView:
    """A frame around boxes: a chain in the stream graph, a group of regions."""

    id: str
    label: str
    nodes: tuple[str, ...]
    vertex_id: str = ""
    facts: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class TaskView:
    """One task attempt (Flink: Execution); an unknown value is None."""

    vertex_id: str
    subtask: int
    attempt: int = 0
    state: str = "CREATED"
    slot: str | None = None
    executor: str | None = None
    start_ms: float | None = None
    end_ms: float | None = None
    rows_in: int | None = None
    rows_out: int | None = None
    bytes_in: int | None = None
    bytes_out: int | None = None
    error: str | None = None


@dataclass(frozen=True)
class ErrorView:
    """A failure: what happened, where, and the traceback's lines that are the user's."""

    message: str
    where: str = ""
    vertex_id: str = ""
    traceback: str = ""


@dataclass(frozen=True)
class JobSnapshot:
    """A job's progress at one moment."""

    name: str
    status: str = "INITIALIZING"
    elapsed_ms: float | None = None
    states: Mapping[str, bytes] = field(default_factory=dict)
    """By job vertex id, one byte for each subtask (see `STATE_NAMES`)."""
    slots_used: int | None = None
    slots_total: int | None = None
    started_at_ms: float | None = None
    tasks: Sequence[TaskView] = ()
    """All attempts, or those that changed since the snapshot before: a reader merges by vertex, subtask and attempt."""
    errors: Sequence[ErrorView] = ()
    note: str = ""
    reused: frozenset[str] = frozenset()
    """Job vertices that did not run, because their results existed already."""
    facts: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    """What the run has found out, by job vertex: readable names and values."""
    costs: Mapping[str, VertexCost] = field(default_factory=dict)
    """What the finished tasks cost, or the last batches of streams, by job vertex."""
    queries: Sequence[QueryView] = ()
    """The streaming queries of the job."""
    findings: FindingsView | None = None
    """What lost the job's time; None if nobody has looked, and of streams."""
    measures: Mapping[str, VertexMeasures] = field(default_factory=dict)
    """Where the time went, by job vertex; nothing if nobody has looked."""

    @property
    def task_counts(self) -> dict[str, int]:
        """Tasks by state over all vertices, in the order of a task's life, without zeros."""
        return state_counts(b"".join(self.states.values()))

    def states_of(self, node: NodeView) -> bytes:
        """Return the states of the subtasks that `node` represents; its own if nothing is known about it."""
        if node.members:
            return b"".join(self.states.get(member, b"") for member in node.members)
        return self.states.get(node.vertex_id, node.states)

    def cost_of(self, node: NodeView) -> VertexCost | None:
        """Return what the tasks of `node` cost, once all have run, or a stream's last batch.

        None for a part of a vertex, and for several.
        """
        cost = self.costs.get(node.vertex_id) if node.id == node.vertex_id else None
        is_done = leading_state(self.states_of(node)) == "FINISHED"
        return cost if cost is not None and (is_done or cost.batch is not None) else None

    def marks_of(self, node: NodeView) -> tuple[str, ...]:
        """Return what was found at `node`; nothing for a part of a vertex."""
        if self.findings is None or (node.id != node.vertex_id and not node.members):
            return ()
        return self.findings.marks(frozenset(node.members or (node.vertex_id,)))

    def longest_first(self, nodes: Iterable[NodeView]) -> list[NodeView]:
        """Return boxes by the time of their tasks, longest first; those without a known time come last."""

        def took(node: NodeView) -> float:
            cost = self.costs.get(node.vertex_id)
            return -1.0 if cost is None or cost.took_ms is None else cost.took_ms

        return sorted(nodes, key=took, reverse=True)

    def badges_of(self, node: NodeView) -> tuple[str, ...]:
        """Return the badges of `node`, including that all that it represents is reused, or not part of the run."""
        members = node.members or (node.vertex_id,)
        if self.states and node.vertex_id + "".join(node.members) and self.states.keys().isdisjoint(members):
            return (*(badge for badge in node.badges if badge != LEFT_OUT), LEFT_OUT)
        return (*node.badges, REUSED) if self.reused.issuperset(members) and REUSED not in node.badges else node.badges

    @property
    def n_tasks(self) -> int:
        return sum(map(len, self.states.values()))


@dataclass(frozen=True)
class GraphView:
    """One graph of a job, ready to be laid out and drawn."""

    kind: GraphKind
    name: str
    nodes: tuple[NodeView, ...]
    edges: tuple[EdgeView, ...] = ()
    clusters: tuple[ClusterView, ...] = ()
    summary: str = ""
    status: str = ""
    elapsed_ms: float | None = None

    @property
    def title(self) -> str:
        return KIND_TITLES[self.kind]

    def paint(self, snapshot: JobSnapshot) -> GraphView:
        """Return this view with the states, the status and the elapsed time of `snapshot`."""
        nodes = tuple(
            replace(
                node,
                states=snapshot.states_of(node),
                badges=snapshot.badges_of(node),
                cost=snapshot.cost_of(node),
                marks=snapshot.marks_of(node),
            )
            for node in self.nodes
        )
        return replace(self, nodes=nodes, status=snapshot.status, elapsed_ms=snapshot.elapsed_ms)
