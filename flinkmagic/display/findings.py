"""What views show of why a job took as long as it did."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FindingView:
    """What lost time in a job, in words."""

    rule: str
    certainty: str
    what: str
    cost: str
    """How much of the slots' time: ``"1.6 s of slots"``."""
    estimate: str
    """How that was measured or estimated."""
    where: str
    """The cell and the line, else the vertex."""
    code: str
    vertex_id: str
    operator: str
    cure: str
    """Code to copy."""

    @property
    def mark(self) -> str:
        """The finding in a line, for the mark on its vertex."""
        return f"{self.cost}: {self.what}"

    @property
    def basis(self) -> str:
        """The rule, and how sure it is: ``"spill, likely · estimated: 10 ms for each MB on disk"``."""
        sure = "" if self.estimate.startswith(self.certainty) else f", {self.certainty}"
        return f"{self.rule}{sure} · {self.estimate}"


@dataclass(frozen=True)
class FindingsView:
    """All that is known about why a job took as long as it did."""

    path: str = ""
    """How long the critical path is; empty as long as no task has run."""
    found: tuple[FindingView, ...] = ()
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
