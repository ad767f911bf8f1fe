"""A stage that reads no shuffle and has fewer tasks than there are slots.

Source: Sparklens' "lack of tasks"; DataFlint's alert on wasted cores.

Threshold: fewer tasks than slots, which ran for half a second or more without garbage collection, for two seconds if
they read less than 8 MiB; what counts is the time for which the other slots had no task of the job.

Counter-example: a small input beside which other stages use the slots; a CSV file of 2 MB, whose first reading takes as
long in four tasks.
"""

from __future__ import annotations

from collections.abc import Iterator

from flinkmagic.amounts import count, duration
from flinkmagic.display.findings import Finding
from flinkmagic.session.findings.facts import SHUFFLES, JobFacts, OperatorFacts, VertexFacts, metric
from flinkmagic.session.findings.few_tasks import idle_beside, with_rows
from flinkmagic.session.findings.rule import Rule
from flinkmagic.session.findings.users_line import assigned, with_number

ROW_GROUP = 128 << 20
"""``parquet.block.size``: a smaller columnar file has one row group (a stripe, in ORC), which one task reads."""
_COLUMNAR = frozenset({"parquet", "orc"})


def _find(job: JobFacts) -> Iterator[Finding]:
    for vertex in job.vertices:
        idle_ms = idle_beside(job, vertex)
        if idle_ms and not vertex.reads([*SHUFFLES, "GLOBAL"]):
            source = vertex.first(lambda one: not one.inputs)
            yield RULE.finding(
                f"{_tasks(vertex)} for {count(job.slots, 'slot')}, for {duration(vertex.run_ms)}",
                vertex,
                source,
                idle_ms,
                "measured: the time for which slots idled while it ran",
                "measured",
                _cure(source, job.slots),
            )


def _tasks(vertex: VertexFacts) -> str:
    some, all_ = len(with_rows(vertex)), len(vertex.tasks)
    return count(all_, "task") if some == all_ else f"all rows in {some} of {count(all_, 'task')}"


def _cure(source: OperatorFacts | None, slots: int) -> str:
    if source is not None and source.kind == "RangeExec":
        line = with_number(source.code, "range", 3, 2 * slots, "numPartitions")
        return line or f"spark.range(start, end, step, {2 * slots})"
    size, files = (metric(source.metrics, name) if source is not None else 0 for name in ("filesSize", "numFiles"))
    is_columnar = source is not None and str(source.metrics.get("format")).lower() in _COLUMNAR
    if size and (not is_columnar or size >= files * ROW_GROUP):
        return f'spark.conf.set("spark.sql.files.maxPartitionBytes", {max(1, size // (2 * slots))})'
    return f"{assigned(source, f'repartition({2 * slots})')}  # after the read, if what follows takes long"


RULE = Rule("too-few-tasks", _find)
