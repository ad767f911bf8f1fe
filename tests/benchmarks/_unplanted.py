"""What is found in jobs in which nobody has planted a fault: the tutorials, the ordinary notebooks, TPC-H's queries.

A kernel tells it itself: `record` is called in its first cell.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flinkmagic.session.findings.facts import median, took_ms
from flinkmagic.session.job import Job

if TYPE_CHECKING:
    from flinkmagic.session.findings.facts import JobFacts

RECORD = """
from pathlib import Path
from tests.benchmarks import _unplanted
_unplanted.record(Path({path!r}), get_ipython())
"""


@dataclass(frozen=True)
class JobFound:
    """A job of which a task has run, and what was found in it."""

    source: str
    """The notebook, or the query."""
    job: str
    elapsed_s: float
    slots: int
    findings: tuple[dict[str, Any], ...]
    """Each as `Finding.to_dict`."""
    facts: tuple[str, ...]
    """What a reader needs to judge them: a line for the job, for each vertex and for each operator."""


def job_found(source: str, job: Job) -> JobFound | None:
    """Return what is found in a job that is over; None of a stream, and of one of which no task has run."""
    path = job.critical_path()
    if path is None:
        return None
    facts, found = job._facts(), job.findings()
    told = (f"{job.name}: {path}", *_lines(facts)) if found else ()
    return JobFound(source, job.name, path.elapsed_s, facts.slots, tuple(one.to_dict() for one in found), told)


def _lines(job: JobFacts) -> Iterator[str]:
    for vertex in job.vertices:
        times = sorted(map(took_ms, vertex.tasks))
        yield (
            f"{vertex.name} [{vertex.kind}] from {vertex.start_ms - job.started_ms:.0f} to "
            f"{vertex.end_ms - job.started_ms:.0f} ms, {len(times)} tasks of {times[0] if times else 0:.0f} to "
            f"{times[-1] if times else 0:.0f} ms (median {median(times):.0f}), run {vertex.run_ms:.0f} ms, "
            f"{vertex.rows_in:,} rows and {vertex.bytes_in:,} bytes in, {sum(vertex.written):,} bytes shuffled"
        )
        for one in (*vertex.operators, *([vertex.above] if vertex.above is not None else [])):
            yield f"    {one.operator or one.kind or one.text} (line {one.line}): {one.text:.100} {dict(one.metrics)}"


def record(path: Path, shell: Any) -> None:
    """Append what is found in each job of this process to a file, a JSON object a line, when its cell is over.

    The file is called after the notebook.

    Until then the job is held, so the rows that it keeps are, too.
    """
    running: list[Job] = []
    begin = Job.__init__

    @functools.wraps(begin)
    def began(self: Job, *arguments: Any, **options: Any) -> None:
        begin(self, *arguments, **options)
        running.append(self)

    def told(*_: Any) -> None:
        done = [job for job in running if job.status.is_terminal]
        running[:] = [job for job in running if job not in done]
        with path.open("a", encoding="utf-8") as target:
            for one in filter(None, (job_found(path.stem, job) for job in done)):
                target.write(json.dumps(asdict(one)) + "\n")

    Job.__init__ = began  # type: ignore[method-assign]
    shell.events.register("post_run_cell", told)


def recorded(path: Path) -> Iterator[JobFound]:
    """Yield what `record` has written."""
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        yield JobFound(**json.loads(line))
