"""Tells what is in an event log: as text, as HTML for a notebook, as a page of its own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from flinkmagic.amounts import count, cut, duration, moment
from flinkmagic.display import palette
from flinkmagic.display.page import document, escaped, section, table_row, to_html
from flinkmagic.display.printable import lines_visible
from flinkmagic.display.text import aligned
from flinkmagic.history.event_files import find_logs
from flinkmagic.history.event_log import Application, read_application
from flinkmagic.history.logged_run import LoggedRun, logged_runs
from flinkmagic.session.findings.texts import finding_line, findings_text

MOST_ROWS = 1000
"""A table lists so many jobs at most: the longest ones."""
MOST_WORDS = 160
"""How much of a job's description is shown."""

_BREAK = re.compile(r"\s*<br ?/?>\s*|\s*\n(?=(?:id|runId|batch) = )")
"""Where a description begins a new line: Spark's UI shows HTML. That of a stream's batch has one for each of its words,
as text in 3.5.9 and 4.3.0."""


class History:
    """An application, ready to be shown.

    Parameters
    ----------
    shown : int
        For so many jobs, the longest ones, graphs, critical path and findings are shown.
    """

    def __init__(self, app: Application, shown: int) -> None:
        self.app = app
        self.runs = logged_runs(app)
        longest = sorted(self.runs, key=lambda run: -run.elapsed_ms)
        self._listed = set(longest[:MOST_ROWS])
        self._shown = set(longest[:shown])

    @property
    def heading(self) -> str:
        """The application, its Spark, how long it was there."""
        app = self.app
        parts = [app.id, f"Spark {app.spark_version}" if app.spark_version else ""]
        parts += [f"from {moment(app.started_ms / 1000)}, {duration(app.last_ms - app.started_ms)}"]
        parts += [f"{count(len(self.runs), 'job')} of {count(sum(run.n_tasks for run in self.runs), 'task')}"]
        return ", ".join(filter(None, parts))

    @property
    def shown(self) -> list[LoggedRun]:
        """The jobs that are shown with all that is known of them, oldest first."""
        return [run for run in self.runs if run in self._shown]

    def rows(self) -> list[tuple[str, ...]]:
        """Return a row for each job: name, state, when it began, how long it took, tasks, description."""
        return [
            (
                run.name,
                run.status,
                f"+{duration(run.started_ms - self.app.started_ms)}",
                duration(run.elapsed_ms),
                str(run.n_tasks),
                _words(run),
            )
            for run in self.runs
            if run in self._listed
        ]

    @property
    def notes(self) -> list[str]:
        """What was left out, here and while the log was read."""
        left_out = len(self.runs) - len(self._listed)
        return [*self.app.notes, *([f"{left_out:,} shorter jobs are not listed"] if left_out else [])]

    def to_text(self) -> str:
        """Return a table of the jobs; then findings and critical path of those that are shown."""
        lines = [f"{self.app.name}: {self.heading}", *(f"! {note}" for note in self.notes)]
        lines += aligned([_COLUMNS, *self.rows()])
        for run in self.shown:
            lines += [
                "",
                *(f"! {note}" for note in run.notes),
                findings_text(f"{run.name} ({_words(run)})", run.findings(), run.critical_path()),
            ]
        return lines_visible("\n".join(lines))

    def to_html(self) -> str:
        """Return the same as HTML, with pictures."""
        head = f'<h2 style="margin:16px 0 4px">{escaped(self.app.name)}</h2><div>{escaped(self.heading)}</div>'
        notes = "".join(f"<div>⚠ {escaped(note)}</div>" for note in self.notes)
        table = "".join(table_row("td", row) for row in self.rows())
        table = f'<table style="border-collapse:collapse;margin:8px 0">{table_row("th", _COLUMNS)}{table}</table>'
        return head + notes + table + "".join(map(_section, self.shown))


def histories(path: Path, shown: int) -> list[History]:
    """Read the logs of a file or folder.

    Parameters
    ----------
    shown : int
        As in `History`.

    Raises
    ------
    NoEventLogError, UnreadableLogError, LogCodecError
        As `find_logs` and `read_application` do.
    """
    return [History(read_application(log), shown) for log in find_logs(path)]


_STYLE = f"""
body {{ margin: 24px auto; max-width: 1200px; padding: 0 16px; font: 13px/1.5 {palette.SANS}; }}
"""
_COLUMNS = ("job", "state", "began", "took", "tasks", "what")


def page(histories: Sequence[History]) -> str:
    """Return a page of its own for some applications."""
    title = ", ".join(history.app.name for history in histories)
    return document(f"{title}: history", "".join(history.to_html() for history in histories), _STYLE)


def _section(run: LoggedRun) -> str:
    path = run.critical_path()
    notes = [f"{number}. {finding_line(one)}" for number, one in enumerate(run.findings(), start=1)]
    inside = to_html(
        run.views(),
        summary=_words(run),
        snapshot=run.snapshot,
        notes=[*run.notes, *([str(path)] if path is not None else []), *notes],
    )
    return section(f"{run.name}: {duration(run.elapsed_ms)}, {_words(run)}", inside)


def _words(run: LoggedRun) -> str:
    return cut(" ".join(_BREAK.sub(" · ", run.description).split()), MOST_WORDS)
