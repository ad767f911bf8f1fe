"""A stage that reads no shuffle and has so many small tasks that launching them takes its time.

Source: Spark's guide to tuning (two or three tasks for each core; tasks of 200 ms pay); DataFlint's alert on small
tasks.

Threshold: 16 tasks a slot, with a median below 100 ms. What counts is what launching them took.

Counter-example: many tasks that each take a second are well divided.
"""

from __future__ import annotations

from collections.abc import Iterator

from flinkmagic.amounts import count, duration
from flinkmagic.display.findings import Finding
from flinkmagic.session.findings.facts import SHUFFLES, JobFacts, OperatorFacts, VertexFacts, median, took_ms
from flinkmagic.session.findings.rule import Rule
from flinkmagic.session.findings.task_overhead import overhead_ms
from flinkmagic.session.findings.users_line import assigned, with_number


def _find(job: JobFacts) -> Iterator[Finding]:
    for vertex in job.vertices:
        lost_ms = overhead_ms(job, vertex)
        if lost_ms and not vertex.reads(SHUFFLES):
            source = vertex.first(lambda one: not one.inputs)
            yield RULE.finding(
                f"{count(len(vertex.tasks), 'task')} with a median of {duration(median(map(took_ms, vertex.tasks)))}: "
                "launching them takes longer than their work",
                vertex,
                source,
                lost_ms,
                "measured: the tasks' time beside their run, and that of empty slots between them",
                "measured",
                _cure(vertex, source, job.slots),
            )


def _cure(vertex: VertexFacts, source: OperatorFacts | None, slots: int) -> str:
    made = vertex.first(lambda one: one.kind == "RangeExec")
    if made is not None:
        line = with_number(made.code, "range", 3, 2 * slots, "numPartitions")
        return line or f"spark.range(start, end, step, {2 * slots})"
    if vertex.first(lambda one: one.kind == "ExternalRDDScanExec") is not None:  # a dataset of Scala's: a model's rows
        return f"rdd.coalesce({2 * slots})  # where the rows are made; ALS has numUserBlocks and numItemBlocks"
    line = assigned(source, f"coalesce({2 * slots})")
    return f"{line}  # after the read; spark.createDataFrame and parallelize take a number of slices"


RULE = Rule("tiny-tasks", _find)
