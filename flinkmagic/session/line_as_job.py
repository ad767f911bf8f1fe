"""Runs a line (an action, a write, the writes of a stream's batch) as a job.

1. If something of ours fails before a stage has run, plain Spark is to carry the line out, and the user is told.
2. What Spark raises in a stage is raised as the plain line raises it, with a note that names the line and the vertex.
3. Any other failure after a stage has run is our bug.
4. A failed job may be followed by another one that does without what made it fail; a cancelled job is not.
5. Whatever ends the wait for a job cancels the job, and is raised when the job has ended. This holds for a superstep of
   a loop, too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from flinkmagic.capturing.writes.sparks_errors import (
    failed_vertex,
    is_cancelled,
    release_log,
    say_where,
    sparks_own,
    withheld_log,
)
from flinkmagic.display.printable import lines_visible
from flinkmagic.errors.actions import ActionCancelledError, ActionFailedError, failed_in, ran_plainly
from flinkmagic.errors.base import add_note, is_from_signal
from flinkmagic.errors.capturing import NotDeployedError
from flinkmagic.errors.deployment import VertexFailedError
from flinkmagic.scheduling.job_status import JobStatus

if TYPE_CHECKING:
    from flinkmagic.scheduling.failover.exception_history import RootExceptionHistoryEntry


class RunningJob(Protocol):
    """What is needed of the job of a line (see `Job`)."""

    @property
    def status(self) -> JobStatus: ...

    def wait(self, timeout: float | None = None) -> JobStatus: ...

    def cancel(self) -> None: ...

    def release(self) -> None: ...

    def tasks(self) -> Sequence[object]: ...

    def finished_writes(self) -> Sequence[object]: ...

    def exceptions(self) -> Sequence[RootExceptionHistoryEntry]: ...


_Job = TypeVar("_Job", bound=RunningJob)


@dataclass(frozen=True)
class Line:
    """A line as messages name it."""

    text: str
    """The call as it was written, or what it does."""
    where: str
    called: str = ""
    """The JVM's method that plain PySpark calls for it, as py4j's errors name it: ``o45.count``; empty of several."""
    is_several: bool = False
    """Whether it represents several lines: an error then names the line of the vertex that failed."""

    def say_plain(self, cause: BaseException) -> None:
        """Tell the user that plain Spark has carried the line out, and why."""
        print(lines_visible(ran_plainly(self.text, self.where, cause)), file=sys.stderr)


def carry_out(
    line: Line,
    run: Callable[[], _Job],
    watch: Callable[[_Job], object],
    again: Callable[[_Job, BaseException], _Job | None],
) -> _Job:
    """Run the job of a line, and return it when it has finished.

    Parameters
    ----------
    run : callable
        Compiles and runs the job, and returns it immediately.
    again : callable
        Called with a failed job and its error; runs another one if that may succeed, else returns None.

    Raises
    ------
    NotDeployedError
        If plain Spark is to carry the line out; its cause says why.
    PySparkException, Py4JJavaError
        What Spark has raised.
    ActionCancelledError, ActionFailedError
        If the job was cancelled; if something of ours has failed.
    """
    job = _started(line, run)
    while True:
        wait_or_cancel(job, watch)
        error = root_error(job)
        if error is None or is_cancelled(error):
            break
        following = _started(line, lambda failed=job, error=error: again(failed, error))  # type: ignore[misc]
        if following is None:
            break
        job = following
    if job.status is not JobStatus.FINISHED:
        raise _failure(line, job)
    return job


def wait_or_cancel(job: _Job, watch: Callable[[_Job], object] = lambda _: None) -> None:
    """Wait for the end of a job (rule 5), after calling `watch` with it."""
    try:
        watch(job)
        job.wait()
    except BaseException:
        job.cancel()
        job.wait()
        raise


def root_error(job: RunningJob) -> BaseException | None:
    """Return the error that made a job fail; None if it has not failed."""
    entries = job.exceptions() if job.status is JobStatus.FAILED else ()
    return entries[-1].root.error if entries else None


_Started = TypeVar("_Started")


def _started(line: Line, run: Callable[[], _Started]) -> _Started:
    try:
        with withheld_log():
            return run()
    except Exception as error:
        if is_from_signal(error):
            raise
        raise NotDeployedError(line.text) from error


def _failure(line: Line, job: RunningJob) -> Exception:
    """Return the error of a job that has not finished (rules 1 to 3)."""
    failed = root_error(job)
    if failed is None:
        return ActionCancelledError(line.text, line.where)
    error = sparks_own(failed)
    if error is not failed:
        release_log(failed)
        of_vertex = failed.where if line.is_several and isinstance(failed, VertexFailedError) else ""
        vertex = failed_vertex(failed) or str(job.exceptions()[-1].root.task_name or "")
        if line.called:
            say_where(error, f"calling {line.called}")
        add_note(error, failed_in(of_vertex or line.where, vertex))
        assert isinstance(error, Exception)
        return error
    if job.tasks() or job.finished_writes():
        mistake = ActionFailedError(line.text, line.where, failed)
        mistake.__cause__ = failed
        return mistake
    refusal = NotDeployedError(line.text)
    refusal.__cause__ = failed.__cause__ if isinstance(failed, VertexFailedError) and failed.__cause__ else failed
    return refusal
