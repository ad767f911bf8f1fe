"""Decides which exchanges of a job are pipelined: their consumers read while they are written (Spark 4.3 and newer).

A pipelined region is one Spark job. Spark runs all of its stages simultaneously, and refuses a job that has pipelined
and blocking shuffles, or a pipelined one with two consumers. So:

1. What Spark runs as one job is the stage of a write, of a result or of a broadcast, with all that it reads through
   shuffles. Broadcasts, subqueries and the rows of boundaries are finished inputs of it.
2. Either all shuffles of such a job are pipelined, or none. None is if one of them must be blocking: it is read twice,
   its boundaries are sampled (a range), or an operator, a cache or an RDD makes it by itself.
3. What blocks is told, with the operator: repartition, write or cache it in a cell of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from flinkmagic.graph.exchange_mode import StreamExchangeMode
from flinkmagic.planning.partitions import HIDDEN_SHUFFLES, PartitionCounts
from flinkmagic.planning.plan_reader import (
    BROADCAST_EXCHANGE,
    CACHED_SCAN,
    COLLECT_METRICS,
    LOCAL_SCAN,
    SHUFFLE_EXCHANGE,
    PlanNode,
)
from flinkmagic.planning.stage_handle_factory import StageHandleFactory
from flinkmagic.planning.stage_handles import PipelinedStageHandle, StageHandle
from flinkmagic.planning.translation import Stage, Translator

_FILES_AND_VALUES = frozenset(
    {
        "BatchScanExec",
        "FileSourceScanExec",
        LOCAL_SCAN,
        "OneRowRelationExec",
        "RangeExec",
        "RowDataSourceScanExec",
    }
)
"""Leaves that read no shuffle."""
_RDD_SCANS = frozenset({"ExternalRDDScanExec", "RDDScanExec"})


@dataclass(frozen=True)
class _SparkJob:
    """A stage that Spark runs as a job, with what it reads through shuffles."""

    handle: StageHandle
    stages: tuple[Stage, ...]
    shuffles: tuple[int, ...]


def pipeline_exchanges(
    translator: Translator,
    handles: StageHandleFactory,
    counts: PartitionCounts,
    sinks: Mapping[int, object],
    hides_query: Sequence[int],
) -> list[str]:
    """Make the exchanges of a translated job pipelined where that is possible; return a note for each job that is not.

    Parameters
    ----------
    translator : Translator
        All sinks are translated.
    hides_query : sequence of int
        The sinks whose command is planned again over the rows of their query.
    """
    below = translator.below
    kept = [one.stage for one in translator.kept.values() if one.stage is not None]
    reads = Counter(number for stage in (*below.values(), *translator.sinks.values(), *kept) for number in stage.reads)
    blocked = _Blocked(translator, handles, counts, reads)
    notes = []
    for job in _spark_jobs(translator, sinks):
        if not job.shuffles:
            continue
        why = "its command is planned over its rows" if _is_hidden(job, sinks, hides_query) else blocked.by(job)
        if why is None:
            _pipeline(job, translator, handles)
        else:
            notes.append(f"{job.handle.name}: its exchanges are blocking, as {why}")
    return notes


def _is_hidden(job: _SparkJob, sinks: Mapping[int, object], hides_query: Sequence[int]) -> bool:
    return any(sinks[index] is job.handle for index in hides_query)


def _spark_jobs(translator: Translator, sinks: Mapping[int, object]) -> Iterator[_SparkJob]:
    below = translator.below
    roots: list[tuple[object, Stage]] = [(sinks[index], stage) for index, stage in translator.sinks.items()]
    for number, stage in below.items():
        if translator.exchange_of(number).kind == BROADCAST_EXCHANGE:
            roots.append((translator.partition_of(number).input.operator_factory, stage))
    for handle, root in roots:
        stages, shuffles = [root], []
        for stage in stages:
            for number in stage.reads:
                if translator.exchange_of(number).kind == SHUFFLE_EXCHANGE and number not in shuffles:
                    shuffles.append(number)
                    stages.append(below[number])
        assert isinstance(handle, StageHandle)
        yield _SparkJob(handle, tuple(stages), tuple(shuffles))


def _pipeline(job: _SparkJob, translator: Translator, handles: StageHandleFactory) -> None:
    upstream: list[PipelinedStageHandle] = []
    for number in job.shuffles:
        partition = translator.partition_of(number)
        blocking = partition.input.operator_factory
        assert isinstance(blocking, StageHandle)
        upstream.append(handles.pipeline(translator.exchange_of(number), blocking))
        partition.input.operator_factory = upstream[-1]
        # What Flink's generator takes from ALL_EXCHANGES_PIPELINED, the mode of the environment.
        partition.exchange_mode = StreamExchangeMode.UNDEFINED
    job.handle.upstream = tuple(upstream)


class _Blocked:
    """Finds what makes all shuffles of a Spark job blocking (rule 2)."""

    def __init__(
        self, translator: Translator, handles: StageHandleFactory, counts: PartitionCounts, reads: Mapping[int, int]
    ) -> None:
        self._translator = translator
        self._handles = handles
        self._counts = counts
        self._reads = reads

    def by(self, job: _SparkJob) -> str | None:
        """Return why a job's shuffles are blocking; None if nothing makes them so."""
        for number in job.shuffles:
            exchange = self._translator.exchange_of(number)
            if self._reads[number] > 1:
                return f"{exchange.name} is read {self._reads[number]} times"
            if exchange.is_sampled:
                return f"Spark samples the rows of {exchange.name} before it writes them"
            if self._counts.of(exchange.children[0]).number == 0:
                return f"{exchange.name} reads nothing"
        for stage in job.stages:
            for node in stage.nodes:
                if (why := self._leaf(node) or self._operator(node)) is not None:
                    return why
        return None

    def _leaf(self, node: PlanNode) -> str | None:
        if node.children or node.kind in _FILES_AND_VALUES:
            return None
        if node.kind in _RDD_SCANS and not self._handles.reads_shuffle(node):
            return None
        if node.kind == CACHED_SCAN:
            kept = self._translator.kept.get(node.inside.number) if node.inside is not None else None
            if kept is not None and kept.stage is not None and not self._shuffles(kept.stage):
                return None
            return f"{node.name} reads cached rows, which may be made through a blocking shuffle"
        return f"{node.name} may read a shuffle of its own"

    def _operator(self, node: PlanNode) -> str | None:
        if node.kind in HIDDEN_SHUFFLES:
            rows = self._counts.of(node.children[0])
            return None if rows.number == 1 and rows.exact else f"{node.name} makes a shuffle by itself"
        if node.kind == "BroadcastNestedLoopJoinExec":
            return f"{node.name} may make a shuffle by itself"
        if node.kind == COLLECT_METRICS:
            return "what is observed would count rows of an attempt that failed"
        return f"{node.name} runs a job of its own" if self._counts.starts_job(node) else None

    def _shuffles(self, stage: Stage) -> bool:
        exchanges = map(self._translator.exchange_of, stage.reads)
        return any(one.kind == SHUFFLE_EXCHANGE for one in exchanges) or any(
            self._leaf(node) or self._operator(node) for node in stage.nodes
        )
