"""A cache that does not fit into memory: what is missing is computed again, or read from disk, whenever it is used.

Source: the column "Fraction Cached" of the Storage tab in Spark's UI; Spark's guide to storage levels.

Threshold: any, if its cost is worth telling. Of a level that keeps rows in memory alone the missing partitions are
charged with their part of the time of the stage that computes them; of one that uses disks, ten milliseconds for each
MB there, as for spilled rows.

Counter-example: a cache of which all partitions are in memory, or which was asked for on disk alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from flinkmagic.amounts import size
from flinkmagic.display.findings import Finding
from flinkmagic.planning.plan_reader import CACHED_SCAN
from flinkmagic.session.findings.facts import JobFacts, OperatorFacts, metric
from flinkmagic.session.findings.rule import Rule
from flinkmagic.session.findings.rules.spill import BYTES_A_MS
from flinkmagic.session.findings.users_line import quoted

_READ = re.compile(r"[^\[]*\[(\w+(?:, \w+)*)\]")
"""How Spark's text of a scan begins whose columns are all told."""


def _find(job: JobFacts) -> Iterator[Finding]:
    for vertex in job.vertices:
        scan = vertex.first(lambda one: one.kind == CACHED_SCAN and "cacheId" in one.metrics)
        if scan is None:
            continue
        wanted, there = metric(scan.metrics, "cachePartitions"), metric(scan.metrics, "cachedPartitions")
        on_disk, in_memory = metric(scan.metrics, "cachedOnDisk"), metric(scan.metrics, "cachedBytes")
        name = scan.variable or "df"
        if there < wanted:
            filled = next((one for one in job.producers(vertex) if one.kind == "boundary"), vertex)
            yield RULE.finding(
                f"{wanted - there} of {wanted} partitions of the cache do not fit into memory: each use computes them",
                vertex,
                scan,
                filled.run_ms * (wanted - there) / wanted,
                "estimated: their part of the time of the stage that computes them",
                "likely",
                f"{name} = {name}.persist(StorageLevel.MEMORY_AND_DISK)  # or cache fewer columns",
            )
        elif on_disk and in_memory:
            yield RULE.finding(
                f"{size(on_disk)} of the cache are on disk, beside {size(in_memory)} in memory",
                vertex,
                scan,
                min(vertex.run_ms, on_disk / BYTES_A_MS),
                "estimated: 10 ms for each MB on disk, at most the time of the stage",
                "likely",
                f"{name} = {name}.select({_columns(scan)}).cache()  # the columns that are needed, or more memory",
            )


def _columns(scan: OperatorFacts) -> str:
    """Return the columns that a job reads of a cache, as far as its text is whole."""
    found = _READ.match(scan.text)
    return ", ".join(map(quoted, found[1].split(", "))) if found is not None else '"key", "value"'


RULE = Rule("evicted-cache", _find)
