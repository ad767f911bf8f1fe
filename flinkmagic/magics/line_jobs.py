"""Keeps the jobs of the session mode: each belongs to a line of a cell, and to no graph that the notebook knows."""

from __future__ import annotations

import threading
import uuid
import weakref
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from flinkmagic import session
from flinkmagic.magics.cell import name_of_cell

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from flinkmagic.capturing.source_code.source_location import SourceLocation
    from flinkmagic.deployment.watching.call_work import CallWork
    from flinkmagic.display.findings import FindingsView
    from flinkmagic.magics.live_lines import Drawing, Drawn
    from flinkmagic.scheduling.dispatcher import JobDetails
    from flinkmagic.session import Job
    from flinkmagic.session.actions.action_report import ActionReport

MOST_JOBS = 200
"""How many finished jobs are known: more than a dispatcher remembers."""


_CANCEL_S = 10.0
"""Spark answers a call soon after its jobs are cancelled, unless what it does then takes long."""


@dataclass(frozen=True)
class LineJob:
    """A job of one line."""

    cell: str
    """The name of the cell: ``cell_3``."""
    place: str
    """The cell and the line."""
    job: Callable[[], Job | None]
    """Whoever runs the job holds it; its kept rows go with it. None of what Spark ran by itself."""

    def running(self) -> Job | None:
        """Return the job as long as it runs."""
        job = self.job()
        return None if job is None or job.status.is_terminal else job


@dataclass(frozen=True)
class LineWork:
    """What Spark runs for an action of one line itself."""

    cell: str
    """The name of the cell: ``cell_3``."""
    name: str
    """The action's method, the cell and the line."""
    work: CallWork
    """Its Spark jobs."""


class LineJobs:
    """Keeps the jobs that the lines of cells have needed; callable from any thread."""

    def __init__(self) -> None:
        self._jobs: dict[tuple[str, float], LineJob] = {}
        """By id and start, the oldest first: a line that runs again may have a job of the same id."""
        self._whole: dict[tuple[str, float], JobDetails] = {}
        """Of the same, what actions ran that are over: their jobs with the last stages, and what had no job."""
        self._drawings: dict[tuple[str, int], Drawing] = {}
        """By cell and line, the graphs of its last job that is over, the oldest first."""
        self._works: list[LineWork] = []
        self._lock = threading.Lock()

    def add(self, job: Job, number: int, location: SourceLocation) -> None:
        """Add the job of a line in the cell of that number."""
        self._add(job.details(), LineJob(name_of_cell(number), _place(number, location), weakref.ref(job)))

    def _add(self, details: JobDetails, known: LineJob) -> None:
        with self._lock:
            self._jobs[identity(details)] = known
            for key, one in list(self._jobs.items())[:-MOST_JOBS]:
                if one.running() is None:
                    del self._jobs[key]
                    self._whole.pop(key, None)

    def add_done(self, report: ActionReport, number: int) -> None:
        """Add what Spark has run for an action of the cell of that number itself, unless that was short."""
        events = report.work.events if report.work is not None else None
        if events is None:
            return
        from flinkmagic.graph.execution_state import ExecutionState
        from flinkmagic.scheduling.dispatcher import JobDetails
        from flinkmagic.scheduling.job_status import JobStatus

        done = sum(task.state is ExecutionState.FINISHED for task in events.tasks)
        tasks = len({(task.stage, task.subtask) for task in events.tasks})
        if report.is_driven and report.graph is not None:
            job = report.graph.jobs[-1].details()
            took_ms = events.ended_ms - job.start_ms
            done, tasks = job.finished_tasks + done, job.tasks + tasks
            whole = replace(job, duration_ms=took_ms, finished_tasks=done, tasks=tasks)
        else:
            took_ms, status = events.ended_ms - events.began_ms, JobStatus[report.status]
            whole = JobDetails(uuid.uuid4().hex, report.method, status, events.began_ms, took_ms, done, tasks)
            self._add(whole, LineJob(name_of_cell(number), _place(number, report.location), lambda: None))
        with self._lock:
            self._whole[identity(whole)] = whole

    def add_work(self, work: CallWork, method: str, number: int, location: SourceLocation) -> None:
        """Add what Spark runs for an action of the cell of that number; it is forgotten when it is over."""
        name = f"{method}, cell {number}, line {location.line_in_cell}"
        with self._lock:
            self._works = [one for one in self._works if not one.work.wait(0)]
            self._works.append(LineWork(name_of_cell(number), name, work))

    def add_drawings(self, number: int, drawings: Mapping[int, Drawing]) -> None:
        """Add what the lines of the cell of that number can be shown with, by their numbers."""
        cell = name_of_cell(number)
        with self._lock:
            for line, one in drawings.items():
                self._drawings.pop((cell, line), None)
                self._drawings[cell, line] = one
            for key in list(self._drawings)[:-MOST_JOBS]:
                del self._drawings[key]

    def drawn(self, cell: str) -> dict[int, Drawn]:
        """Return the graphs of a cell's lines, by their numbers."""
        with self._lock:
            known = {line: one for (name, line), one in self._drawings.items() if name == cell}
        return {line: one.drawn() for line, one in known.items()}

    def findings(self, cell: str | None) -> dict[str, FindingsView]:
        """Return why the last jobs of a cell's lines, or of all, took so long, by what they did and where."""
        with self._lock:
            known = [(*key, one) for key, one in self._drawings.items() if cell in (None, key[0])]
        drawn = [(name, line, one.drawn().snapshot) for name, line, one in known]
        return {
            f"{snapshot.name}, {name.replace('_', ' ')}, line {line}": snapshot.findings
            for name, line, snapshot in drawn
            if snapshot.findings is not None
        }

    def place(self, details: JobDetails) -> str | None:
        """Return the cell and the line of a job; None if the mode does not know the job."""
        known = self._known(details)
        return None if known is None else known.place

    def submitted(self, name: str | None) -> list[JobDetails]:
        """Return the jobs that the process knows by their own name, or by that of their cell; without a name all.

        What Spark ran for an action itself belongs to its job, or is one.
        """
        with self._lock:
            whole = dict(self._whole)
        jobs = {identity(job): job for job in session.submitted_jobs()} | whole
        found = [job for job in jobs.values() if name in (None, job.name) or self._is_in(job, name)]
        return sorted(found, key=lambda job: job.start_ms)

    def cancel(self, cell: str) -> list[str]:
        """Cancel what runs of a cell, be it an action's job or a write's; return what became of it, line by line.

        The list is empty if the mode knows no job of that cell.
        """
        with self._lock:
            known = [one for one in self._jobs.values() if one.cell == cell]
            works = [one for one in self._works if one.cell == cell and not one.work.wait(0)]
        running = [(one.place, job) for one in known if (job := one.running()) is not None]
        for _, job in running:
            job.cancel()
        for one in works:
            one.work.cancel()
        if running or works:
            ended = [f"{one.name}, is {'CANCELED' if one.work.wait(_CANCEL_S) else 'CANCELING'}." for one in works]
            return [f"{job.name}, {place}, is {job.wait()}." for place, job in running] + ended
        over = [job for job in self.submitted(None) if self._is_in(job, cell)]
        return [f"{job.name}, {self.place(job)}, is {job.status} already." for job in over[-1:]]

    def _is_in(self, details: JobDetails, cell: str | None) -> bool:
        known = self._known(details)
        return known is not None and known.cell == cell

    def _known(self, details: JobDetails) -> LineJob | None:
        with self._lock:
            return self._jobs.get(identity(details))


def _place(number: int, location: SourceLocation) -> str:
    return f"cell {number}, line {location.line_in_cell}"


def identity(details: JobDetails) -> tuple[str, float]:
    """Return what no other job of the process has: a line that runs again may have a job of the same id."""
    return details.job_id, details.start_ms
