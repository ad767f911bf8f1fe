"""A broadcast of so many bytes that the driver collects, builds and sends it while slots wait.

Source: ``spark.sql.autoBroadcastJoinThreshold`` is 10 MiB by default, and Spark's limit is 8 GiB; DataFlint warns from
1 GiB on.

Threshold: 16 MiB that the driver collects, compressed as its tasks send them (what Spark tells of the relation that it
makes of them begins at the size of a page of memory, 64 MiB). What counts is the time for which slots idled between the
broadcast's tasks and the join's.

Counter-example: a broadcast that is made while other stages use the slots.
"""

from __future__ import annotations

from collections.abc import Iterator

from flinkmagic.amounts import duration, size
from flinkmagic.display.findings import Finding
from flinkmagic.session.findings.facts import JobFacts
from flinkmagic.session.findings.rule import Rule
from flinkmagic.session.findings.users_line import with_merge_hint

LARGE = 16 << 20

_MERGED = 'df.join(other.hint("merge"), "key")'


def _find(job: JobFacts) -> Iterator[Finding]:
    for vertex in job.vertices:
        data = sum(task.bytes_out or 0 for task in vertex.tasks)
        readers = job.consumers(vertex)
        if vertex.kind != "broadcast" or data < LARGE or not readers:
            continue
        first = min(readers, key=lambda one: one.start_ms)
        on_driver_ms = first.start_ms - vertex.end_ms
        join = first.first(lambda one: "Broadcast" in one.kind)
        merged = with_merge_hint(join.code) if join is not None else ""
        yield RULE.finding(
            f"{size(data)} (compressed) are broadcast: collecting, building and sending them took the driver "
            f"{duration(max(0.0, on_driver_ms))}",
            first,
            join,
            job.idle_ms(vertex.end_ms, first.start_ms),
            "measured: the time for which slots idled after the broadcast's tasks, until the join's first",
            "measured",
            f"{merged or _MERGED}  # in place of F.broadcast; or broadcast the smaller side",
        )


RULE = Rule("large-broadcast", _find, explains=frozenset({"idle-slots"}))
