"""A cache that is read once, by the job that fills it, and dropped then.

Source: the RDDs that Spark names with each stage; its Storage tab, which shows that rows are kept, but not that
anything has read them.

Threshold: any, if its cost is worth telling. It is told once the cache has been dropped (``unpersist``, in a log also
the application's end): until then a later cell may read it. Keeping is charged with four milliseconds for each MB, of
which a log does not tell, and 0.2 µs for each row. Measured, as the processor time of a stage that fills a cache, less
that of one that does not: 0.1 to 0.6 µs for each row.

Counter-example: a cache that two stages read, of one job or of two.
"""

from __future__ import annotations

from collections.abc import Iterator

from flinkmagic.amounts import magnitude, size
from flinkmagic.display.findings import Finding
from flinkmagic.planning.plan_reader import CACHED_SCAN
from flinkmagic.session.findings.facts import JobFacts, OperatorFacts, metric
from flinkmagic.session.findings.rule import Rule
from flinkmagic.session.findings.users_line import without_call

STAGES = 2
"""Spark counts the stage that fills a cache as one that reads it. An older one may be forgotten, but no younger one."""
KEEPING_MB_MS = 4.0
KEEPING_ROW_MS = 0.0002
"""What Spark takes to encode rows as columns and to store them."""


def _find(job: JobFacts) -> Iterator[Finding]:
    for vertex in job.vertices:
        scan = vertex.first(lambda one: one.kind == CACHED_SCAN and "cacheId" in one.metrics)
        filled = next((one for one in job.producers(vertex) if one.kind == "boundary"), None)
        if scan is None or filled is None or job.reads_of_dropped_caches.get(scan.metrics["cacheId"]) != STAGES:
            continue
        rows = metric(scan.metrics, "numOutputRows")
        kept = metric(scan.metrics, "cachedBytes") + metric(scan.metrics, "cachedOnDisk")
        bytes_told, bytes_charged = (f" ({size(kept)})", "4 ms for each MB that is kept and ") if kept else ("", "")
        yield RULE.finding(
            f"{magnitude(rows)} rows{bytes_told} were cached, and dropped before anything else had read them",
            vertex,
            scan,
            min(filled.run_ms, KEEPING_MB_MS * kept / 1e6 + KEEPING_ROW_MS * rows),
            f"estimated: {bytes_charged}0.2 µs for each row",
            "likely",
            f"{_uncached(scan)}  # without cache() and unpersist()",
        )


def _uncached(scan: OperatorFacts) -> str:
    return without_call(scan.code, "cache", "persist") or f"{scan.variable or 'df'} = ..."


RULE = Rule("unread-cache", _find)
