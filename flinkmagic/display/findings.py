"""Findings: what lost time in a job, where, how much, and what would help."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from flinkmagic.amounts import duration

Certainty = Literal["measured", "likely", "possible"]
"""How sure a finding is: cause and cost are measured; the cause is, and the cost is estimated; it may have a reason."""


@dataclass(frozen=True)
class Finding:
    """What lost slots' time in a job. Made by `Job.findings`."""

    rule: str
    """The name of the rule: ``skewed-partition``."""
    what: str
    """What happened, in a sentence without its full stop."""
    cell: str
    """The cell of the line, or its file; this, `line` and `code` are empty (0) if no line of the user's is known."""
    line: int
    code: str
    vertex: str
    """The name of the job vertex."""
    vertex_id: str
    operator: str
    """Spark's operator; empty if it is the vertex as a whole."""
    cost_s: float
    """Seconds of slots' time that were lost: two slots that idle for a second lose two."""
    estimate: str
    """How the cost was measured or estimated."""
    certainty: Certainty
    cure: str
    """A line of code to paste, to be adapted to the names of the program."""

    @property
    def where(self) -> str:
        """The line, else the vertex: ``cell 3, line 5``."""
        return f"{self.cell}, line {self.line}" if self.line else self.vertex

    @property
    def cost(self) -> str:
        """How much of the slots' time: ``"1.6 s of slots lost"``."""
        return f"{duration(1000 * self.cost_s)} of slots lost"

    @property
    def mark(self) -> str:
        """The finding in a line, for the mark on its vertex."""
        return f"{self.cost}: {self.what}"

    @property
    def basis(self) -> str:
        """The rule, and how sure it is: ``"spill, likely · estimated: 10 ms for each MB on disk"``."""
        sure = "" if self.estimate.startswith(self.certainty) else f", {self.certainty}"
        return f"{self.rule}{sure} · {self.estimate}"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, for JSON."""
        return {**asdict(self), "cost_s": round(self.cost_s, 3)}

    def __str__(self) -> str:
        return f"{self.cost}, {self.where}: {self.what}"


@dataclass(frozen=True)
class FindingsView:
    """All that is known about why a job took as long as it did."""

    path: str = ""
    """How long the critical path is; empty as long as no task has run."""
    found: tuple[Finding, ...] = ()
    """The most expensive first."""
    none: str = ""
    """What to say if nothing was found."""

    @property
    def title(self) -> str:
        """The heading, with how many there are: ``"Findings (3)"``."""
        return f"Findings ({len(self.found)})"

    def marks(self, vertices: frozenset[str]) -> tuple[str, ...]:
        """Return the findings at some job vertices, a line each."""
        return tuple(one.mark for one in self.found if one.vertex_id in vertices)
