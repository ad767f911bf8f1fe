"""Records how a query progresses: Spark's own reports about its last batches, as plain records."""

from __future__ import annotations

import json
import logging
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from flinkmagic.deployment.java_classes import CLASSES
from flinkmagic.deployment.streaming.checkpoint_size import CheckpointSize
from flinkmagic.jvm.contexts import jvm_context
from flinkmagic.jvm.java import is_gone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOG = logging.getLogger(__name__)

MOST_BATCHES = 100
"""How many batches of a query are kept: as many as Spark keeps itself (`numRecentProgressUpdates`)."""

_WHOLE = "triggerExecution"
_NO_WATERMARK = "1970-01-01T00:00:00.000Z"
"""The watermark with which a query begins: no row has moved it yet."""

_SEPARATOR = "\u0001"


@dataclass(frozen=True)
class StateProgress:
    """The state of one operator: its name, how many rows it holds, and in how many bytes of memory."""

    operator: str
    rows: int
    bytes: int
    updated: int = 0
    """How many rows the batch has changed."""
    dropped: int = 0
    """How many rows of the batch came too late: they are behind the watermark."""


@dataclass(frozen=True)
class SourceProgress:
    """What a batch has read of one source: from which offset to which, as Spark writes them."""

    description: str
    rows: int
    start: str
    end: str
    latest: str
    """The last one that the source had; empty if it does not say."""


@dataclass(frozen=True)
class BatchProgress:
    """One batch of a query, from Spark's ``StreamingQueryProgress`` (seen on 3.5.9 and 4.3.0)."""

    batch: int
    at: str
    """When it was triggered, as Spark writes it (ISO 8601)."""
    input_rows: int
    input_rate: float
    """Rows that came, per second."""
    processing_rate: float
    """Rows that were processed, per second."""
    batch_ms: int
    phases_ms: Mapping[str, int] = field(default_factory=dict)
    """By phase, as Spark names them (``addBatch``, ``queryPlanning``, ``walCommit``, …)."""
    watermark: str = ""
    """Empty if there is none (yet)."""
    watermark_lag_ms: float | None = None
    """How far the watermark was behind the greatest event time of the batch."""
    state: tuple[StateProgress, ...] = ()
    """By stateful operator."""
    sources: tuple[SourceProgress, ...] = ()
    output_rows: int | None = None
    """The rows that the sink was given; None if it does not count them."""

    @classmethod
    def from_json(cls, text: str) -> BatchProgress:
        """Return what Spark's own JSON of a batch says."""
        told: dict[str, Any] = json.loads(text)
        phases = {str(name): int(ms) for name, ms in told.get("durationMs", {}).items()}
        times = told.get("eventTime", {})
        watermark = str(times.get("watermark", "")).replace(_NO_WATERMARK, "")
        states = [
            StateProgress(
                str(one.get("operatorName", "state")),
                int(one["numRowsTotal"]),
                int(one.get("memoryUsedBytes", 0)),
                int(one.get("numRowsUpdated", 0)),
                int(one.get("numRowsDroppedByWatermark", 0)),
            )
            for one in told.get("stateOperators", [])
        ]
        return cls(
            batch=int(told["batchId"]),
            at=str(told["timestamp"]),
            input_rows=sum(int(one.get("numInputRows", 0)) for one in told.get("sources", [])),
            input_rate=sum(_rate(one.get("inputRowsPerSecond")) for one in told.get("sources", [])),
            processing_rate=sum(_rate(one.get("processedRowsPerSecond")) for one in told.get("sources", [])),
            batch_ms=phases.pop(_WHOLE, 0),
            phases_ms=phases,
            watermark=watermark,
            watermark_lag_ms=_behind(str(times.get("max", "")), watermark),
            state=tuple(states),
            sources=tuple(map(_source, told.get("sources", []))),
            output_rows=rows if (rows := int(told.get("sink", {}).get("numOutputRows", -1))) >= 0 else None,
        )


def _source(told: Mapping[str, Any]) -> SourceProgress:
    start, end, latest = (_offset(told.get(name)) for name in ("startOffset", "endOffset", "latestOffset"))
    return SourceProgress(str(told.get("description", "")), int(told.get("numInputRows", 0)), start, end, latest)


def _offset(told: Any) -> str:
    """Return an offset as Spark's JSON has it: a number, or an object by topic and partition."""
    return "" if told is None else told if isinstance(told, str) else json.dumps(told)


@dataclass(frozen=True)
class StageProgress:
    """What one stage of a batch has read from its sources and written; an unknown value is None."""

    rows_in: int | None = None
    rows_out: int | None = None
    bytes_out: int | None = None


@dataclass(frozen=True)
class BatchMeasures:
    """What the stages of a batch have measured (``java/QueryWatch.java``)."""

    batch: int
    stages: tuple[StageProgress, ...]
    """The last one first, then that below each shuffle, as they stand in the plan from left to right."""
    watermarks: tuple[float | None, ...]
    """Of the stateful operators, in the order of `BatchProgress.state`, in ms since the epoch; or None."""

    @classmethod
    def from_json(cls, text: str) -> BatchMeasures:
        """Return what the driver has told."""
        told = json.loads(text)
        stages = [StageProgress(one.get("rowsIn"), one.get("rowsOut"), one.get("bytesOut")) for one in told["stages"]]
        return cls(int(told["batch"]), tuple(stages), tuple(told["watermarks"]))


@dataclass(frozen=True)
class BatchTasks:
    """The tasks of the jobs that a query has running: zeros between batches."""

    total: int = 0
    active: int = 0
    completed: int = 0
    failed: int = 0


NO_TASKS = BatchTasks()


@dataclass(frozen=True)
class QuerySeen:
    """What is known of a query: its last batches, oldest first, and the tasks of the running one."""

    batches: tuple[BatchProgress, ...] = ()
    tasks: BatchTasks = NO_TASKS
    measures: BatchMeasures | None = None
    """Of one of its last batches."""
    trigger: str = ""
    """When Spark begins a batch, as Spark writes it."""
    checkpoint: str = ""
    """The folder of its checkpoint."""
    checkpoint_bytes: int | None = None
    """What the folder had when it was last looked at closely; None if it was not yet."""
    restarts: int = 0


class QueryProgress:
    """Keeps the last batches of one query, over its restarts, and its tasks; read on demand, from any thread."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._batches: deque[BatchProgress] = deque(maxlen=MOST_BATCHES)
        self._lock = threading.Lock()
        self._query: Any = None
        self._from = 0
        self._measures: BatchMeasures | None = None
        self._about = ("", "")
        self._starts = 0
        self._size = CheckpointSize(spark)

    def follow(self, java_query: Any) -> None:
        """Ask this start of the query from now on."""
        with self._lock:
            self._query, self._from = java_query, 0
            self._starts += 1
            self._about = ("", "")

    def seen(self, *, closely: bool = False) -> QuerySeen:
        """Return what is known after asking Spark for what is new.

        Parameters
        ----------
        closely : bool
            Begin to count the bytes of the checkpoint, too: a later call knows them.
        """
        with self._lock:
            tasks = NO_TASKS if self._query is None else self._ask()
            trigger, checkpoint = self._about
            if closely and checkpoint:
                self._size.count(checkpoint)
            return QuerySeen(
                tuple(self._batches),
                tasks,
                self._measures,
                trigger,
                checkpoint,
                self._size.last(),
                restarts=max(self._starts - 1, 0),
            )

    def end(self) -> None:
        """Ask for the last time, and let go of the query."""
        with self._lock:
            if self._query is not None:
                self._ask()
                self._query = None

    def _ask(self) -> BatchTasks:
        sc = self._spark.sparkContext
        try:
            watch = CLASSES.shared_instance(sc._gateway, "QueryWatch")
            tasks, measures, *told = str(watch.seen(self._query, jvm_context(sc), self._from)).split(_SEPARATOR)
            if self._about == ("", ""):
                trigger, checkpoint = str(watch.about(self._query)).split(_SEPARATOR)
                self._about = (trigger, checkpoint)
        except (Py4JError, OSError) as error:  # what is known stays, and the query is none the worse
            self._query = None
            if not is_gone(self._spark):
                _LOG.warning("The progress of a query cannot be read: %s", error)
            return NO_TASKS
        self._measures = BatchMeasures.from_json(measures) if measures else self._measures
        for text in told:
            batch = BatchProgress.from_json(text)
            # A batch that waits for rows is reported again and again, and so is the last one that was seen.
            if self._batches and self._batches[-1].batch == batch.batch:
                self._batches.pop()
            self._batches.append(batch)
            self._from = batch.batch
        return BatchTasks(*map(int, tasks.split()))


def _rate(value: Any) -> float:
    """Return a rate; Spark leaves out, or writes as text, what it cannot compute (no time has passed)."""
    return float(value) if isinstance(value, (int, float)) else 0.0


def _behind(latest: str, watermark: str) -> float | None:
    if not latest or not watermark:
        return None
    return (_instant(latest) - _instant(watermark)).total_seconds() * 1000.0


def _instant(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ")
