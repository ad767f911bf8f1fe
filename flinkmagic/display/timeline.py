"""When each task of a run ran, as a picture that is saved: a band for each job vertex, a bar for each attempt.

The widget draws the same in its tab (``static/timeline.js``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from flinkmagic import amounts
from flinkmagic.display import palette, printable
from flinkmagic.display.picture import HEADING, MARGIN, Picture, framed
from flinkmagic.display.scene import Element, box, element, moved, number
from flinkmagic.display.snapshot import STATE_NAMES, GraphView, JobSnapshot, TaskView

MAX_BARS = 3000
"""A picture of more bars would add megabytes to a notebook."""

_WIDTH = 960.0
_LABELS = 230.0
_AXIS = 26.0
_GAP = 10.0
_LEAST_BAND = 18.0
_LEAST_BAR = 1.5
_PITCHES = ((8, 15.0), (24, 8.0), (60, 4.0))
_DENSEST = 2.0
_PALE = frozenset({"CREATED", "SCHEDULED", "DEPLOYING", "INITIALIZING", "CANCELING"})


@dataclass
class _Bar:
    """One attempt, or several of the same state that follow each other within less than a pixel."""

    left: float
    right: float
    state: str
    label: str


def draw_timeline(view: GraphView, snapshot: JobSnapshot) -> Picture | None:
    """Draw when the tasks of a job ran; None before the first one has begun, and if there are too many of them.

    The bands have their order and their titles from the view, its job graph.
    """
    tasks = sorted((task for task in snapshot.tasks if task.start_ms is not None), key=_start)
    if not tasks:
        return None
    first = _start(tasks[0])
    now = max((snapshot.started_at_ms or first) + (snapshot.elapsed_ms or 0.0), first)
    span = max(max(_end(task, now) for task in tasks) - first, 1.0)
    scale = (_WIDTH - 2 * MARGIN - _LABELS) / span
    bands: list[tuple[str, list[list[_Bar]]]] = []
    for node in view.nodes:
        own = [task for task in tasks if task.vertex_id == node.vertex_id]
        if own:
            bands.append((node.title, [_bars(lane, first, now, scale) for lane in _lanes(own, now)]))
    if sum(len(bars) for _, lanes in bands for bars in lanes) > MAX_BARS:
        return None
    height = _AXIS + sum(_height(lanes) + _GAP for _, lanes in bands)
    content = moved(MARGIN, MARGIN + HEADING, *_axis(span, scale, height), class_="fm-content")
    y = _AXIS
    for title, lanes in bands:
        content.add(_band(title, lanes, y))
        y += _height(lanes) + _GAP
    told = f"{amounts.count(len(tasks), 'task attempt')} over {amounts.duration(span)}"
    painted = replace(view, kind="timeline", summary=told, status=snapshot.status, elapsed_ms=snapshot.elapsed_ms)
    states = {task.state for task in tasks}
    return framed(painted, content, _WIDTH, height, [name for name in STATE_NAMES if name in states])


def _start(task: TaskView) -> float:
    return task.start_ms or 0.0


def _end(task: TaskView, now: float) -> float:
    return max(now if task.end_ms is None else task.end_ms, _start(task))


def _lanes(tasks: Sequence[TaskView], now: float) -> list[list[TaskView]]:
    """Spread tasks, the first ones first, over as few lanes as hold them without overlap."""
    lanes: list[list[TaskView]] = []
    for task in tasks:
        lane = next((lane for lane in lanes if _end(lane[-1], now) <= _start(task)), None)
        if lane is None:
            lanes.append(lane := [])
        lane.append(task)
    return lanes


def _bars(lane: Sequence[TaskView], first: float, now: float, scale: float) -> list[_Bar]:
    bars: list[_Bar] = []
    for task in lane:
        left = _LABELS + (_start(task) - first) * scale
        right = max(_LABELS + (_end(task, now) - first) * scale - 0.5, left + _LEAST_BAR)
        last = bars[-1] if bars else None
        if last is not None and last.state == task.state and right - last.right < 1.0:
            last.right, last.label = max(last.right, right), ""
        else:
            bars.append(_Bar(left, right, task.state, str(task.subtask + 1)))
    return bars


def _pitch(lanes: Sequence[object]) -> float:
    return next((pitch for most, pitch in _PITCHES if len(lanes) <= most), _DENSEST)


def _height(lanes: Sequence[object]) -> float:
    return max(len(lanes) * _pitch(lanes), _LEAST_BAND)


def _axis(span: float, scale: float, height: float) -> Iterator[Element]:
    for at in _ticks(span):
        x = _LABELS + at * scale
        words = amounts.duration(at)
        middle = min(x, _WIDTH - 2 * MARGIN - printable.width(words, 10.5) / 2)
        yield box(x, _AXIS - 6, 1, height - _AXIS, fill=palette.LINE, class_="fm-tick")
        yield element("text", words, x=middle, y=14, font_size=10.5, text_anchor="middle", fill=palette.MUTED)


def _ticks(span: float) -> list[float]:
    """Return round times up to a span, about seven of them."""
    rough = span / 7
    power = 10.0 ** math.floor(math.log10(max(rough, 1.0)))
    step = next((factor * power for factor in (1, 2, 5) if factor * power >= rough), 10 * power)
    return [index * step for index in range(int(span / step) + 1)]


def _band(title: str, lanes: Sequence[Sequence[_Bar]], y: float) -> Element:
    pitch = _pitch(lanes)
    words = printable.shorten(printable.visible(title), _LABELS - 14, 11)
    group = moved(0, y, element("text", words, x=0, y=13, font_size=11, fill=palette.INK), class_="fm-band")
    shapes: dict[str, list[str]] = {}
    crosses: list[str] = []
    labels: list[Element] = []
    for number_of_lane, bars in enumerate(lanes):
        top, bottom = number_of_lane * pitch, (number_of_lane + 1) * pitch - 1
        for bar in bars:
            left, right = number(bar.left), number(bar.right)
            shapes.setdefault(bar.state, []).append(f"M{left} {number(top)}H{right}V{number(bottom)}H{left}z")
            if bar.state in ("FAILED", "CANCELED"):
                crosses.append(f"M{left} {number(bottom)}L{right} {number(top)}")
            if bar.state == "FAILED":
                crosses.append(f"M{left} {number(top)}L{right} {number(bottom)}")
            if bar.label and pitch > 12 and bar.right - bar.left > max(18.0, printable.width(bar.label, 10) + 6):
                ink = palette.INK if bar.state in _PALE else palette.CARD
                labels.append(element("text", bar.label, x=bar.left + 3, y=top + 11, font_size=10, fill=ink))
    for state, outlines in shapes.items():
        group.add(element("path", d="".join(outlines), fill=palette.STATES[state].fill, data_state=state))
    if crosses:
        group.add(element("path", d="".join(crosses), fill="none", stroke=palette.CARD, stroke_width=1.5))
    return group.add(*labels)
