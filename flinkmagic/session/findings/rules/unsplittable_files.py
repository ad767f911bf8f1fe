"""Large files in a format of which a task must read all: compressed with gzip, or with rows over several lines.

Source: Spark's ``FileFormat.isSplitable``; gzip's stream can only be read from its beginning.

Threshold: fewer tasks than slots, over files of 8 MiB and more.

Counter-example: as many such files as there are slots, or more, of about the same size.
"""

from __future__ import annotations

from collections.abc import Iterator

from flinkmagic.amounts import count, size
from flinkmagic.display.findings import Finding
from flinkmagic.session.findings.facts import JobFacts, metric
from flinkmagic.session.findings.few_tasks import idle_beside
from flinkmagic.session.findings.rule import Rule
from flinkmagic.session.findings.users_line import beside

LARGE = 8 << 20


def _find(job: JobFacts) -> Iterator[Finding]:
    for vertex in job.vertices:
        scan = vertex.first(lambda one: one.metrics.get("splittable") is False)
        if scan is None:
            continue
        files, bytes_ = metric(scan.metrics, "numFiles"), metric(scan.metrics, "filesSize")
        idle_ms = idle_beside(job, vertex)
        if idle_ms and files and bytes_ / files >= LARGE:
            yield RULE.finding(
                f"{count(files, 'file')} of {size(bytes_)} cannot be split ({scan.metrics['format']}): "
                f"{count(len(vertex.tasks), 'task')} for {count(job.slots, 'slot')}",
                vertex,
                scan,
                idle_ms,
                "measured: the time for which slots idled while it was read",
                "measured",
                f"{scan.variable or 'df'}.write.parquet({beside(scan)})  "
                "# once, and read that; or files without gzip, or with several of them",
            )


RULE = Rule("unsplittable-files", _find, explains=frozenset({"too-few-tasks", "straggling-task"}))
