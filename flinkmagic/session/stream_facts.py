"""What the batches of streaming queries have shown, for views and reports."""

from __future__ import annotations

from collections.abc import Sequence

from flinkmagic.amounts import count, duration, magnitude, size
from flinkmagic.deployment.streaming.query_progress import BatchProgress

_BARS = "▁▂▃▄▅▆▇█"
_SHOWN = 24
"""How many batches a line of bars goes back."""


def stream_facts(batches: Sequence[BatchProgress]) -> tuple[tuple[str, str], ...]:
    """Return names and values for the sink of a query: its last batch, and how that went over time."""
    if not batches:
        return ()
    last = batches[-1]
    facts = [
        ("batch", f"{last.batch}, {count(last.input_rows, 'row')} in {duration(last.batch_ms)}"),
        ("input rows/s", f"{_rate(last.input_rate)} {bars([one.input_rate for one in batches])}"),
        ("processed rows/s", f"{_rate(last.processing_rate)} {bars([one.processing_rate for one in batches])}"),
        ("batch time", f"{duration(last.batch_ms)} {bars([one.batch_ms for one in batches])}"),
    ]
    phases = sorted(last.phases_ms.items(), key=lambda one: -one[1])
    if phases:
        facts.append(("phases", ", ".join(f"{name} {duration(ms)}" for name, ms in phases if ms)))
    if last.watermark:
        facts.append(("watermark", last.watermark + _behind(last)))
    facts += [(f"state of {one.operator}", f"{count(one.rows, 'row')}, {size(one.bytes)}") for one in last.state]
    return tuple(facts)


def stream_line(name: str, batches: Sequence[BatchProgress]) -> str:
    """Return how a query goes, in a line."""
    if not batches:
        return f"{name}: no batch has ended yet"
    last = batches[-1]
    parts = [
        f"batch {last.batch} took {duration(last.batch_ms)}",
        f"{_rate(last.input_rate)} rows/s in",
        f"{_rate(last.processing_rate)} rows/s processed",
    ]
    if last.watermark:
        parts.append(f"watermark {last.watermark}{_behind(last)}")
    if last.state:
        held = sum(one.rows for one in last.state), sum(one.bytes for one in last.state)
        parts.append(f"{count(held[0], 'state row')} ({size(held[1])})")
    return f"{name}: {', '.join(parts)}"


def bars(values: Sequence[float]) -> str:
    """Return the last values as bars, the highest one full."""
    shown = values[-_SHOWN:]
    highest = max(shown, default=0.0)
    if highest <= 0:
        return _BARS[0] * len(shown)
    return "".join(_BARS[round(value / highest * (len(_BARS) - 1))] for value in shown)


def _rate(value: float) -> str:
    return magnitude(round(value))


def _behind(batch: BatchProgress) -> str:
    lag = batch.watermark_lag_ms
    return "" if lag is None else f", {duration(lag)} behind the latest event"
