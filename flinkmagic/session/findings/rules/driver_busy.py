"""The driver worked for long before the first task of a job or after the last one, while all slots idled.

Source: Sparklens' "driver wall clock time", which no number of executors makes shorter; the gaps at both ends of
Spark's event timeline. Of what happens between stages `idle_slots` tells.

Threshold: a second, and a quarter of the job's time and that of its planning.

Counter-example: the first job of a driver, which loads Spark's classes meanwhile; the tenths of a second that it takes
to plan a query and to commit its files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from flinkmagic.amounts import duration, magnitude, size
from flinkmagic.display.findings import Finding
from flinkmagic.session.findings.facts import JobFacts, VertexFacts, metric
from flinkmagic.session.findings.rule import Rule
from flinkmagic.session.findings.users_line import assigned, with_partitions_together

LONG_MS = 1000.0
MUCH = 0.25
MANY_BYTES = 32 << 20
"""Of results: less is brought to the driver in tenths of a second."""
MANY_ROWS = 100_000
"""Of results: Python makes an object of each row."""
LEAST_BYTES = 1 << 20
"""Of results: what is smaller has few rows, whatever its operators have counted."""


def _find(job: JobFacts) -> Iterator[Finding]:
    if job.is_first or not job.is_finished or not job.vertices:
        return
    first = min(job.vertices, key=lambda vertex: vertex.start_ms)
    last = max(job.vertices, key=lambda vertex: vertex.end_ms)
    least_ms = max(LONG_MS, MUCH * (job.planning_ms + job.elapsed_ms))
    before_ms = job.planning_ms + job.idle_ms(job.started_ms, first.start_ms, slots=1)
    if before_ms >= least_ms:
        # A write has the shortest plan of all: what is long is that of the DataFrame.
        planned = next((one for one in reversed(first.operators) if one.line and one.variable), None)
        yield RULE.finding(
            f"no task ran for {duration(before_ms)} before the first stage: the driver planned the job or listed files",
            first,
            planned,
            before_ms * job.slots,
            "measured: the time for which all slots idled",
            "possible",
            f"{assigned(planned, 'localCheckpoint()')}  # a plan of hundreds of steps; or read fewer files",
        )
    after_ms = job.idle_ms(last.end_ms, job.ended_ms, slots=1)
    if after_ms >= least_ms:
        did, is_measured, cure = _after(job, last)
        yield RULE.finding(
            f"no task ran for {duration(after_ms)} after the last stage: {did}",
            last,
            last.above,
            after_ms * job.slots,
            "measured: the time for which all slots idled",
            "likely" if is_measured else "possible",
            cure,
        )


def _after(job: JobFacts, last: VertexFacts) -> tuple[str, bool, str]:
    """Return what the driver did after a stage, whether that was measured, and the cure."""
    files, committed_ms = (metric(last.metrics_above, name) for name in ("numFiles", "jobCommitTime"))
    result = sum(task.result_bytes or 0 for task in last.tasks)
    if committed_ms >= LONG_MS / 2:
        code = last.above.code if last.above is not None else ""
        cure = with_partitions_together(code) or 'df.repartition("key").write'
        return f"the driver committed {files:,} files", True, f"{cure}  # fewer files"
    counted = (metric(one.metrics, "numOutputRows") for one in reversed(last.operators))
    rows = next(filter(None, counted), 0)
    if result >= MANY_BYTES or (result >= LEAST_BYTES and rows >= MANY_ROWS):
        many = f"{magnitude(rows)} rows, {size(result)}," if rows else size(result)
        return f"the driver took up {many} of results", True, _cure_of_results(last)
    return "the driver was busy", False, f"%flinkjobs {job.typed_name} --log  # what the driver did then"


def _cure_of_results(last: VertexFacts) -> str:
    line = last.above or last.main_operator
    collected = _COLLECTED.search(line.code) if line is not None else None
    if collected is not None:
        return f"{collected[1]}.toPandas()  # by Arrow, column by column; or an aggregate: the driver works alone"
    return "df.write.parquet(path)  # or an aggregate: what is collected passes the driver alone"


_COLLECTED = re.compile(r"\b([A-Za-z_]\w*)\.collect\(\)")

RULE = Rule("driver-busy", _find)
