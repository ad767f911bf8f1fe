"""A run as plain values, which hold nothing of Spark's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flinkmagic.display import GraphView, JobSnapshot
from flinkmagic.errors.usage import NoSuchRunError
from flinkmagic.scheduling.dispatcher import JobDetails


@dataclass(frozen=True)
class RecordedRun:
    """A run of a graph, as it is shown and compared. Made by `Job.record`."""

    number: int
    """Counted from 1 over all runs of that name in the process."""
    part: str
    """How much of its graph it ran, if that is not all: ``"1 of 3 sinks"``."""
    details: JobDetails
    views: tuple[GraphView, ...]
    """Its graphs, without states."""
    snapshot: JobSnapshot
    """How far it came, with what lost its time."""

    @property
    def label(self) -> str:
        """Its number, and how much of its graph it ran."""
        return f"{self.number} ({self.part})" if self.part else str(self.number)

    @property
    def job_view(self) -> GraphView:
        """The view of its job graph."""
        return next(view for view in self.views if view.kind == "job")


def numbered(name: str, runs: Sequence[RecordedRun], number: int) -> RecordedRun:
    """Return the run of a number.

    Raises
    ------
    NoSuchRunError
        If there is none.
    """
    for run in runs:
        if run.number == number:
            return run
    raise NoSuchRunError(name, number, [run.number for run in runs])
