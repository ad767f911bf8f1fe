"""Labels operators: the user's own call first, Spark's operator second.

Which call an operator belongs to is in `provenance`, by the operator's class; what an operator of a SQL text does,
where one call has many operators, is in `sql_words`, by its name; so is what an operator does that has no call. An
operator that neither names keeps Spark's own name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flinkmagic.amounts import cut
from flinkmagic.planning.sql_words import EXPR_ID, does, tables

if TYPE_CHECKING:
    from flinkmagic.capturing.lineage import RecordedCall
    from flinkmagic.capturing.program import Program
    from flinkmagic.capturing.source_code.source_location import SourceLocation
    from flinkmagic.planning.partitions import PartitionCounts
    from flinkmagic.planning.plan_reader import PlanNode
    from flinkmagic.planning.provenance import Calls, Provenance

KEYED_PROCESS = "KeyedProcess"
"""What Flink calls a function with state and timers for each key."""

KEYED_PROCESSES = frozenset(
    {"TransformWithStateInPySparkExec", "TransformWithStateInPandasExec", "TransformWithStateExec"}
)
"""Spark's operators of such functions, from 4.0 on."""

TEXT_LENGTH = 200
"""How much of Spark's own text of an operator is kept."""

_PLAN_ID = re.compile(r", \[(?:plan_)?id=#?\d+\]")


@dataclass(frozen=True)
class OperatorLabel:
    """The label of an operator."""

    description: str
    """One line: ``groupBy("hour").agg(...) (cell 3, line 4): HashAggregate``."""
    metadata: dict[str, Any]
    """``operator`` (Spark's name, behind Flink's for a keyed process function), ``text`` (Spark's own words,
    shortened), ``kind`` (Spark's class), ``node``, and, if the user's call is known: ``call``, ``cell``, ``line``,
    ``code``, ``variable``; ``also``, if Spark made one operator from several calls, the earlier ones with their places;
    without a call, and for a SQL text, ``does`` and ``reads``, what it does and the tables that it reads.
    ``partitions`` if Spark will run another number of tasks than the operator has subtasks, ``exact`` false if it
    decides that later."""


@dataclass(eq=False)
class OperatorLabels:
    """Labels for the operators of a job."""

    program: Program
    counts: PartitionCounts
    provenance: Provenance
    """Knows the user's calls that operators belong to, or else the user's name of what they make."""

    def of(self, node: PlanNode) -> OperatorLabel:
        """Return the label of one operator."""
        calls = self.provenance.calls.get(node.number, ())
        facts = call_facts(self.program, calls)
        if not calls or calls[-1].method == "sql":
            facts |= {"does": does(node), "reads": tables(node)}
        if not calls and node.number in self.provenance.names:
            facts["variable"] = self.provenance.names[node.number]
        operator = f"{KEYED_PROCESS} ({node.name})" if node.kind in KEYED_PROCESSES else node.name
        facts |= {"operator": operator, "text": spark_text(node), "kind": node.kind, "node": node.number}
        count = self.counts.of(node)
        if count.number == 0:
            facts["partitions"] = 0
        if not count.exact:
            facts["exact"] = False
        described = f"{', '.join(map(_placed, calls))}: {operator}" if calls else operator
        return OperatorLabel(described, facts)


def call_facts(program: Program, calls: Calls) -> dict[str, Any]:
    """Return the JSON-able facts of an operator's calls; none if there is no call."""
    if not calls:
        return {}
    facts = {"call": calls[-1].text, **location_facts(calls[-1].location)}
    names = program.names_of(calls[-1].output)
    if names:
        facts["variable"] = names[0]
    if len(calls) > 1:
        facts["also"] = [_placed(call) for call in calls[:-1]]
    return facts


def _placed(call: RecordedCall) -> str:
    return f"{call.text} ({call.location})"


def location_facts(location: SourceLocation | None) -> dict[str, Any]:
    """Return cell, line and code of a line of the user's."""
    if location is None:
        return {}
    return {"cell": location.cell, "line": location.line, "code": location.code}


def spark_text(node: PlanNode) -> str:
    """Return Spark's own text of an operator, without expression ids, shortened."""
    return cut(EXPR_ID.sub("", _PLAN_ID.sub("", node.text)), TEXT_LENGTH)
