"""Reads Spark's physical plans into plain Python records.

The trees of all sinks of a job are read into one `PlanForest`, whose nodes are numbered over all of them. Wrappers of
code generation (``WholeStageCodegenExec``, ``InputAdapter``) are no operators and are left out. Nothing is executed.
"""

from __future__ import annotations

import json
import re
import uuid
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from flinkmagic.capturing.lineage import Selected
from flinkmagic.planning.java_classes import CLASSES

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext

SHUFFLE_EXCHANGE = "ShuffleExchangeExec"
BROADCAST_EXCHANGE = "BroadcastExchangeExec"
COLLECT_METRICS = "CollectMetricsExec"
DISTRIBUTED_SEQUENCE = "AttachDistributedSequenceExec"
REUSED_EXCHANGE = "ReusedExchangeExec"
SUBQUERY_BROADCAST = "SubqueryBroadcastExec"
REUSED_SUBQUERY = "ReusedSubqueryExec"
CACHED_SCAN = "InMemoryTableScanExec"
FILE_SCAN = "FileSourceScanExec"
LOCAL_SCAN = "LocalTableScanExec"
ADAPTIVE = "AdaptiveSparkPlanExec"

PYTHON_OPERATORS = "org.apache.spark.sql.execution.python."
"""The package of the operators that call Python functions."""
MAY_CALL_PYTHON = frozenset({"RDDScanExec", "ExternalRDDScanExec", "BatchScanExec"})
"""Operators that do so if the RDD, or the source, does."""


@dataclass(frozen=True, eq=False)
class PlanNode:
    """One physical operator."""

    number: int
    """Its number among all nodes of the job."""
    kind: str
    """The simple name of its class: ``HashAggregateExec``."""
    class_name: str
    """The full one."""
    name: str
    """Spark's ``nodeName``."""
    text: str
    """Spark's ``simpleString``."""
    output: tuple[int, ...]
    """Expression ids of its output attributes."""
    children: tuple[PlanNode, ...]
    subqueries: tuple[PlanNode, ...]
    """The plans in its expressions."""
    inside: PlanNode | None = None
    """What a leaf hides: the exchange that a ReusedExchangeExec reads, the subquery of a ReusedSubqueryExec, the cached
    plan of an InMemoryTableScanExec, the plan of an AdaptiveSparkPlanExec."""
    partitions: int | None = None
    """Of an exchange: how many it makes. Of a leaf: how many it reads, as far as that is known before it runs."""
    pruned: bool = False
    """Of a leaf: whether it may read less when it runs."""
    partitioning: str = ""
    """Of a shuffle: the class of its partitioning (``HashPartitioning``, ``RangePartitioning``, ...)."""
    same: int = -1
    """For an exchange or a subquery: the number of the first in the job with equal rows, which may be its own."""
    selected: Selected | None = None
    """Of a scan of the rows of a DataFrame that was split: which of them it reads."""
    cache: str = ""
    """Of a scan of rows that the session keeps, cached or checkpointed: the same for all scans of them."""
    table: str = ""
    """Of a scan of cached rows: the table that was cached, or what we called them; empty if they have no such name."""
    columns: tuple[str, ...] = ()
    """Of a scan of cached or checkpointed rows: the names of all their columns."""
    join_type: str = ""
    """Of a nested loop join over a broadcast: Spark's ``JoinType``."""

    @property
    def is_exchange(self) -> bool:
        return self.kind in (SHUFFLE_EXCHANGE, BROADCAST_EXCHANGE)

    @property
    def is_sampled(self) -> bool:
        """Of a shuffle: whether Spark samples the rows below when it makes its dependency."""
        return self.partitioning == "RangePartitioning" and (self.partitions or 0) > 1

    def __repr__(self) -> str:
        return f"PlanNode({self.number}, {self.text!r})"


@dataclass(eq=False)
class PlanForest:
    """The physical plans of one job."""

    sc: SparkContext
    nodes: dict[int, PlanNode] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.reader = CLASSES.new_instance(self.sc._gateway, "PlanReader")
        """The ``PlanReader`` that numbers the nodes."""

    def read(self, plan: JavaObject, scope: str = "") -> PlanNode:
        """Read a physical plan; nodes that it has in common with earlier ones are the same objects.

        Parameters
        ----------
        scope : str
            Exchanges are equal only within a scope: the configuration under which they were planned.
        """
        answer = json.loads(zlib.decompress(self.reader.read(plan, scope)))
        records = {record["number"]: record for record in answer["nodes"]}
        # A node's children have higher numbers than it, or were read before.
        for number in sorted(records, reverse=True):
            self._add(records[number], records)
        return self.nodes[answer["root"]]

    def attributes(self, plan: JavaObject) -> frozenset[int]:
        """Return the expression ids of all attributes that the operators of a logical plan put out."""
        text = self.reader.attributes(plan)
        return frozenset(int(number) for number in text.split(",") if number)

    def _add(self, record: dict[str, Any], records: dict[int, dict[str, Any]]) -> PlanNode:
        number = record["number"]
        known = self.nodes.get(number)
        if known is not None:
            return known

        def node(other: int) -> PlanNode:
            return self.nodes[other] if other in self.nodes else self._add(records[other], records)

        made = PlanNode(
            number=number,
            kind=record["class"].rpartition(".")[2],
            class_name=record["class"],
            name=NAME_OF_RUN.sub("", record["name"].strip()),
            text=record["text"],
            output=tuple(record["output"]),
            children=tuple(node(child) for child in record["children"]),
            subqueries=tuple(node(subquery) for subquery in record["subqueries"]),
            inside=node(record["inside"]) if "inside" in record else None,
            partitions=_known(record.get("partitions")),
            pruned=record.get("pruned", False),
            partitioning=record.get("partitioning", ""),
            same=record.get("same", number),
            selected=None if record.get("selected") is None else Selected.from_text(record["selected"]),
            cache=record.get("cache", ""),
            table=NAME_OF_RUN.sub("", record.get("table") or ""),
            columns=tuple(record.get("columns", ())),
            join_type=record.get("joinType", ""),
        )
        self.nodes[number] = made
        return made

    def jvm_node(self, node: PlanNode) -> JavaObject:
        """Return the ``SparkPlan`` of a node, as it was read."""
        return self.reader.node(node.number)


NAME_OF_RUN = re.compile(r" \([0-9a-f]{8}\)$")
"""What distinguishes the kept rows of one run from those of another in their name, and from all that the user keeps."""


def name_of_run(name: str) -> str:
    """Return a name for the rows that one run keeps; no other rows have it."""
    return f"{name} ({uuid.uuid4().hex[:8]})"


def _known(count: int | None) -> int | None:
    return None if count is None or count < 0 else count
