"""Applies what `with_options` asks for to the Transformations made from Spark's plan.

1. A mark belongs to the call that made its DataFrame. The operators that Spark plans for that call are its members; the
   top one, which no other member reads, has the name and the uid. If Spark plans the call several times (for sinks that
   do not share it), each top has the name, and from the second on a number is added to the uid.
2. A Spark stage runs within one task. So slot sharing group, co-location group and max parallelism hold for all
   operators of a stage; two different ones for one stage are refused.
3. ``head`` breaks the chain before the lowest members of the top's stage, ``never`` breaks it around each member there.
   What is cut stays in one Spark task: the edge is FORWARD and pipelined. If both sides have different numbers of
   subtasks, Spark's task spans both, and the cut is refused.
4. A mark without a member (Spark optimised the operator away, or merged it beyond recognition) is reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from flinkmagic.capturing.lineage import OperatorOptions
from flinkmagic.errors.capturing import (
    MaxParallelismTooLowError,
    StageOptionsConflictError,
    UidTakenError,
    UnbreakableChainError,
)
from flinkmagic.graph.exchange_mode import ChainingStrategy, StreamExchangeMode
from flinkmagic.graph.partitioner import PartitionerKind
from flinkmagic.graph.transformations import PartitionTransformation, Transformation

if TYPE_CHECKING:
    from flinkmagic.planning.provenance import Provenance

_GROUPS_ARE_SIMULATED = (
    "Slot sharing and co-location groups take effect in %flinksim; Spark gives each task a core of its own."
)
_OF_STAGES = ("slot_sharing_group", "co_location_group", "max_parallelism")


def apply_marks(
    operators: Sequence[Transformation], provenance: Provenance, marks: Mapping[int, OperatorOptions]
) -> tuple[str, ...]:
    """Apply the options to the operators of a job; return what the user should know.

    Parameters
    ----------
    operators : sequence of Transformation
        All physical ones of the job, inputs first.
    provenance : Provenance
        Knows the user's calls that their nodes (``metadata["node"]``) belong to.
    marks : mapping of int to OperatorOptions
        By the number of a frame, the options asked for.

    Raises
    ------
    OperatorOptionsError
        If marks contradict each other, or ask for what Spark cannot do.
    """
    if not marks:
        return ()
    members = _Members(operators, provenance)
    stages, chains = _Stages(operators), _Chains()
    warnings = []
    uids: dict[str, OperatorOptions] = {}
    for frame, mark in marks.items():
        tops = members.tops(frame)
        if not tops:
            warnings.append(f"{mark.location}: with_options marks nothing, Spark plans no operator of its own for it.")
            continue
        _name(tops, mark, uids)
        for top in tops:
            stages.mark(top, mark)
            chains.mark([each for each in members.of(frame) if stages.of(each) == stages.of(top)], mark)
    stages.apply()
    chains.cut(operators)
    if any(mark.slot_sharing_group or mark.co_location_group for mark in marks.values()):
        warnings.append(_GROUPS_ARE_SIMULATED)
    return tuple(warnings)


class _Members:
    """Finds the operators of each marked call."""

    def __init__(self, operators: Sequence[Transformation], provenance: Provenance) -> None:
        self._direct: dict[int, list[Transformation]] = {}
        self._inherited: dict[int, list[Transformation]] = {}
        for operator in operators:
            node = (operator.metadata or {}).get("node")
            if node is not None:
                known = self._direct if node in provenance.direct else self._inherited
                for call in provenance.calls.get(node, ()):
                    known.setdefault(call.output, []).append(operator)

    def of(self, frame: int) -> list[Transformation]:
        """Return the operators that do what the call asks for; if there are none, those that Spark added for it."""
        return self._direct.get(frame) or self._inherited.get(frame, [])

    def tops(self, frame: int) -> list[Transformation]:
        members = self.of(frame)
        read = {id(source) for member in members for source in _sources(member)}
        return [member for member in members if id(member) not in read]


class _Stages:
    """Finds which operators run within one Spark stage, and the options for that stage."""

    def __init__(self, operators: Sequence[Transformation]) -> None:
        self._operators = operators
        self._next: dict[int, int] = {}
        self._asked: dict[tuple[int, str], tuple[object, OperatorOptions]] = {}
        for operator in operators:
            self._next[id(operator)] = id(operator)
            for source in _sources_in_stage(operator):
                self._next[self.of(source)] = id(operator)

    def of(self, operator: Transformation) -> int:
        """Return what represents the stage of an operator."""
        number = id(operator)
        while self._next[number] != number:
            self._next[number] = number = self._next[self._next[number]]
        return number

    def mark(self, operator: Transformation, mark: OperatorOptions) -> None:
        """Apply rule 2."""
        stage = self.of(operator)
        for option in _OF_STAGES:
            value = getattr(mark, option)
            if value is None:
                continue
            before, earlier = self._asked.setdefault((stage, option), (value, mark))
            if before != value:
                raise StageOptionsConflictError(mark.location, option, value, operator.name, earlier.location, before)

    def apply(self) -> None:
        for operator in self._operators:
            for option in _OF_STAGES:
                value, mark = self._asked.get((self.of(operator), option), (None, None))
                if value is None or mark is None:
                    continue
                partitions = operator.parallelism or 1
                if option == "max_parallelism" and partitions > int(str(value)):
                    raise MaxParallelismTooLowError(mark.location, int(str(value)), operator.name, partitions)
                setattr(operator, option, value)


def _name(tops: Sequence[Transformation], mark: OperatorOptions, uids: dict[str, OperatorOptions]) -> None:
    """Apply rule 1."""
    if mark.uid is not None:
        other = uids.setdefault(mark.uid, mark)
        if other is not mark:
            raise UidTakenError(mark.location, mark.uid, other.location)
    for number, top in enumerate(tops, start=1):
        if mark.name is not None:
            top.name = mark.name
            top.metadata = {**(top.metadata or {}), "name": mark.name}
        if mark.uid is not None:
            top.uid = mark.uid if number == 1 else f"{mark.uid}-{number}"


class _Chains:
    """Breaks the chains of a stage where ``head`` or ``never`` asks for it (rule 3)."""

    def __init__(self) -> None:
        self._asked: dict[int, OperatorOptions] = {}

    def mark(self, members: Sequence[Transformation], mark: OperatorOptions) -> None:
        """Apply the options of the members of one stage."""
        inside = {id(member) for member in members}
        for member in members:
            if mark.chaining == "never":
                member.chaining_strategy = ChainingStrategy.NEVER
            elif mark.chaining == "head" and not any(id(one) in inside for one in _sources_in_stage(member)):
                member.chaining_strategy = ChainingStrategy.HEAD
            else:
                continue
            self._asked[id(member)] = mark

    def cut(self, operators: Sequence[Transformation]) -> None:
        """Separate the operators between which the chain is broken."""
        if self._asked:
            for operator in operators:
                operator.inputs = tuple(self._cut(source, operator) for source in operator.inputs)

    def _cut(self, source: Transformation, operator: Transformation) -> Transformation:
        upstream = _in_stage(source)
        if upstream is None:
            return source
        mark = self._asked.get(id(operator))
        if mark is None and upstream.chaining_strategy is ChainingStrategy.NEVER:
            mark = self._asked[id(upstream)]
        if mark is None:
            return source
        if upstream.parallelism != operator.parallelism:
            raise UnbreakableChainError(
                mark.location, upstream.name, upstream.parallelism or 1, operator.name, operator.parallelism or 1
            )
        return PartitionTransformation(upstream, PartitionerKind.FORWARD, StreamExchangeMode.PIPELINED)


def _in_stage(source: Transformation) -> Transformation | None:
    """Return the operator that an input comes from, if both run in one stage."""
    while isinstance(source, PartitionTransformation):
        if source.exchange_mode is StreamExchangeMode.BATCH:
            return None
        source = source.input
    return source


def _sources_in_stage(operator: Transformation) -> Iterator[Transformation]:
    for source in operator.inputs:
        upstream = _in_stage(source)
        if upstream is not None:
            yield upstream


def _sources(operator: Transformation) -> Iterator[Transformation]:
    """Yield the operators that an operator reads, of whatever stage."""
    for source in operator.inputs:
        while isinstance(source, PartitionTransformation):
            source = source.input
        yield source
