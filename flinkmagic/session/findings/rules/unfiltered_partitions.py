"""A table in partitions that is read whole, although a filter wants what is in a few of them.

Source: Spark's partition pruning ("PartitionFilters" of a scan): a condition on the partition's column alone is applied
to the folders, before a file is opened; one that calls a Python function, or asks another column, is applied to rows.

Threshold: four partitions and more, no condition on their column, and at most a tenth of the rows left by the filters
above the scan, which ask a Python function of that column, or for a time where the partitions are those of a calendar.
The scan is charged for the rows that were read for nothing.

Counter-example: a key that is looked for in all partitions; a query that needs most rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from flinkmagic.amounts import magnitude
from flinkmagic.display.findings import Finding
from flinkmagic.planning.plan_reader import FILE_SCAN
from flinkmagic.planning.python_callers import PYTHON_FUNCTIONS
from flinkmagic.session.findings.facts import JobFacts, OperatorFacts, VertexFacts, metric
from flinkmagic.session.findings.rule import Rule

MANY = 4
FEW = 0.1

_FILTER = "FilterExec"
_ON_THE_WAY = PYTHON_FUNCTIONS | {"ColumnarToRowExec", "ProjectExec", _FILTER}
_CALENDAR = re.compile(r"(?:^|_)(?:year|month|week|day|date|dt|ds|hour|yyyy\w*)(?:$|_)", re.IGNORECASE)
_TIME = re.compile(
    r"\b\d{4}-\d\d\b|\b(?:year|month|dayofmonth|weekofyear|date_format|date_trunc|trunc|hour)\(|\bas date\b"
)
"""In Spark's text of a filter: a date, or a function of one."""


def _find(job: JobFacts) -> Iterator[Finding]:
    for vertex in job.vertices:
        for scan in vertex.operators:
            partitions, rows = metric(scan.metrics, "numPartitions"), metric(scan.metrics, "numOutputRows")
            columns = scan.metrics.get("partitionColumns", ())
            if scan.kind != FILE_SCAN or partitions < MANY or scan.metrics.get("partitions") or not columns or not rows:
                continue
            above = _above(vertex, scan)
            last = next((one for one in reversed(above) if one.kind == _FILTER), None)
            left = metric(last.metrics, "numOutputRows") if last is not None else rows
            column = _asked(above, columns) if left <= FEW * rows else ""
            if last is None or not column:
                continue
            took_ms = metric(scan.metrics, "scanTime")
            yield RULE.finding(
                f"all {partitions:,} partitions by {', '.join(columns)} are read, and a filter leaves "
                f"{magnitude(left)} of {magnitude(rows)} rows",
                vertex,
                last if last.line else scan,
                min(vertex.run_ms, took_ms or vertex.run_ms) * (1 - left / rows) * (1 - 1 / partitions),
                "measured: the time of the scan for the other rows"
                if took_ms
                else "estimated: at most the stage's time",
                "possible",
                f'{scan.variable or "df"}.where(F.col("{column}") == value)  # the column itself chooses folders',
            )


def _above(vertex: VertexFacts, scan: OperatorFacts) -> list[OperatorFacts]:
    """Return the operators above a scan as far as they only choose rows and columns, or call functions of rows."""
    found, below = [], scan
    while len(readers := [one for one in vertex.operators if below.id in one.inputs]) == 1:
        (below,) = readers
        if below.kind not in _ON_THE_WAY:
            break
        found.append(below)
    return found


def _asked(above: list[OperatorFacts], columns: tuple[str, ...]) -> str:
    """Return the partitions' column on which the filters, in fact, depend; empty if that is not known."""
    functions = " ".join(one.text for one in above if one.kind in PYTHON_FUNCTIONS)
    called = next((one for one in columns if re.search(rf"\b{re.escape(one)}\b(?!\()", functions)), "")
    filters = " ".join(one.text for one in above if one.kind == _FILTER)
    is_of_time = _TIME.search(filters) is not None
    return called or next((one for one in columns if is_of_time and _CALENDAR.search(one)), "")


RULE = Rule("unfiltered-partitions", _find)
