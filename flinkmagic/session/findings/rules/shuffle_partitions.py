"""A shuffle whose partitions do not fit the data: far too many small ones, or fewer than there are slots.

Source: ``spark.sql.adaptive.coalescePartitions`` (its least size of a partition is 1 MiB); Spark's guide to tuning.

Threshold: 16 tasks a slot that take a median below 100 ms and read less than 1 MiB each; or fewer tasks than slots,
with 64 MiB and more to read for each (Spark's advisory size).

Counter-example: small partitions that one task reads together cost nothing, nor does a single partition of few rows.
"""

from __future__ import annotations

from collections.abc import Iterator

from flinkmagic.amounts import count, size
from flinkmagic.display.findings import Finding
from flinkmagic.session.findings.facts import SHUFFLES, JobFacts, OperatorFacts, VertexFacts
from flinkmagic.session.findings.few_tasks import idle_beside
from flinkmagic.session.findings.rule import Rule
from flinkmagic.session.findings.task_overhead import overhead_ms
from flinkmagic.session.findings.users_line import with_number

SMALL = 1 << 20
LARGE = 64 << 20


def _find(job: JobFacts) -> Iterator[Finding]:
    for vertex in job.vertices:
        if not vertex.tasks or not vertex.reads(SHUFFLES):
            continue
        each = vertex.bytes_in / len(vertex.tasks)
        lost_ms, better = overhead_ms(job, vertex), max(2 * job.slots, vertex.bytes_in // LARGE)
        how = "measured: the tasks' time beside their run, and that of empty slots between them"
        if not lost_ms or each >= SMALL:
            lost_ms, how = idle_beside(job, vertex), "measured: the time for which slots idled while it ran"
            if each < LARGE:
                continue
        exchange = _asked_for(job, vertex)
        asked = with_number(exchange.code, "repartition", 0, better) if exchange is not None else ""
        line = asked or f'df.repartition({better}, "key")'
        yield RULE.finding(
            f"{count(len(vertex.tasks), 'partition')} of {size(each)} each, for {count(job.slots, 'slot')}",
            vertex,
            exchange,
            lost_ms,
            how,
            "measured",
            f"{line}  # or without it, with %config FlinkMagics.parallelism = {better}",
        )


def _asked_for(job: JobFacts, vertex: VertexFacts) -> OperatorFacts | None:
    """Return the exchange that has made the partitions."""
    read = {one.vertex_id for one in vertex.inputs if one.partitioner in SHUFFLES}
    above = (producer.above for producer in job.producers(vertex) if producer.id in read)
    return next((one for one in above if one is not None and one.line), None)


RULE = Rule("shuffle-partitions", _find)
