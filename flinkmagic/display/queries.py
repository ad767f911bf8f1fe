"""What views show of streaming queries: facts with their course over the last batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flinkmagic.display import printable

BARS = "▁▂▃▄▅▆▇█"
MOST_BARS = 24
"""How many batches a line of bars goes back."""


@dataclass(frozen=True)
class QueryFact:
    """One thing that is known of a query, and what it was in its last batches, oldest first, where that is a number."""

    name: str
    value: str
    course: tuple[float, ...] = ()

    @property
    def bars(self) -> str:
        """The course as bars, the highest one full; empty if there is none."""
        shown = self.course[-MOST_BARS:]
        highest = max(shown, default=0.0)
        if highest <= 0:
            return BARS[0] * len(shown)
        return "".join(BARS[round(max(value, 0.0) / highest * (len(BARS) - 1))] for value in shown)


@dataclass(frozen=True)
class QueryView:
    """A streaming query of a job, as views show it."""

    name: str
    doing: str
    facts: tuple[QueryFact, ...] = ()


def query_lines(queries: Sequence[QueryView]) -> list[str]:
    """Return the queries as text: what each does, and below it a line for each fact."""
    lines = []
    for query in queries:
        lines.append(printable.visible(f"{query.name}: {query.doing}"))
        names = max((len(fact.name) for fact in query.facts), default=0)
        values = max((len(fact.value) for fact in query.facts if fact.course), default=0)
        for fact in query.facts:
            value = f"{fact.value:{values}}  {fact.bars}" if fact.course else fact.value
            lines.append(printable.visible(f"  {fact.name:{names}}  {value}".rstrip()))
    return lines
