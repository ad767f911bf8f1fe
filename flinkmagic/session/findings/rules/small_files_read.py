"""Many small files that are read: each is opened, and its footer read, for a few rows.

Source: ``spark.sql.files.openCostInBytes`` (a file counts 4 MiB more than it has); DataFlint's alert (100 files below
3 MiB each).

Threshold: 100 files of less than 3 MiB on average. A file is charged with four milliseconds.

Counter-example: the same files, if they are large.
"""

from __future__ import annotations

from collections.abc import Iterator

from flinkmagic.amounts import size
from flinkmagic.display.findings import Finding
from flinkmagic.session.findings.facts import JobFacts, OperatorFacts, metric, took_ms
from flinkmagic.session.findings.rule import Rule
from flinkmagic.session.findings.users_line import beside, quoted

MANY = 100
SMALL = 3 << 20
FILE_MS = 4.0
GOOD = 128 << 20


def _find(job: JobFacts) -> Iterator[Finding]:
    for vertex in job.vertices:
        for scan in vertex.operators:
            files, bytes_ = metric(scan.metrics, "numFiles"), metric(scan.metrics, "filesSize")
            if not scan.metrics.get("paths") or files < MANY or bytes_ / files >= SMALL:
                continue
            yield RULE.finding(
                f"{files:,} files of {size(bytes_ / files)} each are read",
                vertex,
                scan,
                min(sum(map(took_ms, vertex.tasks)), files * FILE_MS),
                "estimated: 4 ms for each file, at most the time of the stage",
                "likely",
                f"{_written(scan, max(1, bytes_ // GOOD))}  # once, and read that",
            )


def _written(scan: OperatorFacts, files: int) -> str:
    """Return a write of what a scan reads into fewer files, in the same folders."""
    folders = ", ".join(map(quoted, scan.metrics.get("partitionColumns", ())))
    spread, by = (folders, f".partitionBy({folders})") if folders else (files, "")
    return f"{scan.variable or 'df'}.repartition({spread}).write{by}.parquet({beside(scan)})"


RULE = Rule("small-files-read", _find, explains=frozenset({"tiny-tasks"}))
