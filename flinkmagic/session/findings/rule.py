"""A rule: what looks for one kind of finding."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from flinkmagic.display.findings import Certainty, Finding
from flinkmagic.session.findings.facts import JobFacts, OperatorFacts, VertexFacts


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
