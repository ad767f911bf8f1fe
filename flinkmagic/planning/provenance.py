"""Finds which of the user's calls asked for which physical operator.

Marks on Catalyst's tree nodes do not survive the optimiser, but expression ids do. So, for the plan of one sink:

1. An operator whose output has attributes that a recorded call produced first belongs to that call (the last of them,
   where Spark merged several calls into one operator).
2. An operator that makes no attribute (filter, sort, join, limit, union, repartition, ...) belongs to one of the calls
   of its kind in the lineage of the sink's DataFrame: the one whose text names most of what the operator names, then
   the one between the calls above and below it.
3. An operator that calls Python functions belongs to the calls in which they are called, if that is plain
   (`python_callers`).
4. A DataFrame that the program was given, such as one of a cell that was not captured, has operators without a call.
   They are known by their attributes: nothing below them was made by a call of the program, and all that they read is
   in the plan of that DataFrame. A filter, a sort or a limit there is the program's if it names what a call of the
   program names: Spark may have pushed it down.
5. What is left was put in by Spark. What an operator above requires (exchanges, sorts, partial aggregates) belongs to
   the call of that operator; the rest belongs to the nearest operator below, else above, that has a call.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from flinkmagic.capturing.lineage import RecordedCall
from flinkmagic.capturing.program import Program
from flinkmagic.jvm.java import execution_of
from flinkmagic.planning.plan_reader import CACHED_SCAN, PlanForest, PlanNode
from flinkmagic.planning.python_callers import PYTHON_FUNCTIONS, callers

Calls: TypeAlias = tuple[RecordedCall, ...]

_FILTERS = frozenset({"where", "filter", "dropna", "side_output", "split", "sql"})
_SORTS = frozenset({"orderBy", "sort", "sortWithinPartitions"})
_LIMITS = frozenset({"limit", "offset", "head", "tail", "take"})
_JOINS = frozenset({"join", "crossJoin", "intersect", "intersectAll", "subtract", "exceptAll"})
_UNIONS = frozenset({"union", "unionAll", "unionByName"})
_SAMPLES = frozenset({"sample", "sampleBy", "randomSplit"})
_REPARTITIONS = frozenset({"repartition", "repartitionByRange"})
_AGGREGATES = frozenset(
    {"agg", "count", "sum", "avg", "mean", "min", "max", "distinct", "dropDuplicates", "drop_duplicates"}
) | (_JOINS - {"join", "crossJoin"})
_READS = frozenset(
    {"parquet", "csv", "json", "orc", "text", "load", "table", "jdbc", "xml", "range", "createDataFrame", "sql"}
)

_METHODS_BY_KIND = {
    "FilterExec": _FILTERS,
    "SortExec": _SORTS,
    "TakeOrderedAndProjectExec": _LIMITS | _SORTS,
    "GlobalLimitExec": _LIMITS,
    "LocalLimitExec": _LIMITS,
    "GlobalLimitAndOffsetExec": _LIMITS,
    "CollectLimitExec": _LIMITS,
    "CollectTailExec": _LIMITS,
    "UnionExec": _UNIONS,
    "SampleExec": _SAMPLES,
    "CoalesceExec": frozenset({"coalesce"}),
    "HashAggregateExec": _AGGREGATES,
    "SortAggregateExec": _AGGREGATES,
    "ObjectHashAggregateExec": _AGGREGATES,
    "SortMergeJoinExec": _JOINS,
    "ShuffledHashJoinExec": _JOINS,
    "BroadcastHashJoinExec": _JOINS,
    "BroadcastNestedLoopJoinExec": _JOINS,
    "CartesianProductExec": _JOINS,
    "StreamingSymmetricHashJoinExec": _JOINS,
    "EventTimeWatermarkExec": frozenset({"withWatermark"}),
    "StreamingDeduplicateExec": frozenset({"distinct", "dropDuplicates", "drop_duplicates"}),
    "StreamingDeduplicateWithinWatermarkExec": frozenset({"dropDuplicatesWithinWatermark"}),
}
_METHODS_BY_EXCHANGE = {
    "REPARTITION_BY_COL": _REPARTITIONS,
    "REPARTITION_BY_NUM": _REPARTITIONS,
    "rangepartitioning": _SORTS,
}
_REQUIRED_FROM_ABOVE = frozenset(
    {
        "ShuffleExchangeExec",
        "BroadcastExchangeExec",
        "SubqueryExec",
        "SubqueryBroadcastExec",
        "SortExec",
        "LocalLimitExec",
        "HashAggregateExec",
        "SortAggregateExec",
        "ObjectHashAggregateExec",
        "ArrowEvalPythonExec",
        "BatchEvalPythonExec",
    }
)
_MAKES_OTHER_ROWS = frozenset(
    kind for kind, methods in _METHODS_BY_KIND.items() if methods in (_AGGREGATES, _JOINS, _UNIONS)
)
_RENUMBERS = _JOINS | _UNIONS
"""Calls that make no attributes, but give those of one side other ids if both sides have them."""
_RENUMBERED = frozenset({-1})
"""Stands for the DataFrames whose attributes a self-join has renumbered: they are on one side of it."""
_ATTRIBUTE = re.compile(r"([A-Za-z_]\w*)#\d+")
_WORD = re.compile(r"[A-Za-z_]\w*|\d+(?:\.\d+)?")
_NUMBER = re.compile(r"\b\d+(?:\.\d+)?\b")
_ONLY_NULL_CHECKS = re.compile(r"^Filter [()]*isnotnull\([^()]*\)(?: AND [()]*isnotnull\([^()]*\)\)*)*\)*$")


class Provenance:
    """Finds the calls of a program in physical plans."""

    def __init__(self, program: Program, forest: PlanForest) -> None:
        self._program, self._forest = program, forest
        self._by_expr_id = program.lineage.by_expr_id()
        self._by_output = program.lineage.by_output()
        self._given = program.given()
        self._attributes: dict[int, frozenset[int]] = {}
        self.calls: dict[int, Calls] = {}
        """By the number of an operator, the calls that it belongs to; filled plan by plan. Nearly always it is one; if
        Spark made one operator from several calls, the last one of them comes last."""
        self.direct: set[int] = set()
        """The operators, by number, that belong to a call by rule 1 or 2."""
        self.names: dict[int, str] = {}
        """By the number of its last operator the user's name of a DataFrame that the program was given."""

    def assign(self, root: PlanNode, frame: int | None) -> None:
        """Find the calls of the operators in the plan of the DataFrame `frame`; those of earlier plans keep theirs."""
        lineage = self._lineage(frame)
        if not lineage:
            if frame is not None and frame in self._given:
                self._name([root], {}, {root.number: frozenset((frame,))})
            return
        parents = dict(_edges(root))
        nodes = [root, *(node for node in parents)]
        frames = {number: self._attributes_of(number) for number in self._given_to(lineage)}
        calls = self._by_new_attributes(nodes, lineage, is_given=bool(frames))
        anchors = {number: found[-1].index for number, found in calls.items()}
        made = {i for call in lineage.values() if call.method not in _RENUMBERS for i in call.output_expr_ids}
        has_text = any(call.method == "sql" for call in lineage.values())
        given: dict[int, frozenset[int]] = {}
        for node in _bottom_up(nodes) if frames else nodes:
            if node.number in calls:
                continue
            origin = _may_be_of(node, frames, given, calls) if made.isdisjoint(node.output) else frozenset()
            if origin == _RENUMBERED and has_text:  # a table that the text names
                origin = frozenset()
            found = self._by_kind(node, lineage, anchors, parents, is_given=bool(origin))
            if found:
                calls[node.number] = found
            if origin:
                given[node.number] = origin
        self.direct.update(calls)
        calls |= self._of_functions([node for node in nodes if node.number not in given], lineage)
        _require(nodes, parents, calls)
        given = {number: origin for number, origin in given.items() if number not in calls}
        self._name(nodes, parents, given)
        _inherit([node for node in nodes if node.number not in given or node.kind == "ProjectExec"], parents, calls)
        for number, own in calls.items():
            self.calls.setdefault(number, own)

    def _of_functions(self, nodes: Iterable[PlanNode], lineage: dict[int, RecordedCall]) -> dict[int, Calls]:
        namespace = self._program.namespace or {}
        found = {
            node.number: callers(node.text, lineage.values(), namespace)
            for node in nodes
            if node.kind in PYTHON_FUNCTIONS
        }
        return {number: own for number, own in found.items() if own}

    def _given_to(self, lineage: dict[int, RecordedCall]) -> set[int]:
        """Return the DataFrames among the inputs of some calls that the program was given."""
        return {number for call in lineage.values() for number in call.inputs} & self._given.keys()

    def _attributes_of(self, frame: int) -> frozenset[int]:
        if frame not in self._attributes:
            plan = execution_of(self._given[frame]).analyzed()
            self._attributes[frame] = self._forest.attributes(plan)
        return self._attributes[frame]

    def _name(
        self, nodes: Iterable[PlanNode], parents: dict[PlanNode, PlanNode], given: dict[int, frozenset[int]]
    ) -> None:
        """Note the last operators of DataFrames that were given, with their names."""
        for node in nodes:
            above = parents.get(node)
            if node.number not in given or (above is not None and above.number in given):
                continue
            names = [name for frame in sorted(given[node.number]) for name in self._program.names_of(frame)]
            if names:
                self.names[node.number] = names[0]

    def _lineage(self, frame: int | None) -> dict[int, RecordedCall]:
        """Return the calls that made a DataFrame, by their index."""
        found: dict[int, RecordedCall] = {}
        waiting = [frame]
        while waiting:
            output = waiting.pop()
            call = self._by_output.get(output) if output is not None else None
            if call is not None and call.index not in found:
                found[call.index] = call
                waiting.extend(call.inputs)
        return found

    def _by_new_attributes(
        self, nodes: Iterable[PlanNode], lineage: dict[int, RecordedCall], *, is_given: bool
    ) -> dict[int, Calls]:
        found: dict[int, Calls] = {}
        for node in nodes:
            made = set(node.output).difference(*(child.output for child in _below(node)))
            indices = {self._by_expr_id[each].index for each in made if each in self._by_expr_id}
            calls = tuple(lineage[index] for index in sorted(indices & lineage.keys()))
            if is_given and _below(node):
                calls = tuple(call for call in calls if call.method not in _RENUMBERS)
            if not calls:
                continue
            if not _below(node):
                call = calls[-1]
                is_read = call.method in _READS or node.kind == CACHED_SCAN  # kept rows belong to the call itself
                read = call if is_read else self._read_below(call, node)
                if read is None and is_given:
                    continue
                calls = (read or call,)
            found[node.number] = calls
        return found

    def _read_below(self, call: RecordedCall, leaf: PlanNode) -> RecordedCall | None:
        """Return the reading call behind a call that renumbered a scan's attributes, as a self-join does."""
        reads = [each for each in self._lineage(call.output).values() if each.method in _READS]
        return max(reads, key=lambda each: (_overlap(leaf, each), -each.index), default=None)

    def _by_kind(
        self,
        node: PlanNode,
        lineage: dict[int, RecordedCall],
        anchors: dict[int, int],
        parents: dict[PlanNode, PlanNode],
        *,
        is_given: bool,
    ) -> Calls:
        if _ONLY_NULL_CHECKS.match(node.text):
            return ()  # inferred from a join's or an aggregate's keys
        candidates = [call for call in lineage.values() if call.method in _methods(node)]
        if is_given:
            candidates = [call for call in candidates if _may_be_pushed_down(node, call)]
        if not candidates:
            return ()
        above = _nearest_above(node, parents, anchors)
        if "partial_" in node.text and above is not None and lineage[above] in candidates:
            return (lineage[above],)  # its final part is above it, and has the names that tell calls apart
        below = _nearest_below(node, anchors)

        def rank(call: RecordedCall) -> tuple[int, bool, int]:
            between = (below is None or call.index >= below) and (above is None or call.index <= above)
            return _overlap(node, call), between, -call.index if below is None else -abs(call.index - below)

        best = max(candidates, key=rank)
        if node.kind != "FilterExec":
            return (best,)
        merged = {call.index: call for call in candidates if _filters_by(node, call)} | {best.index: best}
        return tuple(merged[index] for index in sorted(merged))


def _may_be_of(
    node: PlanNode, frames: dict[int, frozenset[int]], given: dict[int, frozenset[int]], calls: dict[int, Calls]
) -> frozenset[int]:
    """Return of which DataFrames an operator may be (rule 4), by their numbers; what is below it was judged before."""
    below = (*_below(node), *node.subqueries)
    if not below:
        return frozenset(number for number, ids in frames.items() if ids.issuperset(node.output)) or _RENUMBERED
    if any(child.number in calls and child.kind in _MAKES_OTHER_ROWS for child in below):
        return frozenset()
    return frozenset.intersection(*(given.get(child.number, frozenset()) for child in below))


def _may_be_pushed_down(node: PlanNode, call: RecordedCall) -> bool:
    """Return whether an operator in the plan of a DataFrame that was given may still be what a call asks for."""
    if call.method in ("distinct", "dropDuplicates", "drop_duplicates"):
        return "functions=[]" in node.text
    return node.kind not in _MAKES_OTHER_ROWS and _overlap(node, call) > 0


def _methods(node: PlanNode) -> frozenset[str]:
    if node.kind == "ShuffleExchangeExec":
        return next((methods for word, methods in _METHODS_BY_EXCHANGE.items() if word in node.text), frozenset())
    return _METHODS_BY_KIND.get(node.kind, frozenset())


def _below(node: PlanNode) -> tuple[PlanNode, ...]:
    return (node.inside,) if node.kind == CACHED_SCAN and node.inside is not None else node.children


def _edges(root: PlanNode) -> Iterator[tuple[PlanNode, PlanNode]]:
    """Yield each node below the root with its parent, parents first."""
    seen = {root.number}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        for child in (*_below(node), *node.subqueries):
            if child.number not in seen:
                seen.add(child.number)
                waiting.append(child)
                yield child, node


def _nearest_above(node: PlanNode, parents: dict[PlanNode, PlanNode], anchors: dict[int, int]) -> int | None:
    above = parents.get(node)
    while above is not None and above.number not in anchors:
        above = parents.get(above)
    return anchors[above.number] if above is not None else None


def _nearest_below(node: PlanNode, anchors: dict[int, int]) -> int | None:
    waiting = list(_below(node))
    found: list[int] = []
    while waiting:
        below = waiting.pop()
        if below.number in anchors:
            found.append(anchors[below.number])
        else:
            waiting.extend(_below(below))
    return max(found, default=None)


def _overlap(node: PlanNode, call: RecordedCall) -> int:
    """Return how many words of the call's text are also in the operator's text."""
    return len(_words(node) & set(_WORD.findall(call.text)))


def _filters_by(node: PlanNode, call: RecordedCall) -> bool:
    """Return whether a filter holds a call's condition, judging by names and numbers."""
    numbers = {float(number) for number in _NUMBER.findall(call.text)}
    names = set(_ATTRIBUTE.findall(node.text)) & set(_WORD.findall(call.text))
    return bool(names) and numbers <= {float(word) for word in _words(node) if _NUMBER.fullmatch(word)}


def _words(node: PlanNode) -> set[str]:
    return set(_ATTRIBUTE.findall(node.text)) | set(_WORD.findall(_ATTRIBUTE.sub("", node.text)))


def _bottom_up(nodes: Iterable[PlanNode]) -> list[PlanNode]:
    """Return operators with all below them first; `nodes` has parents first, but not every parent of a shared one."""
    ordered: dict[PlanNode, None] = {}
    stack = [(node, False) for node in nodes]
    while stack:
        node, is_ready = stack.pop()
        if node in ordered:
            continue
        if is_ready:
            ordered[node] = None
            continue
        stack.append((node, True))
        stack += [(child, False) for child in (*_below(node), *node.subqueries)]
    return list(ordered)


def _require(nodes: list[PlanNode], parents: dict[PlanNode, PlanNode], calls: dict[int, Calls]) -> None:
    """Give what an operator above requires to the call of that operator."""
    for node in nodes:
        if node.number not in calls and node.kind in _REQUIRED_FROM_ABOVE and node in parents:
            _take(calls, node, parents[node])


def _inherit(nodes: list[PlanNode], parents: dict[PlanNode, PlanNode], calls: dict[int, Calls]) -> None:
    for node in reversed(nodes):
        if node.number not in calls:
            for child in _below(node):
                _take(calls, node, child)
    for node in nodes:
        if node.number not in calls and node in parents:
            _take(calls, node, parents[node])


def _take(calls: dict[int, Calls], node: PlanNode, other: PlanNode) -> None:
    if node.number not in calls and other.number in calls:
        calls[node.number] = calls[other.number][-1:]
