"""Many small files that are written, and that all who read them will have to open.

Source: DataFlint's alert (100 files below 3 MiB each); Spark's guide to partitioned writes.

Threshold: 100 files of less than 3 MiB on average. A file is charged with eight milliseconds: opening, closing and
committing it.

Counter-example: one file for each of many partitions that are large.
"""

from __future__ import annotations

from collections.abc import Iterator

from flinkmagic.amounts import size
from flinkmagic.display.findings import Finding
from flinkmagic.session.findings.facts import JobFacts, metric, took_ms
from flinkmagic.session.findings.rule import Rule

MANY = 100
SMALL = 3 << 20
FILE_MS = 8.0


def _find(job: JobFacts) -> Iterator[Finding]:
    for vertex in job.vertices:
        metrics = vertex.metrics_above if vertex.kind == "write" else {}
        files, bytes_, folders = (metric(metrics, name) for name in ("numFiles", "numOutputBytes", "numParts"))
        if files < MANY or bytes_ / files >= SMALL:
            continue
        in_folders = f" in {folders:,} partitions" if folders else ""
        yield RULE.finding(
            f"{files:,} files of {size(bytes_ / files)} each are written{in_folders}",
            vertex,
            vertex.above,
            min(sum(map(took_ms, vertex.tasks)), files * FILE_MS),
            "estimated: 8 ms for each file, at most the time of the stage",
            "likely",
            'df.repartition("key").write.partitionBy("key")  # one file for each; or a column with fewer values'
            if folders
            else "df.coalesce(n).write  # fewer files",
        )


RULE = Rule("small-files-written", _find)
