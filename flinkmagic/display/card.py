"""The card of a cell: a line for each of its actions and writes, as text and as HTML that is saved.

The live card is drawn by `card_widget`; `magics.cell_card` says when either is drawn anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from flinkmagic import amounts
from flinkmagic.display import palette, printable

_MONO = "font-family:ui-monospace,Menlo,Consolas,DejaVu Sans Mono,monospace"
_SUMS = ("times", "seconds", "stages", "tasks", "reused", "answered", "saved_seconds")
_WRAPPED = "white-space:pre-wrap;overflow-wrap:anywhere;word-break:break-word"


@dataclass(frozen=True)
class CardLine:
    """What became of the actions or writes of one line of a cell that are written alike: sums over all of them."""

    call: str
    """As it is written."""
    line: int
    """The line's number in the cell."""
    status: str = "RUNNING"
    """That of the last one: COMPILING, RUNNING, FINISHED, FAILED or CANCELED."""
    times: int = 1
    """How many there were, such as in a loop."""
    seconds: float = 0.0
    stages: int = 0
    """How many stages ran."""
    tasks: int = 0
    """How many tasks ran."""
    done: int = 0
    """Of the one that runs: how many of its tasks are finished."""
    to_do: int = 0
    """Of the one that runs: how many tasks it has."""
    reused: int = 0
    """How many stages did not run, because their results existed."""
    reused_from: str = ""
    """Where the last of these results came from, such as ``from 14:02, another kernel``; empty for this one."""
    answered: int = 0
    """How many were answered as before, and ran nothing."""
    answered_at: str = ""
    """When the last one of these was computed, such as ``as at 20:41:03`` or ``from 14:02, another kernel``."""
    saved_seconds: float = 0.0
    """How long that, and the reused stages, took when they ran."""
    note: str = ""
    """What else there is to say, such as why plain Spark ran it."""

    def then(self, last: CardLine) -> CardLine:
        """Return the line after one more action or write."""
        sums = {name: getattr(self, name) + getattr(last, name) for name in _SUMS}
        places = {name: getattr(last, name) or getattr(self, name) for name in ("answered_at", "reused_from")}
        return replace(last, **sums, **places)

    @property
    def glyph(self) -> str:
        """The sign of its status."""
        return palette.JOB_GLYPHS.get(self.status, "○")

    @property
    def facts(self) -> str:
        """All but the call, such as ``line 3 · 2 stages, 14 tasks · 1.2 s · reused 1 stage, saved 0.8 s``."""
        parts = [f"line {self.line}"]
        if self.times > 1:
            parts.append(f"{self.times:,} times")
        if self.status != "FINISHED":
            parts.append(self.status)
        if self.status != "FINISHED" and self.to_do:
            parts.append(f"{self.done:,}/{self.to_do:,} tasks")
        elif self.stages:
            tasks = f", {amounts.count(self.tasks, 'task')}" if self.tasks else ""
            parts.append(amounts.count(self.stages, "stage") + tasks)
        if self.seconds:
            parts.append(amounts.duration(1000 * self.seconds))
        place = f" {self.reused_from}" if self.reused_from else ""
        found = [f"reused {amounts.count(self.reused, 'stage')}{place}"] if self.reused else []
        if self.answered:
            found.append(f"answered {self.answered_at}")
        if found:
            saved = f", saved {amounts.duration(1000 * self.saved_seconds)}" if self.saved_seconds else ""
            parts.append(" · ".join(found) + saved)
        if self.note:
            parts.append(printable.visible(self.note))
        return " · ".join(parts)

    def to_text(self) -> str:
        """Return the line as text."""
        sign = "" if self.status == "FINISHED" else f"{self.glyph} "
        return f"{sign}{printable.visible(self.call)} · {self.facts}"


def card_bundle(lines: Sequence[CardLine]) -> Mapping[str, str]:
    """Return what a notebook stores of a card: ``text/html`` and ``text/plain``."""
    return {"text/plain": "\n".join(line.to_text() for line in lines), "text/html": _to_html(lines)}


def _to_html(lines: Sequence[CardLine]) -> str:
    """Return the lines as a table that has the colours of the page around it."""
    rows = []
    for line in lines:
        call, facts = (printable.xml(text) for text in (printable.visible(line.call), line.facts))
        sign = f'<span title="{line.status.lower()}">{line.glyph}</span>'
        code = f'<code style="{_MONO};background:none;{_WRAPPED}">{call}</code>'
        told = f'<div style="min-width:0">{code} <span style="opacity:0.75">· {facts}</span></div>'
        rows.append(f'<div style="display:flex;gap:8px;padding:1px 4px">{sign}{told}</div>')
    return f'<div style="font-size:13px;line-height:1.6;border-left:3px solid #8894a5">{"".join(rows)}</div>'
