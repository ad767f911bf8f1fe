"""Tasks that spend their time collecting garbage: the heap is too small for what they hold.

Source: Spark's UI marks tasks with more than a tenth of their time in garbage collection.

Threshold: a tenth of the time of a stage's tasks, and a second in all of them.

Counter-example: a single collection in a long stage; the first tenths of a second in which the heap of a new JVM grows:
query 2 of TPC-H, run first, collects for as long with 8 GB as with 2.
"""

from __future__ import annotations

from collections.abc import Iterator

from flinkmagic.amounts import duration
from flinkmagic.display.findings import Finding
from flinkmagic.session.findings.facts import JobFacts
from flinkmagic.session.findings.rule import Rule

MUCH = 0.1
LONG_MS = 1000.0


def _find(job: JobFacts) -> Iterator[Finding]:
    for vertex in job.vertices:
        collecting_ms = sum(task.gc_ms or 0 for task in vertex.tasks)
        if collecting_ms < max(LONG_MS, MUCH * vertex.run_ms):
            continue
        yield RULE.finding(
            f"garbage collection took {duration(collecting_ms)} of the {duration(vertex.run_ms)} of its tasks",
            vertex,
            None,
            collecting_ms,
            "measured: the collections of the executors while the tasks ran",
            "measured",
            'SparkSession.builder.config("spark.executor.memory", "8g")  # spark.driver.memory in a local session',
        )


RULE = Rule("garbage-collection", _find)
