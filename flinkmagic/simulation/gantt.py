"""Draws timelines as SVG: a row for each slot, a bar for each attempt."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Sequence
from functools import partial
from xml.sax.saxutils import escape, quoteattr

from flinkmagic.amounts import cut
from flinkmagic.errors.base import lines_written_out
from flinkmagic.simulation.timeline import TaskSpan, Timeline

_COLOURS = (
    "#4e79a7", "#f28e2b", "#59a14f", "#b07aa1", "#76b7b2", "#edc948", "#9c755f", "#ff9da7", "#bab0ac", "#86bcb6",
)  # fmt: skip
_FAILED, _CANCELED = "#c0392b", "#8a8f98"
_LABEL, _PLOT, _BAR, _GAP, _TOP, _RIGHT = 110, 800, 16, 6, 68, 20
_STEPS = (1, 2, 5)


_wrapped = partial(textwrap.wrap, width=140)


def _shown(text: str) -> str:
    """Return text as an element's content; what XML cannot hold, or what reverses text, is written out."""
    return escape(lines_written_out(text))


def gantt_svg(*timelines: Timeline, titles: Sequence[str] | None = None, notes: Sequence[str] = ()) -> str:
    """Draw one or several runs, one below the other on the same time scale, each under a title: by default its name."""
    titles = [timeline.name for timeline in timelines] if titles is None else titles
    longest_ms = max((timeline.makespan_ms for timeline in timelines), default=0.0) or 1.0
    parts, y = [], 0.0
    for timeline, title in zip(timelines, titles, strict=True):
        part, height = _draw(timeline, title, longest_ms)
        parts.append(f'<g transform="translate(0,{y:g})">{part}</g>')
        y += height
    for line in itertools.chain.from_iterable(map(_wrapped, notes)):
        parts.append(f'<text x="{_LABEL}" y="{y:g}" fill="#333">{_shown(line)}</text>')
        y += 18
    width = _LABEL + _PLOT + _RIGHT
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{y:g}" viewBox="0 0 {width} {y:g}" '
        'font-family="system-ui, sans-serif" font-size="11" role="img">'
        f"<title>{_shown('; '.join(titles))}</title>"
        f'<rect width="100%" height="100%" fill="#ffffff"/>{"".join(parts)}</svg>'
    )


def _draw(timeline: Timeline, title: str, longest_ms: float) -> tuple[str, float]:
    scale = _PLOT / longest_ms
    summary = (
        f"{timeline.job_status}, {timeline.makespan_ms / 1000:.3f} s, {len(timeline.slots)} slots used to "
        f"{100 * timeline.utilisation:.0f} %, {timeline.restarts} restarts"
    )
    rows: list[str] = []
    y = float(_TOP)
    for slot in timeline.slots:
        lanes = _lanes([span for span in timeline.spans if (span.resource_id, span.slot) == slot], timeline)
        height = float(max(len(lanes), 1) * _BAR)
        rows.append(
            f'<rect x="{_LABEL}" y="{y:g}" width="{_PLOT}" height="{height:g}" fill="#f4f5f7"/>'
            f'<text x="{_LABEL - 8}" y="{y + height / 2 + 4:g}" text-anchor="end" fill="#333">'
            f"{_shown(slot[0])}/{slot[1]}</text>"
        )
        for number, lane in enumerate(lanes):
            rows += [_bar(span, timeline, y + number * _BAR, scale) for span in lane]
        y += height + _GAP
    head = (
        f'<text x="{_LABEL}" y="20" font-size="14" font-weight="600" fill="#111">{_shown(title)}</text>'
        f'<text x="{_LABEL}" y="36" fill="#555">{_shown(summary)}</text>'
    )
    legend, end = _legend(timeline, y + 8)
    return head + _axis(longest_ms, scale, y) + "".join(rows) + legend, end


def _lanes(spans: list[TaskSpan], timeline: Timeline) -> list[list[TaskSpan]]:
    """Spread spans that share a slot at the same time over lanes."""
    lanes: list[list[TaskSpan]] = []
    for span in sorted(spans, key=lambda span: (span.start_ms, span.vertex)):
        for lane in lanes:
            if timeline.end_of(lane[-1]) <= span.start_ms:
                lane.append(span)
                break
        else:
            lanes.append([span])
    return lanes


def _bar(span: TaskSpan, timeline: Timeline, y: float, scale: float) -> str:
    start_ms = span.start_ms - timeline.start_ms
    end_ms = timeline.end_of(span) - timeline.start_ms
    x, width = _LABEL + start_ms * scale, max((end_ms - start_ms) * scale, 1.5)
    colour = _COLOURS[span.job_vertex % len(_COLOURS)]
    edge = {"FAILED": _FAILED, "CANCELED": _CANCELED}.get(span.state)
    stroke = f' stroke="{edge}" stroke-width="2" stroke-dasharray="3 2"' if edge else ' stroke="#ffffff"'
    label = f"{span.task_name}#{span.attempt}"
    told = f"{label}: {span.state}, {start_ms / 1000:.3f} s to {end_ms / 1000:.3f} s"
    if span.error:
        told += f"; {span.error}"
    text = ""
    if width > 6.5 * len(label):
        ink = "#333" if edge else "#fff"
        text = f'<text x="{x + 4:.2f}" y="{y + _BAR - 4.5:g}" font-size="10" fill="{ink}">{_shown(label)}</text>'
    return (
        f"<g><title>{_shown(told)}</title>"
        f'<rect x="{x:.2f}" y="{y + 1:g}" width="{width:.2f}" height="{_BAR - 2}" rx="2" fill={quoteattr(colour)}'
        f' fill-opacity="{"0.55" if edge else "1"}"{stroke}/>{text}</g>'
    )


def _axis(longest_ms: float, scale: float, bottom: float) -> str:
    step = _step(longest_ms / 8)
    lines, at_ms = [], 0.0
    while at_ms <= longest_ms * 1.0001:
        x = _LABEL + at_ms * scale
        lines.append(
            f'<line x1="{x:.2f}" y1="{_TOP - 6}" x2="{x:.2f}" y2="{bottom:g}" stroke="#dde0e4"/>'
            f'<text x="{x:.2f}" y="{_TOP - 9}" text-anchor="middle" fill="#777">{at_ms / 1000:g}s</text>'
        )
        at_ms += step
    return "".join(lines)


def _step(about_ms: float) -> float:
    """Return a round number of milliseconds, at least as long."""
    power = 1.0
    while power * 10 <= about_ms:
        power *= 10
    while power > about_ms:
        power /= 10
    return next((power * step for step in _STEPS if power * step >= about_ms), power * 10)


def _legend(timeline: Timeline, y: float) -> tuple[str, float]:
    names: dict[int, str] = {}
    for span in timeline.spans:
        names.setdefault(span.job_vertex, span.task_name.rsplit(" (", 1)[0])
    parts, x = [], float(_LABEL)
    for index, name in sorted(names.items()):
        shown = cut(name, 40)
        width = 34 + 6.4 * len(shown)
        if x > _LABEL and x + width > _LABEL + _PLOT:
            x, y = float(_LABEL), y + 18
        parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="11" height="11" rx="2" fill="{_COLOURS[index % len(_COLOURS)]}"/>'
            f'<text x="{x + 15:g}" y="{y + 10:g}" fill="#333">{_shown(shown)}</text>'
        )
        x += width
    return "".join(parts), y + 32
