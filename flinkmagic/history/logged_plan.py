"""Reads the plan of a logged SQL execution, and cuts it into the parts that its stages run.

Source: Spark's `SparkPlanInfo`: names, texts and metrics of operators. A log has no classes: an operator's is told by
its name. As in planning, exchanges and subqueries cut a plan; wrappers of code generation and of adaptive execution are
no operators.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from flinkmagic.planning.plan_reader import (
    BROADCAST_EXCHANGE,
    CACHED_SCAN,
    FILE_SCAN,
    REUSED_EXCHANGE,
    SHUFFLE_EXCHANGE,
    PlanNode,
)
from flinkmagic.planning.stage_metrics import Metrics

_WRAPPERS = ("WholeStageCodegen", "InputAdapter", "AdaptiveSparkPlan", "ReusedSubquery", "CommandResult")
"""How the names of nodes begin that pass on the rows of what is below them, and do nothing else."""
_WRAPPERS_END = "QueryStage"
_SUBQUERIES = ("Subquery", "ScalarSubquery", "SubqueryBroadcast", "SubqueryAdaptiveBroadcast")
_COMMANDS = ("Execute ", "OverwriteByExpression", "AppendData", "ReplaceData", "WriteToDataSourceV2", "SaveIntoData")
_READ_SIDE = frozenset({
    "records read", "local blocks read", "remote blocks read", "remote bytes read", "local bytes read",
    "fetch wait time", "remote bytes read to disk", "remote reqs duration", "corrupt merged block chunks",
    "fallback count", "local merged blocks fetched", "local merged bytes read", "local merged chunks fetched",
    "remote merged blocks fetched", "remote merged bytes read", "remote merged chunks fetched",
    "remote merged reqs duration",
})  # fmt: skip
"""The metrics of a shuffle that the stages measure which read it."""
_KEYS = {
    "number of output rows": "numOutputRows", "number of files read": "numFiles", "size of files read": "filesSize",
    "scan time": "scanTime", "sort time": "sortTime", "spill size": "spillSize", "peak memory": "peakMemory",
    "data size": "dataSize", "shuffle records written": "shuffleRecordsWritten",
    "shuffle bytes written": "shuffleBytesWritten", "shuffle write time": "shuffleWriteTime",
    "written output": "numOutputBytes", "number of written files": "numFiles", "number of dynamic part": "numParts",
    "time to run Python workers": "pythonTotalTime", "time to start Python workers": "pythonBootTime",
    "time to initialize Python workers": "pythonInitTime", "time to execute Python code": "pythonProcessingTime",
    "data sent to Python workers": "pythonDataSent", "data returned from Python workers": "pythonDataReceived",
    "number of partitions read": "numPartitions",
}  # fmt: skip
"""Spark's names of metrics, by the words that it writes for them."""
_NUMBERS = frozenset({"numOutputRows", "shuffleRecordsWritten", "numParts", "numPartitions"})
_SIZES = frozenset({
    "filesSize", "spillSize", "peakMemory", "dataSize", "shuffleBytesWritten", "numOutputBytes",
    "pythonDataSent", "pythonDataReceived",
})  # fmt: skip
WORDS: Mapping[str, tuple[str, str]] = {
    name: (
        words,
        "sum" if name in _NUMBERS else "size" if name in _SIZES else
        "nsTiming" if name == "shuffleWriteTime" else "timing",
    )
    for words, name in _KEYS.items() if name != "numFiles"
}  # fmt: skip
"""What Spark calls the metrics, and of which kind they are (`StageMetrics.words`)."""
_PLAN_ID = re.compile(r"\[(?:plan_)?id=#?(\d+)\]")
_COLUMNS = re.compile(r"^FileScan \w+ [^\[]*\[([^\]]*)\]")
"""Of a scan's text."""
_FIELD = re.compile(r"[<,]([^<>:,]+):")
"""A name in the text of a schema; also those of nested fields."""
_LOCATION = re.compile(r"\[(.*)\]$")


@dataclass(eq=False)
class PlanPart:
    """What one stage runs: the operators between two cuts."""

    root: PlanNode
    kind: str
    """What its stage leaves: ``shuffle``, ``broadcast``, ``subquery``, ``boundary``, ``write``, ``result``."""
    above: PlanNode | None = None
    """The exchange that it feeds, or the write's command."""
    operators: list[PlanNode] = field(default_factory=list)
    """Inputs first, without the exchanges that it reads."""
    reads: dict[int, list[PlanPart]] = field(default_factory=dict)
    """By the number of an operator the parts that it reads."""
    reused: dict[int, str] = field(default_factory=dict)
    """By the number of an operator that reads an exchange again, which one: Spark's number of that."""
    measured: set[int] = field(default_factory=set)
    """The accumulators that tell which stage has run it."""
    names: set[str] = field(default_factory=set)
    """The names of its nodes, wrappers included: those of the scopes of a stage's RDDs."""


@dataclass(eq=False)
class LoggedPlan:
    """A plan, cut into parts: those that are read before those that read them."""

    parts: list[PlanPart]
    accumulators: dict[int, list[tuple[str, int]]]
    """By the number of an operator its metrics: Spark's words, and the accumulator."""
    facts: dict[int, Metrics]
    """By the number of a scan of files its ``paths``, ``partitions``, ``partitionColumns`` and ``format``."""

    def metrics(self, node: PlanNode, values: Mapping[int, int]) -> Metrics:
        """Return what an operator has measured, above zero, by Spark's names.

        Parameters
        ----------
        values : mapping of int to int
            By accumulators.
        """
        told = [(words, values.get(number, 0)) for words, number in self.accumulators.get(node.number, ())]
        found: dict[str, Any] = {_KEYS[words]: value for words, value in told if words in _KEYS and value > 0}
        if "Python" in node.kind and "numOutputRows" in found:
            found["pythonNumRowsReceived"] = found["numOutputRows"]
        return {**found, **self.facts.get(node.number, {})}


def read_plan(infos: Iterable[Mapping[str, Any]], measured: Sequence[AbstractSet[int]]) -> LoggedPlan:
    """Read a plan, or several ones of one job.

    Parameters
    ----------
    infos : iterable of Mapping
        Spark's ``sparkPlanInfo``, of each.
    measured : sequence of set of int
        For each stage the accumulators to which its tasks have added. They tell of a cache whether its plan ran with
        the stage that reads it, in a stage of its own, or not at all, because it was filled before.
    """
    reader = _PlanReader(measured)
    for info in infos:
        reader.read(info)
    return reader.plan


class _PlanReader:
    def __init__(self, measured: Sequence[AbstractSet[int]]) -> None:
        self._measured = measured
        self.plan = LoggedPlan([], {}, {})
        self._number = 0

    def read(self, info: Mapping[str, Any]) -> None:
        above = []
        while (_is_command(info) or _is_wrapper(info)) and len(info.get("children") or ()) == 1:
            above.append(info)
            info = info["children"][0]
        commands = [one for one in above if _is_command(one)]
        part = self._part(info, "write" if commands else "result")
        for one in above:
            part.names.add(_name(one))
            part.measured.update(number for _, number in _metrics(one))
        if commands:
            part.above = self._node(commands[-1], ())

    def _part(self, info: Mapping[str, Any], kind: str) -> PlanPart:
        part = PlanPart(root=_NOTHING, kind=kind)
        part.root = self._operator(info, part)
        self.plan.parts.append(part)
        return part

    def _operator(self, info: Mapping[str, Any], part: PlanPart) -> PlanNode:
        """Read an operator of a part, and what is below it."""
        while _is_wrapper(info) and len(info.get("children") or ()) == 1:
            part.measured.update(number for _, number in _metrics(info))
            part.names.add(_name(info))
            info = info["children"][0]
        if _is_exchange(info):
            # A part that only passes a shuffle on has one operator, which reads it.
            info = {"nodeName": "ShuffleRead", "simpleString": "ShuffleRead", "children": [info], "metrics": []}
        below: list[PlanNode] = []
        subqueries: list[PlanNode] = []
        cuts: list[PlanPart] = []
        for child in info.get("children") or ():
            where = self._cache(info, child)
            if where == "filled":
                continue
            cut = self._part(child, "boundary") if where == "boundary" else self._cut(child, part)
            if cut is None:
                below.append(self._operator(child, part))
                continue
            cuts.append(cut)
            (subqueries if cut.kind == "subquery" else below).append(cut.above or cut.root)
        node = self._node(info, tuple(below), tuple(subqueries))
        part.operators.append(node)
        part.names.add(node.name)
        part.measured.update(number for _, number in self.plan.accumulators[node.number])
        if cuts:
            part.reads[node.number] = cuts
        if node.kind == REUSED_EXCHANGE:
            part.reused[node.number] = plan_id(node)
        return node

    def _cut(self, info: Mapping[str, Any], part: PlanPart) -> PlanPart | None:
        """Return the part below an exchange or a subquery; None if there is no cut."""
        is_subquery = False
        while _is_wrapper(info) or _is_subquery(info):
            children = list(info.get("children") or ())
            if len(children) != 1:
                return None
            is_subquery = is_subquery or _is_subquery(info)
            part.measured.update(number for _, number in _metrics(info) if not is_subquery)
            info = children[0]
        if not _is_exchange(info):
            return self._part(info, "subquery") if is_subquery else None
        kind = "broadcast" if _kind(info) == BROADCAST_EXCHANGE else "shuffle"
        part.measured.update(number for words, number in _metrics(info) if words in _READ_SIDE)
        (child,) = info["children"]
        cut = self._part(child, kind)
        cut.above = self._node(info, (cut.root,))
        cut.measured.update(number for words, number in _metrics(info) if words not in _READ_SIDE)
        return cut

    def _cache(self, scan: Mapping[str, Any], child: Mapping[str, Any]) -> str:
        """Return ``boundary`` if the plan of a cache ran in a stage of its own, ``filled`` if not; else ""."""
        if _kind(scan) != CACHED_SCAN:
            return ""
        own = {number for _, number in _metrics(scan)}
        inside = {number for one in _below(child) for _, number in _metrics(one)}
        stages = [one for one in self._measured if one & inside]
        if not stages:
            return "filled"
        return "" if any(one & own for one in stages) else "boundary"

    def _node(
        self, info: Mapping[str, Any], children: tuple[PlanNode, ...], subqueries: tuple[PlanNode, ...] = ()
    ) -> PlanNode:
        self._number += 1
        kind = _kind(info)
        node = PlanNode(
            number=self._number,
            kind=kind,
            class_name=kind,
            name=str(info.get("nodeName") or "").strip(),
            text=str(info.get("simpleString") or ""),
            output=(),
            children=children,
            subqueries=subqueries,
        )
        self.plan.accumulators[node.number] = list(_metrics(info))
        metadata = info.get("metadata") or {}
        if kind == FILE_SCAN and "Location" in metadata:
            found = _LOCATION.search(str(metadata["Location"]))
            self.plan.facts[node.number] = {
                "paths": [path.strip() for path in found[1].split(",")] if found is not None else [],
                "partitions": str(metadata.get("PartitionFilters") or "[]")[1:-1],
                "partitionColumns": _partition_columns(node.text, str(metadata.get("ReadSchema") or "")),
                "format": str(metadata.get("Format") or ""),
            }
        return node


def _partition_columns(text: str, read_schema: str) -> list[str]:
    """Return the columns of a scan that are in no file; nothing if Spark has shortened either text."""
    columns, fields = _COLUMNS.search(text), _FIELD.findall(read_schema)
    if columns is None or "..." in columns[1] or "..." in read_schema:
        return []
    names = (name.partition("#")[0] for name in columns[1].split(","))
    return [name for name in names if name and name not in fields]


_NOTHING = PlanNode(0, "", "", "", "", (), (), ())


def plan_id(exchange: PlanNode) -> str:
    """Return Spark's number of an exchange; empty if its text has none."""
    found = _PLAN_ID.search(exchange.text)
    return found[1] if found is not None else ""


def _name(info: Mapping[str, Any]) -> str:
    return str(info.get("nodeName") or "").strip()


def _is_wrapper(info: Mapping[str, Any]) -> bool:
    name = _name(info)
    return name.startswith(_WRAPPERS) or name.endswith(_WRAPPERS_END)


def _is_subquery(info: Mapping[str, Any]) -> bool:
    return _name(info).startswith(_SUBQUERIES)


def _is_command(info: Mapping[str, Any]) -> bool:
    return _name(info).startswith(_COMMANDS)


def _is_exchange(info: Mapping[str, Any]) -> bool:
    return _kind(info) in (SHUFFLE_EXCHANGE, BROADCAST_EXCHANGE) and len(info.get("children") or ()) == 1


def _kind(info: Mapping[str, Any]) -> str:
    """Return the class of an operator, by its name."""
    name = _name(info)
    if name.startswith(("Scan In-memory", "InMemoryTableScan")):
        return CACHED_SCAN
    if name.startswith("Scan "):
        return FILE_SCAN if "Location" in (info.get("metadata") or {}) else "RDDScanExec"
    if name.startswith("ReusedExchange"):
        return REUSED_EXCHANGE
    word = name.split(" ")[0].split("(")[0] if name else ""
    return SHUFFLE_EXCHANGE if word == "Exchange" else f"{word}Exec"


def _metrics(info: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    for metric in info.get("metrics") or ():
        yield str(metric["name"]), int(metric["accumulatorId"])


def _below(info: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    waiting = [info]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += one.get("children") or ()
