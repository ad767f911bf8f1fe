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
from flinkmagic.session.findings.facts import JobFacts, VertexFacts, metric, took_ms
from flinkmagic.session.findings.rule import Rule
from flinkmagic.session.findings.users_line import with_fewer_files, with_partitions_together

MANY = 100
SMALL = 3 << 20
FILE_MS = 8.0
GOOD = 128 << 20


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
            _cure(vertex, max(job.slots, bytes_ // GOOD), in_folders=bool(folders)),
        )


def _cure(vertex: VertexFacts, files: int, *, in_folders: bool) -> str:
    code = vertex.above.code if vertex.above is not None else ""
    if in_folders:
        line = with_partitions_together(code) or 'df.repartition("key").write.partitionBy("key")'
        return f"{line}  # one file for each; or a column with fewer values"
    return f"{with_fewer_files(code, files) or f'df.coalesce({files}).write'}  # fewer files"


RULE = Rule("small-files-written", _find)
