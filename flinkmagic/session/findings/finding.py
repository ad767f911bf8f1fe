"""A finding: what lost time in a job, where, how much, and what would help."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from flinkmagic.amounts import duration
from flinkmagic.session.findings.facts import JobFacts, OperatorFacts, VertexFacts

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

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, for JSON."""
        return {**asdict(self), "cost_s": round(self.cost_s, 3)}

    def __str__(self) -> str:
        return f"{duration(1000 * self.cost_s)} of slots lost, {self.where}: {self.what}"


@dataclass(frozen=True)
class Rule:
    """A rule that looks for one fault."""

    name: str
    find: Callable[[JobFacts], Iterator[Finding]]
    explains: frozenset[str] = frozenset()
    """The rules whose findings at the same vertex only tell of a symptom of this one's."""

    def finding(
        self,
        what: str,
        vertex: VertexFacts,
        operator: OperatorFacts | None,
        cost_ms: float,
        estimate: str,
        certainty: Certainty,
        cure: str,
    ) -> Finding:
        """Return a finding of this rule, at an operator's line if that is known, else at a line of its vertex."""
        line = operator if operator is not None and operator.line else vertex.main_operator
        return Finding(
            rule=self.name,
            what=what,
            cell=line.cell if line is not None else "",
            line=line.line if line is not None else 0,
            code=line.code if line is not None else "",
            vertex=vertex.name,
            vertex_id=vertex.id,
            operator=operator.operator if operator is not None else "",
            cost_s=cost_ms / 1000,
            estimate=estimate,
            certainty=certainty,
            cure=cure,
        )
