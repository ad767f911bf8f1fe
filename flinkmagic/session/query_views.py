"""Shows the batches of streaming queries in views and reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from flinkmagic.amounts import count, duration, magnitude, size
from flinkmagic.display.queries import QueryFact, QueryView

if TYPE_CHECKING:
    from flinkmagic.deployment.streaming.query_progress import BatchProgress, BatchTasks, QuerySeen


def query_view(name: str, seen: QuerySeen) -> QueryView:
    """Return the view of a query: its running batch, the last one, and their course over time."""
    if not seen.batches:
        return QueryView(name, _doing(None, seen.tasks))
    return QueryView(name, _doing(seen.batches[-1], seen.tasks), tuple(_facts(seen.batches)))


def _doing(last: BatchProgress | None, tasks: BatchTasks) -> str:
    before = "no batch has ended yet"
    if last is not None:
        before = f"batch {last.batch} had {count(last.input_rows, 'row')} and took {duration(last.batch_ms)}"
    if not tasks.total:
        return before
    failed = f", {tasks.failed} failed" if tasks.failed else ""
    running = f"{tasks.completed} of {count(tasks.total, 'task')} of the running batch finished, {tasks.active} running"
    return f"{before}; {running}{failed}"


def _facts(batches: Sequence[BatchProgress]) -> list[QueryFact]:
    last = batches[-1]

    def fact(name: str, value: str, measure: Callable[[BatchProgress], float]) -> QueryFact:
        return QueryFact(name, value, tuple(measure(batch) for batch in batches))

    facts = [
        fact("input", f"{_rate(last.input_rate)} rows/s", lambda batch: batch.input_rate),
        fact("processing", f"{_rate(last.processing_rate)} rows/s", lambda batch: batch.processing_rate),
        fact("batch", duration(last.batch_ms), lambda batch: batch.batch_ms),
    ]
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
        facts.append(QueryFact(name, f"{count(state.rows, 'row')}, {size(state.bytes)}", tuple(course)))
    return facts


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
