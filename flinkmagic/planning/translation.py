"""Translates physical operators to Transformations, stage by stage.

Exchanges and subqueries cut a plan into stages. What is between cuts is one Spark stage and becomes one job vertex:

- operators with one input chain by Flink's own rule;
- an operator with several inputs, or whose input has another number of partitions in the same stage (union, coalesce,
  cartesian product), takes its inputs into its vertex (``ChainingStrategy.HEAD_WITH_INPUTS``); RESCALE stands between
  different numbers of partitions;
- an exchange is a PartitionTransformation of exchange mode BATCH, the same one for all exchanges of equal rows;
- a subquery is a stage whose value is broadcast to the operator that uses it;
- an operator with a shuffle of its own (``TakeOrderedAndProjectExec``) becomes two: its part before the shuffle and its
  part behind it;
- the plan of a boundary (see `boundaries`), or of a cache of the user's (see `user_caches`), is a stage whose rows are
  kept: a CacheTransformation that the scans of its relation read. A cache that is filled is read from the earlier job.

The last operator of a stage carries the stage's handle. Flink knows no parallelism 0: a stage without partitions has
one subtask, and its handle says that Spark runs no task for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from flinkmagic.capturing.lineage import Selected
from flinkmagic.graph.exchange_mode import ChainingStrategy, StreamExchangeMode
from flinkmagic.graph.partitioner import PartitionerKind
from flinkmagic.graph.trampoline import Steps, run
from flinkmagic.graph.transformations import (
    CacheTransformation,
    PartitionTransformation,
    SelectTransformation,
    SideOutputTransformation,
    SinkTransformation,
    SplitTransformation,
    Transformation,
    operator_on,
)
from flinkmagic.planning.operator_labels import KEYED_PROCESS, KEYED_PROCESSES, OperatorLabels
from flinkmagic.planning.partitions import HIDDEN_SHUFFLES, PartitionCount, PartitionCounts, is_adaptive_cache
from flinkmagic.planning.plan_reader import (
    CACHED_SCAN,
    REUSED_EXCHANGE,
    REUSED_SUBQUERY,
    SUBQUERY_BROADCAST,
    PlanNode,
)
from flinkmagic.planning.sql_words import source_name
from flinkmagic.planning.stage_handles import StageHandle

_PARTITIONERS = {
    "SinglePartition$": PartitionerKind.GLOBAL,
    "HashPartitioning": PartitionerKind.HASH,
    "RangePartitioning": PartitionerKind.RANGE,
    "RoundRobinPartitioning": PartitionerKind.REBALANCE,
}
"""Spark's partitionings; any other follows a function of the rows, which is Flink's custom partitioner."""


@dataclass(eq=False)
class Stage:
    """A stage while it is translated."""

    sink: int
    """The sink for which it is translated first, or the boundary's unit that it belongs to."""
    cached: bool = False
    """Whether it belongs to a cached plan, which runs as it is: nothing in it can be replaced."""
    nodes: list[PlanNode] = field(default_factory=list)
    collects: PlanNode | None = None
    """An operator whose rows are collected as they come: it makes no shuffle."""
    reads: list[int] = field(default_factory=list)
    """The numbers of the exchanges and subqueries that it reads, one for each time."""


@dataclass(eq=False)
class KeptStage:
    """The last stage of a boundary or cache; its rows are kept for the sinks (and other boundaries) that read them."""

    unit: int
    """Represents the boundary where sinks are counted by their index; no sink has this number."""
    name: str
    dataset_id: str
    """The name of the persistent result."""
    handle: Callable[[Stage, PartitionCount], StageHandle]
    """Makes the handle from the stage and the number of its partitions."""
    readers: list[int] = field(default_factory=list)
    """The units that read it, the first one's first; filled by the translation."""
    cache: CacheTransformation | None = None
    """Set once it is translated, which happens only if something reads it."""
    split: SplitTransformation | None = None
    """Set once a selection of the rows is read."""
    stage: Stage | None = None
    """Set once it is translated."""
    is_users: bool = False
    """Whether the user has cached it: its plan runs as it is."""

    def selection(self, selected: Selected) -> Transformation:
        """Return what some of the rows are; what is not selected by name or tag is the main output."""
        assert self.cache is not None
        if selected.tag is not None:
            return SideOutputTransformation(self.cache, selected.tag)
        if not selected.names:
            return self.cache
        self.split = self.split or SplitTransformation(self.cache)
        return SelectTransformation(self.split, selected.names)


class Handles(Protocol):
    """Makes the handles of stages, by which they are run; none where nothing is run stage by stage."""

    def of_exchange(self, node: PlanNode, stage: Stage, rows: PartitionCount) -> StageHandle | None:
        """Return the handle of the stage below an exchange or a subquery."""

    def hidden_shuffle(self, node: PlanNode, stage: Stage, rows: PartitionCount) -> StageHandle | None:
        """Return the handle of the part of an operator that is before its own shuffle."""


class Translator:
    """Makes the Transformations of all sinks of a job.

    Parameters
    ----------
    exchange_mode : StreamExchangeMode
        That of exchanges: BATCH, or UNDEFINED, which leaves it to the mode of the job.
    """

    def __init__(
        self,
        counts: PartitionCounts,
        handles: Handles,
        labels: OperatorLabels,
        exchange_mode: StreamExchangeMode = StreamExchangeMode.BATCH,
    ) -> None:
        self._exchange_mode = exchange_mode
        self._counts = counts
        self._handles = handles
        self._labels = labels
        self._partitions: dict[int, PartitionTransformation] = {}
        self._exchanges: dict[int, PlanNode] = {}
        self.kept: dict[int, KeptStage] = {}
        """By the number of its plan's top operator each boundary, or cache of the user's."""
        self.cache_reads: dict[int, CacheTransformation] = {}
        """By the number of a scan of a filled cache what it reads."""
        self.sinks: dict[int, Stage] = {}
        """By the index of a sink its own stage."""
        self.below: dict[int, Stage] = {}
        """By the number of an exchange or a subquery the stage below it."""
        self.operators: list[Transformation] = []
        """All operators, inputs first."""
        self.consumers: dict[int, list[int]] = {}
        """For each exchange's number the sinks whose own stages read it, the first one's first."""

    def sink(
        self,
        index: int,
        root: PlanNode,
        name: str,
        handle: Callable[[Stage, int], StageHandle | None],
        metadata: dict[str, Any],
        *,
        collected: bool = False,
    ) -> SinkTransformation:
        """Make the sink of one plan: `root` is the query below the write's own operators, or a result's query.

        `collected` says that an action collects the rows as they come.
        """
        stage = self.sinks[index] = Stage(index, collects=root if collected else None)
        upstream = run(self._input(root, root, stage))
        tasks = self._counts.of(root).number
        made = SinkTransformation(
            upstream,
            name,
            parallelism=max(1, tasks),
            operator_factory=handle(stage, tasks),
            description=metadata.pop("description", None),
            metadata={**metadata, "role": "sink"},
        )
        self.operators.append(made)
        return made

    def cut_at(self, root: PlanNode, stage: KeptStage) -> None:
        """Make the plan below `root` a stage of its own wherever its cached rows are read."""
        self.kept[root.number] = stage

    def _input(self, node: PlanNode, consumer: PlanNode, stage: Stage) -> Steps[Transformation]:
        kept = self.kept.get(node.number)
        if kept is not None:
            return (yield self._cache(node, kept, stage.sink, consumer.selected))
        exchange = exchange_of(node)
        if exchange is not None:
            return (yield self._partition(exchange, stage))
        upstream = yield self._operator(node, stage)
        if self._parallelism(node) != self._parallelism(consumer):
            return PartitionTransformation(upstream, PartitionerKind.RESCALE)
        return upstream

    def _operator(self, node: PlanNode, stage: Stage) -> Steps[Transformation]:
        if self._hides_shuffle(node, stage):
            return (yield self._around_hidden_shuffle(node, stage))
        stage.nodes.append(node)
        inside = replace(stage, cached=True, collects=None) if node.kind == CACHED_SCAN else stage
        inputs: list[Transformation] = [self.cache_reads[node.number]] if node.number in self.cache_reads else []
        for child in self._operands(node):
            inputs.append((yield self._input(child, node, inside)))
        inputs.extend((yield self._subqueries(node, stage)))
        return self._add(node, inputs, self._parallelism(node))

    def _cache(
        self, root: PlanNode, kept: KeptStage, reader: int, selected: Selected | None
    ) -> Steps[PartitionTransformation]:
        if reader not in kept.readers:
            kept.readers.append(reader)
        if kept.cache is None:
            kept.stage = stage = Stage(kept.unit, cached=kept.is_users)
            tail = yield self._tail(root, stage)
            tail.operator_factory = kept.handle(stage, self._counts.of(root))
            kept.cache = CacheTransformation(
                tail,
                kept.name,
                dataset_id=kept.dataset_id,
                read_by_job=True,
                parallelism=tail.parallelism,
                metadata=dict(tail.metadata or {}),
            )
        rows = kept.selection(selected) if selected is not None else kept.cache
        return PartitionTransformation(rows, PartitionerKind.FORWARD, StreamExchangeMode.BATCH)

    def _hides_shuffle(self, node: PlanNode, stage: Stage) -> bool:
        """Return whether the operator will surely shuffle; with one partition it does not, and there is one stage."""
        if node.kind not in HIDDEN_SHUFFLES or stage.cached or node is stage.collects:
            return False
        rows = self._counts.of(node.children[0])
        return rows.number > 1 and rows.exact

    def _around_hidden_shuffle(self, node: PlanNode, stage: Stage) -> Steps[Transformation]:
        child = node.children[0]
        before = Stage(stage.sink, reads=stage.reads)
        upstream = yield self._input(child, child, before)
        local = self._add(node, [upstream], self._parallelism(child), suffix=" (local)")
        local.operator_factory = self._handles.hidden_shuffle(node, before, self._counts.of(child))
        exchange = PartitionTransformation(local, PartitionerKind.GLOBAL, self._exchange_mode)
        stage.nodes.append(node)
        return self._add(node, [exchange, *(yield self._subqueries(node, stage))], 1)

    def _subqueries(self, node: PlanNode, stage: Stage) -> Steps[list[Transformation]]:
        found: dict[int, Transformation] = {}
        for subquery in node.subqueries:
            if subquery.kind == REUSED_SUBQUERY and subquery.inside is not None:
                subquery = subquery.inside
            if subquery.kind == SUBQUERY_BROADCAST:
                # Its value is taken from a broadcast on the driver: the broadcast is the stage.
                subquery = exchange_of(subquery.children[0]) or subquery
            value = yield self._partition(subquery, stage)
            found[id(value)] = value
        return list(found.values())

    def _partition(self, exchange: PlanNode, stage: Stage) -> Steps[PartitionTransformation]:
        """Make the one PartitionTransformation of all exchanges (or subqueries) with equal rows."""
        number = exchange.same
        stage.reads.append(number)
        consumers = self.consumers.setdefault(number, [])
        if stage.sink not in consumers:
            consumers.append(stage.sink)
        made = self._partitions.get(number)
        if made is None:
            below = self.below[number] = Stage(stage.sink, cached=stage.cached)
            tail = yield self._tail(exchange.children[0], below)
            rows = self._counts.of(exchange.children[0])
            handle = tail.operator_factory = self._handles.of_exchange(exchange, below, rows)
            if handle is not None:
                handle.above = self._labels.of(exchange).metadata
            self._exchanges[number] = exchange
            made = self._partitions[number] = PartitionTransformation(
                tail, _partitioner(exchange), self._exchange_mode, name=exchange.name
            )
        return made

    def _tail(self, node: PlanNode, stage: Stage) -> Steps[Transformation]:
        """Make the last operator of a stage; a stage that only passes a shuffle on gets one that reads it."""
        exchange = exchange_of(node)
        if exchange is None:
            return (yield self._operator(node, stage))
        upstream = yield self._partition(exchange, stage)
        return self._add(node, [upstream], self._parallelism(node), name="ShuffleRead")

    def _add(
        self, node: PlanNode, inputs: list[Transformation], parallelism: int, *, name: str = "", suffix: str = ""
    ) -> Transformation:
        label = self._labels.of(node)
        common: dict[str, Any] = {
            "parallelism": parallelism,
            "description": label.description,
            "metadata": label.metadata,
        }
        if len(inputs) > 1 or any(_changes_parallelism(each) for each in inputs):
            common["chaining_strategy"] = ChainingStrategy.HEAD_WITH_INPUTS
        if node.kind in KEYED_PROCESSES:
            name = KEYED_PROCESS
        name = name or (node.name + suffix if self._operands(node) else source_name(node))
        made = operator_on(inputs, name, **common)
        self.operators.append(made)
        return made

    def _operands(self, node: PlanNode) -> tuple[PlanNode, ...]:
        """Return the inputs of an operator; the plan of a cache that is not filled yet is one."""
        if node.kind != CACHED_SCAN or node.inside is None:
            return node.children
        is_stage = node.inside.number in self.kept
        return (node.inside,) if is_stage or not is_adaptive_cache(node) else ()

    def _parallelism(self, node: PlanNode) -> int:
        return max(1, self._counts.of(node).number)

    def partition_of(self, number: int) -> PartitionTransformation:
        """Return the transformation of the exchange with this number."""
        return self._partitions[number]

    def exchange_of(self, number: int) -> PlanNode:
        """Return the exchange, or subquery, with this number."""
        return self._exchanges[number]


def exchange_of(node: PlanNode) -> PlanNode | None:
    """Return the exchange that a node is or reads."""
    if node.is_exchange:
        return node
    return node.inside if node.kind == REUSED_EXCHANGE else None


def _partitioner(exchange: PlanNode) -> PartitionerKind:
    if not exchange.partitioning:  # a broadcast, or a subquery, whose value every task gets
        return PartitionerKind.BROADCAST
    return _PARTITIONERS.get(exchange.partitioning, PartitionerKind.CUSTOM)


def _changes_parallelism(upstream: Transformation) -> bool:
    return isinstance(upstream, PartitionTransformation) and upstream.partitioner.kind is PartitionerKind.RESCALE
