"""Presents the Spark jobs that a call of the user's ran by itself as one job, as if read from an event log."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial

from flinkmagic.amounts import cut
from flinkmagic.deployment.watching.call_events import CallEvents
from flinkmagic.display.snapshot import JobSnapshot
from flinkmagic.history.event_log import reported
from flinkmagic.history.logged_run import LoggedRun
from flinkmagic.session.findings.facts import JobFacts, VertexFacts
from flinkmagic.session.findings.texts import findings_view
from flinkmagic.session.vertex_measures import vertex_measures

_MOST_WORDS = 60


class CallRun(LoggedRun):
    """The Spark jobs of one call.

    Parameters
    ----------
    code, cell, line : str, str, int
        The line with the call, and where it is. Spark plans the call as a whole: this is the line of all that it does.
    """

    def __init__(self, events: CallEvents, name: str, code: str, cell: str, line: int) -> None:
        app = reported(events)
        executions = sorted(app.executions.values(), key=lambda one: one.id)
        super().__init__(app, name, cut(code, _MOST_WORDS), executions, list(app.jobs.values()))
        self._events = events
        self._code, self._cell, self._line = code, cell, line

    @property
    def started_ms(self) -> float:
        return self._events.began_ms

    @property
    def ended_ms(self) -> float:
        return self._events.ended_ms

    @cached_property
    def facts(self) -> JobFacts:
        found = super().facts
        # Spark numbers the jobs of a driver from 0.
        is_first = any(job.id == 0 for job in self.jobs)
        return replace(found, vertices=tuple(map(self._at_its_line, found.vertices)), is_first=is_first)

    def _at_its_line(self, vertex: VertexFacts) -> VertexFacts:
        at = partial(replace, code=self._code, cell=self._cell, line=self._line)
        return replace(vertex, operators=tuple(map(at, vertex.operators)))

    def explained(self) -> JobSnapshot:
        """Return how it ended, what lost time in it, and where the time of its vertices went."""
        return replace(
            self.snapshot,
            findings=findings_view(self.findings(), self.critical_path()),
            measures={vertex.id: vertex_measures(vertex, None) for vertex in self.facts.vertices},
        )
