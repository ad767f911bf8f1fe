"""Shows the batches of streaming queries in views and reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from flinkmagic.amounts import count, cut, duration, magnitude, size
from flinkmagic.display.queries import QueryFact, QueryView

if TYPE_CHECKING:
    from flinkmagic.deployment.streaming.query_progress import (
        BatchMeasures,
        BatchProgress,
        BatchTasks,
        QuerySeen,
        SourceProgress,
    )


def query_view(name: str, seen: QuerySeen) -> QueryView:
    """Return the view of a query: its running batch, the last one, and their course over time."""
    facts = _facts(seen.batches, seen.measures) if seen.batches else []
    return QueryView(name, _doing(seen.batches, seen.tasks), (*facts, *_as_a_whole(seen)))


def _doing(batches: Sequence[BatchProgress], tasks: BatchTasks) -> str:
    before = "no batch has ended yet"
    if batches:
        last = batches[-1]
        before = f"batch {last.batch} had {count(last.input_rows, 'row')} and took {duration(last.batch_ms)}"
    if not tasks.total:
        return before
    failed = f", {tasks.failed} failed" if tasks.failed else ""
    running = f"{tasks.completed} of {count(tasks.total, 'task')} of the running batch finished, {tasks.active} running"
    return f"{before}; {running}{failed}"


def _as_a_whole(seen: QuerySeen) -> Iterator[QueryFact]:
    """Yield what is known of the query as a whole."""
    if seen.trigger:
        yield QueryFact("trigger", seen.trigger)
    if seen.checkpoint:
        held = "" if seen.checkpoint_bytes is None else f", {size(seen.checkpoint_bytes)}"
        yield QueryFact("checkpoint", f"{seen.checkpoint}{_committed(seen.batches)}{held}")
    if seen.restarts:
        yield QueryFact("restarts", str(seen.restarts))


def _committed(batches: Sequence[BatchProgress]) -> str:
    """Return how many batches the checkpoint has, and how long it took to write the last one into it."""
    if not batches:
        return ""
    took = sum(batches[-1].phases_ms.get(phase, 0) for phase in ("walCommit", "commitOffsets", "commitBatch"))
    return f", {count(batches[-1].batch + 1, 'batch', 'batches')}, the last in {duration(took)}"


def _facts(batches: Sequence[BatchProgress], measures: BatchMeasures | None) -> list[QueryFact]:
    last = batches[-1]

    def fact(name: str, value: str, measure: Callable[[BatchProgress], float]) -> QueryFact:
        return QueryFact(name, value, tuple(measure(batch) for batch in batches))

    facts = [
        fact("input", f"{_rate(last.input_rate)} rows/s", lambda batch: batch.input_rate),
        fact("processing", f"{_rate(last.processing_rate)} rows/s", lambda batch: batch.processing_rate),
        fact("batch", duration(last.batch_ms), lambda batch: batch.batch_ms),
    ]
    if last.output_rows is not None:
        facts.append(fact("output", count(last.output_rows, "row"), lambda batch: float(batch.output_rows or 0)))
    facts += _phases(batches)
    if last.watermark:
        facts.append(QueryFact("watermark", last.watermark))
    lags = [batch.watermark_lag_ms for batch in batches if batch.watermark_lag_ms is not None]
    if lags:
        facts.append(QueryFact("watermark lag", duration(lags[-1]), tuple(lags)))
    for index, state in enumerate(last.state):
        same = [other.operator for other in last.state[:index]].count(state.operator)
        name = f"state of {state.operator}" + (f" {same + 1}" if same else "")
        course = [batch.state[index].rows for batch in batches if index < len(batch.state)]
        held = f"{count(state.rows, 'row')}, {size(state.bytes)}, {state.updated:,} changed"
        facts.append(QueryFact(name, held, tuple(course)))
        late = [float(batch.state[index].dropped) for batch in batches if index < len(batch.state)]
        if any(late):
            facts.append(QueryFact(f"dropped late by {name.removeprefix('state of ')}", _dropped(late), tuple(late)))
        own = measures.watermarks[index] if measures is not None and index < len(measures.watermarks) else None
        if own:
            facts.append(QueryFact(f"watermark of {name.removeprefix('state of ')}", _instant(own)))
    for index, source in enumerate(last.sources):
        facts.append(QueryFact(f"source {index + 1}" if len(last.sources) > 1 else "source", _offsets(source)))
    return facts


def _dropped(late: Sequence[float]) -> str:
    return f"{count(int(late[-1]), 'row')}, {int(sum(late)):,} in {count(len(late), 'batch', 'batches')}"


def _instant(ms: float) -> str:
    """Return a time as Spark writes that of the query's watermark."""
    return datetime.fromtimestamp(ms / 1000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def _offsets(source: SourceProgress) -> str:
    read = f"{source.description}: {cut(source.start or 'the beginning', _LONGEST)} → {cut(source.end, _LONGEST)}"
    behind = source.latest not in ("", source.end)
    return f"{read}; it has {cut(source.latest, _LONGEST)}" if behind else read


_LONGEST = 120
"""Offsets of a source with many partitions are cut."""


def _phases(batches: Sequence[BatchProgress]) -> list[QueryFact]:
    """Return the phases, longest over all batches first, so that their order does not change with each batch."""
    courses = {
        phase: tuple(float(batch.phases_ms.get(phase, 0)) for batch in batches)
        for phase in sorted({phase for batch in batches for phase in batch.phases_ms})
    }
    longest = sorted(courses, key=lambda phase: -sum(courses[phase]))
    return [QueryFact(phase, duration(courses[phase][-1]), courses[phase]) for phase in longest if any(courses[phase])]


def _rate(value: float) -> str:
    return magnitude(round(value))
