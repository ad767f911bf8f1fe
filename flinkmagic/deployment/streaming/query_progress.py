"""How a query goes on: Spark's own progress of its batches, as plain records, the last ones kept."""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from py4j.protocol import Py4JError

MOST_BATCHES = 100
"""How many batches of a query are kept: as many as Spark keeps itself (`numRecentProgressUpdates`)."""

_WHOLE = "triggerExecution"


@dataclass(frozen=True)
class StateProgress:
    """The state of one operator: its name, how many rows it holds, and in how many bytes of memory."""

    operator: str
    rows: int
    bytes: int


@dataclass(frozen=True)
class BatchProgress:
    """One batch of a query, from Spark's ``StreamingQueryProgress`` (seen on 3.5.9 and 4.3.0).

    Attributes
    ----------
    batch : int
        Its number.
    at : str
        When it was triggered, as Spark writes it (ISO 8601).
    input_rows : int
        The rows that it read.
    input_rate, processing_rate : float
        Rows a second that came, and that were processed.
    batch_ms : int
        How long it took.
    phases_ms : mapping of str to int
        By phase of it, as Spark names them (``addBatch``, ``queryPlanning``, ``walCommit``, …).
    watermark : str
        Its watermark; empty if there is none.
    watermark_lag_ms : float, optional
        How far that was behind the greatest event time of the batch.
    state : tuple of StateProgress
        By stateful operator.
    """

    batch: int
    at: str
    input_rows: int
    input_rate: float
    processing_rate: float
    batch_ms: int
    phases_ms: Mapping[str, int] = field(default_factory=dict)
    watermark: str = ""
    watermark_lag_ms: float | None = None
    state: tuple[StateProgress, ...] = ()

    @classmethod
    def from_json(cls, text: str) -> BatchProgress:
        """Return what Spark's own JSON of a batch says."""
        told: dict[str, Any] = json.loads(text)
        phases = {str(name): int(ms) for name, ms in told.get("durationMs", {}).items()}
        times = told.get("eventTime", {})
        watermark = str(times.get("watermark", ""))
        states = [
            StateProgress(
                str(one.get("operatorName", "state")), int(one["numRowsTotal"]), int(one.get("memoryUsedBytes", 0))
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
        )


class QueryProgress:
    """The last batches of one query, over its restarts; asked for when somebody looks, from any thread."""

    def __init__(self) -> None:
        self._batches: deque[BatchProgress] = deque(maxlen=MOST_BATCHES)
        self._lock = threading.Lock()
        self._last = ""
        self._query: Any = None

    def follow(self, java_query: Any) -> None:
        """Ask this query of Spark's from now on."""
        self._query = java_query

    def batches(self) -> tuple[BatchProgress, ...]:
        """Return what is known, oldest first, after asking Spark for the last one."""
        with self._lock:
            self._ask()
            return tuple(self._batches)

    def _ask(self) -> None:
        if self._query is None:
            return
        try:
            last = self._query.lastProgress()
            text = "" if last is None else str(last.json())
        except (Py4JError, OSError):  # the session is gone, and with it the query: what is known stays
            self._query = None
            return
        if not text or text == self._last:
            return
        self._last = text
        told = BatchProgress.from_json(text)
        if self._batches and self._batches[-1].batch == told.batch:
            self._batches.pop()  # a batch without rows is reported again and again
        self._batches.append(told)


def _rate(value: Any) -> float:
    """Return a rate; Spark leaves out, or writes as text, what it cannot compute (no time has passed)."""
    return float(value) if isinstance(value, (int, float)) else 0.0


def _behind(latest: str, watermark: str) -> float | None:
    if not latest or not watermark:
        return None
    return (_instant(latest) - _instant(watermark)).total_seconds() * 1000.0


def _instant(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ")
