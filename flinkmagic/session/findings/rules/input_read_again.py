"""Files that several stages of a job read, each from the beginning.

Source: ``DataFrame.cache`` and Spark's reuse of exchanges, which begins only behind a shuffle.

Threshold: two stages that scan the same partitions of the same files in the same format, if reading them takes time: in
a columnar format what Spark measured of the scan, for the columns that both read, beyond what it takes to keep them
(query 2 of TPC-H reads ``partsupp`` twice, and takes 1.7 times as long with it cached); else at most the time of the
stage that took less. The line is the first one that only the last of these stages does.

Counter-example: a columnar file that is read twice, or of which each stage reads other columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from flinkmagic.amounts import size
from flinkmagic.display.findings import Finding
from flinkmagic.session.findings.facts import JobFacts, OperatorFacts, VertexFacts, metric
from flinkmagic.session.findings.rule import Rule

KEEPING = 5
"""So many readings of columns does it take to keep their rows."""

_COLUMNS = re.compile(r"\[([^\]]*)\]")
"""The first brackets of Spark's text of a scan."""
_ID = re.compile(r"#\d+L?")
"""The id of a column, which differs between two reads of it."""


def _find(job: JobFacts) -> Iterator[Finding]:
    scans: dict[tuple[str, ...], dict[str, tuple[VertexFacts, OperatorFacts]]] = {}
    for vertex in job.vertices:
        for operator in vertex.operators:
            if operator.metrics.get("paths") and vertex.tasks:
                partitions = _ID.sub("", operator.metrics.get("partitions", ""))
                key = (operator.metrics["format"], partitions, *operator.metrics["paths"])
                scans.setdefault(key, {})[vertex.id] = vertex, operator
    for found in (list(each.values()) for each in scans.values() if len(each) > 1):
        (_, first), (vertex, again) = found[0], found[-1]
        measured = [_common_part(scan, first) * metric(scan.metrics, "scanTime") for _, scan in found]
        is_measured = all(scan.metrics.get("scanTime") for _, scan in found)
        times = measured if is_measured else [one.run_ms for one, _ in found]
        common, own = _parted(found)
        amount = f"{size(metric(again.metrics, 'filesSize'))} of {again.metrics['format']}"
        name = next((one.variable for one in reversed(common) if one.variable), "df")
        yield RULE.finding(
            f"{len(found)} stages read the same {amount}",
            vertex,
            own[0] if own else again,
            min(times) * (len(found) - 1 - (KEEPING if is_measured else 0)),
            "measured: the time of the scans" if is_measured else "estimated: at most the time of the shortest stage",
            "likely" if is_measured else "possible",
            f"{name} = {name}.cache()  # or %%flinkgraph {job.typed_name} --share always",
        )


def _parted(found: list[tuple[VertexFacts, OperatorFacts]]) -> tuple[list[OperatorFacts], list[OperatorFacts]]:
    """Return what the last stage does of the rows that it reads: on lines that all others have, and on its own."""
    *others, (vertex, scan) = found
    lines = [{(one.cell, one.line) for one in other.operators} for other, _ in others]
    above = [one for one in vertex.operators if one.line and scan in vertex.below(one)]
    common = [one for one in above if all((one.cell, one.line) in each for each in lines)]
    own = [one for one in above if not any((one.cell, one.line) in each for each in lines)]
    return common, own


def _common_part(scan: OperatorFacts, first: OperatorFacts) -> float:
    """Return which part of the columns of a scan another one reads, too."""
    columns, others = _columns(scan), _columns(first)
    return len(columns & others) / len(columns) if columns else 0.0


def _columns(scan: OperatorFacts) -> set[str]:
    found = _COLUMNS.search(scan.text)
    return {name.strip() for name in found[1].split(",")} if found is not None else set()


RULE = Rule("input-read-again", _find)
