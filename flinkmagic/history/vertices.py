"""Makes the vertices of a logged job: which stages ran what part of its plan, and which read which.

1. Stages with the same RDDs compute the same, and are one vertex: a stage and its copy in a later Spark job, which
   skips it; the stages of `take`, which reads more and more partitions.
2. A vertex runs the part of the plan of whose metrics its tasks have measured the most. One whose measures are not
   known, for it failed, or the log ends before, runs the part that is left with the most names of its RDDs.
3. Of several vertices for one part the last one has it. One that it reads ran the part before a shuffle that is no
   operator of the plan (``TakeOrderedAndProject``); any other has helped, such as the sampling before a sort.
4. A stage that fits no part (of an RDD; of a plan that the log does not have) has what made its RDDs for operators.
5. A stage of a run of flinkmagic's says which vertex of the run it is, and what it reads (`StagePlace`). Stages of one
   vertex are one; a stage that only prepares one has helped. If the log does not have what it ran, then it has the
   operators in its name.
6. Any other edge is where a stage names its parents, and where a part reads another one by a broadcast or a subquery.
7. An edge leads from what began earlier to what began later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from flinkmagic.deployment import TaskRecord
from flinkmagic.deployment.stages.stage_place import HELPER, StagePlace
from flinkmagic.graph.partitioner import PartitionerKind
from flinkmagic.history.event_log import LoggedStage
from flinkmagic.history.logged_plan import LoggedPlan, PlanPart, plan_id
from flinkmagic.planning.partitions import HIDDEN_SHUFFLES
from flinkmagic.planning.plan_reader import PlanNode

_PARTITIONERS = (
    ("Exchange hashpartitioning", PartitionerKind.HASH),
    ("Exchange rangepartitioning", PartitionerKind.RANGE),
    ("Exchange SinglePartition", PartitionerKind.GLOBAL),
    ("Exchange RoundRobinPartitioning", PartitionerKind.REBALANCE),
)
"""How the texts of exchanges begin."""
_TOLD = {kind.name: kind for _, kind in _PARTITIONERS} | {
    "BROADCAST": PartitionerKind.BROADCAST,
    # As of a cache (`LoggedVertex.partitioner`): the tasks of the two may differ in number.
    "FORWARD": PartitionerKind.RESCALE,
}
"""By its name in a `StagePlace`."""


@dataclass(eq=False)
class LoggedVertex:
    """Stages that compute the same."""

    stages: list[LoggedStage]
    part: PlanPart | None = None
    is_before_shuffle: bool = False
    """Whether it ran only what is before a shuffle that is no operator of the plan."""
    operators: list[PlanNode] = field(default_factory=list)
    """Inputs first."""
    inputs: list[tuple[LoggedVertex, PartitionerKind]] | None = None
    """What it reads, and how, as it says itself; None if it does not."""
    reads: list[tuple[LoggedVertex, PartitionerKind, int]] = field(default_factory=list)
    """What it reads, how, and the number of the operator that does."""

    @property
    def tasks(self) -> list[TaskRecord]:
        """The attempts of its stages."""
        return [task for stage in self.stages for task in stage.tasks]

    @property
    def measured(self) -> set[int]:
        """The accumulators to which its tasks have added."""
        return {number for stage in self.stages for number in stage.metrics}

    @property
    def began_ms(self) -> float:
        return min(task.start_ms for task in self.tasks)

    @property
    def place(self) -> StagePlace | None:
        """Where it stands in a run of flinkmagic's."""
        return next((stage.place for stage in reversed(self.stages) if stage.place is not None), None)

    @property
    def kind(self) -> str:
        """What it leaves (see `PlanPart`); empty if that is not known."""
        if self.place is not None:
            return self.place.kind
        if self.is_before_shuffle:
            return "shuffle"
        return self.part.kind if self.part is not None else ""

    @property
    def above(self) -> PlanNode | None:
        """The exchange that it feeds, or the write's command."""
        return self.part.above if self.part is not None and not self.is_before_shuffle else None

    @property
    def partitioner(self) -> PartitionerKind:
        """How its rows are spread over those that read them."""
        if self.is_before_shuffle:
            return PartitionerKind.GLOBAL
        if self.kind in ("broadcast", "subquery"):
            return PartitionerKind.BROADCAST
        if self.kind == "boundary":
            return PartitionerKind.RESCALE
        text = self.above.text if self.above is not None else ""
        return next((kind for begin, kind in _PARTITIONERS if text.startswith(begin)), PartitionerKind.CUSTOM)


def vertices_of(stages: list[LoggedStage], plan: LoggedPlan | None) -> tuple[list[LoggedVertex], list[LoggedVertex]]:
    """Return the vertices of a job, those that began earlier first, and those that have only helped."""
    placed = {
        stage.rdds: stage.place.vertex for stage in stages if stage.place is not None and stage.place.kind != HELPER
    }
    groups: dict[tuple[int, ...] | str, LoggedVertex] = {}
    of_stage: dict[int, LoggedVertex] = {}
    for stage in stages:
        key = placed.get(stage.rdds) or stage.rdds or (-1 - stage.id,)
        vertex = groups.setdefault(key, LoggedVertex([]))
        vertex.stages.append(stage)
        of_stage[stage.id] = vertex
    ran = sorted((one for one in groups.values() if one.tasks), key=lambda one: (one.began_ms, one.stages[0].id))
    parents = {
        id(one): [of_stage[parent] for stage in one.stages for parent in stage.parents if parent in of_stage]
        for one in ran
    }
    helpers = [one for one in ran if one.kind == HELPER]
    vertices = [one for one in ran if one not in helpers]
    if plan is not None:
        helpers += _assign(vertices, plan, parents)
        vertices = [one for one in vertices if one not in helpers]
    for vertex in vertices:
        place = vertex.place
        if place is not None:
            read = [(groups[producer], how) for producer, how in place.inputs if producer in groups]
            vertex.inputs = [(one, _TOLD.get(how, PartitionerKind.CUSTOM)) for one, how in read]
        if not vertex.operators:
            vertex.operators = _chain(_names(vertex))
    _connect(vertices, parents, _exchanges(plan))
    return vertices, helpers


def _assign(ran: list[LoggedVertex], plan: LoggedPlan, parents: Mapping[int, list[LoggedVertex]]) -> list[LoggedVertex]:
    """Give vertices their parts and operators; return those that have only helped."""
    of_part: dict[int, list[LoggedVertex]] = {}
    for vertex in sorted(ran, key=lambda one: not one.measured):
        scopes = {scope for stage in vertex.stages for scope in stage.scopes}
        fits = [
            (len(vertex.measured & part.measured), 0, -index)
            if vertex.measured
            else (0, len(scopes & part.names) if index not in of_part else 0, -index)
            for index, part in enumerate(plan.parts)
        ]
        *most, index = max(fits, default=(0, 0, 0))
        if any(most):
            vertex.part = plan.parts[-index]
            of_part.setdefault(-index, []).append(vertex)
    helpers = []
    for number, found in of_part.items():
        part = plan.parts[number]
        *others, last = found
        before = next((one for one in others if one in parents[id(last)]), None)
        helpers += [one for one in others if one is not before and one.place is None]
        last.operators = part.operators
        if before is not None:
            shuffles = _hidden_shuffle(part)
            below = _below(shuffles)
            before.operators = [*(one for one in part.operators if one.number in below), _local(shuffles)]
            last.operators = [one for one in part.operators if one.number not in below]
            before.is_before_shuffle = True
    return helpers


def _hidden_shuffle(part: PlanPart) -> PlanNode:
    """Return the operator of a part that has a shuffle of its own; the last one if none is known to have one."""
    return next((one for one in part.operators if one.kind in HIDDEN_SHUFFLES), part.operators[-1])


def _below(operator: PlanNode) -> set[int]:
    """Return the numbers of all operators on which one depends."""
    found: set[int] = set()
    waiting = list(operator.children)
    while waiting:
        one = waiting.pop()
        if one.number not in found:
            found.add(one.number)
            waiting += one.children
    return found


def _local(node: PlanNode) -> PlanNode:
    """Return what an operator with a shuffle of its own does before that."""
    return PlanNode(-node.number, node.kind, node.class_name, f"{node.name} (local)", node.text, (), node.children, ())


def _names(vertex: LoggedVertex) -> list[str]:
    """Return what the operators of a vertex are called of which the log has no plan."""
    if vertex.place is None:
        return list(dict.fromkeys(scope for one in vertex.stages for scope in one.scopes))
    _, _, name = vertex.stages[-1].name.partition(": ")
    # What is in brackets are the inputs of an operator that has several.
    names = [name] if "[" in name else name.split(" -> ")
    return [one.removeprefix("Source: ") for one in names]


def _chain(scopes: list[str]) -> list[PlanNode]:
    """Return operators of which each reads the one before it."""
    nodes: list[PlanNode] = []
    for number, scope in enumerate(scopes or ["RDD"], start=1):
        nodes.append(PlanNode(-number, scope, scope, scope, scope, (), tuple(nodes[-1:]), ()))
    return nodes


def _exchanges(plan: LoggedPlan | None) -> dict[str, PlanPart]:
    parts = plan.parts if plan is not None else []
    return {plan_id(part.above): part for part in parts if part.above is not None and plan_id(part.above)}


def _connect(
    vertices: list[LoggedVertex], parents: Mapping[int, list[LoggedVertex]], exchanges: Mapping[str, PlanPart]
) -> None:
    """Find what each vertex reads."""
    with_part = {id(one.part): one for one in vertices if one.part is not None and not one.is_before_shuffle}
    earlier: set[int] = set()
    for vertex in vertices:
        found: dict[int, tuple[LoggedVertex, int]] = {}
        part = vertex.part
        if part is not None:
            own = {one.number for one in vertex.operators}
            reads = [(number, cut) for number, cuts in part.reads.items() for cut in cuts]
            reads += [(number, exchanges[text]) for number, text in part.reused.items() if text in exchanges]
            for number, cut in reads:
                producer = with_part.get(id(cut))
                if producer is not None and number in own:
                    found[id(producer)] = producer, number
        reader = _reader(vertex)
        how = {id(producer): partitioner for producer, partitioner in vertex.inputs or ()}
        for producer in parents[id(vertex)] if vertex.inputs is None else (producer for producer, _ in vertex.inputs):
            found.setdefault(id(producer), (producer, reader))
        vertex.reads = [
            (producer, how.get(key, producer.partitioner), number)
            for key, (producer, number) in found.items()
            if key in earlier and (vertex.inputs is None or key in how)
        ]
        earlier.add(id(vertex))


def _reader(vertex: LoggedVertex) -> int:
    """Return which operator reads what the plan does not connect: one that reads an exchange again, else the first."""
    reused = list(vertex.part.reused) if vertex.part is not None else []
    own = {one.number for one in vertex.operators}
    return next((number for number in reused if number in own), vertex.operators[0].number)
