"""Shows the card below a cell of the session mode: its actions and writes, while they run and afterwards.

What a line says is `display.card.CardLine`'s, and what fills it in while it runs is in `live_lines`.
A card is shown when something has happened, on the thread on which it has; but not twice within `UPDATE_S`, and not for
what is compiled within `COMPILE_S`. Updates left for later, and the progress of what runs, are shown by one thread that
all cards share (`_Clock`): a loop may have thousands of actions, and most are over in some milliseconds.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from contextvars import copy_context
from dataclasses import replace
from typing import TYPE_CHECKING

from IPython.display import DisplayHandle, display

from flinkmagic.capturing.hooks.current_capture import outside_captures
from flinkmagic.display.card import CardLine, card_bundle
from flinkmagic.magics.live_lines import Act, Drawing, LiveLine, from_other_kernel
from flinkmagic.magics.newest_shown import Newest
from flinkmagic.magics.terminal import RewrittenLine
from flinkmagic.session.actions.action_graph import first_finding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flinkmagic.capturing.capture_listener import ActionCall
    from flinkmagic.deployment.watching.call_work import CallWork
    from flinkmagic.display.card_widget import CardWidget
    from flinkmagic.history.call_run import CallRun
    from flinkmagic.magics.line_jobs import LineJobs
    from flinkmagic.session import CompiledGraph, Job
    from flinkmagic.session.actions.action_graph import ActionGraph
    from flinkmagic.session.actions.action_report import ActionReport

_LOG = logging.getLogger(__name__)

UPDATE_S = 0.1
"""The least time between two updates of a card."""

LOOK_S = 0.25
"""The time between two looks at what runs."""

COMPILE_S = 0.3
"""What takes longer to compile is shown from then on, although no job runs yet."""

WORK_S = 0.5
"""What Spark runs for an action itself is looked at from then on: a look costs several calls of the JVM."""

DRAW_S = 0.5
"""So long after a cell its graphs are drawn, unless somebody has looked: the next cell then waits for Spark, or for its
user."""


class CellCard:
    """Shows the card of one cell, and adds the jobs of its actions to `LineJobs`; without an action or a write there is
    no card.

    Parameters
    ----------
    in_notebook : bool
        Whether a front end shows rich output; else lines of text go to standard error.
    widget : bool
        Whether the front end shows widgets.
    number : int
        The cell's.
    """

    def __init__(self, *, in_notebook: bool, widget: bool, jobs: LineJobs, number: int) -> None:
        self._jobs, self._number = jobs, number
        self._in_notebook, self._has_widget = in_notebook, widget and in_notebook
        self._lines: dict[tuple[str, int], LiveLine] = {}
        self._works: list[Act] = []
        """What Spark runs for actions itself; some have no line, because they may be over soon."""
        self._lock = threading.RLock()
        self._shown_at = float("-inf")
        self._handle: DisplayHandle | None = None
        self._widget: CardWidget | None = None
        self._terminal = RewrittenLine("stderr")
        self._is_over = False
        self._drawings: list[Drawing] = []
        """Those that nobody may have looked at yet: they hold their jobs."""
        self._context = copy_context()
        """Names the cell to whose output the card belongs."""

    # -- what happens in the cell ------------------------------------------------------------------------

    def action_began(self, call: ActionCall) -> None:
        """Show that an action is compiled, unless that is over soon (`ActionListener`)."""
        self.begin(call.text, call.location.line_in_cell)

    def job_started(self, call: ActionCall, graph: ActionGraph, job: Job) -> None:
        """Follow the job of an action, which runs the last stage itself (`ActionListener`)."""
        self._jobs.add(job, self._number, call.location)  # before any of it is shown
        vertex = graph.last_vertex
        line = self._line(call)
        self.follow(line.act or Act(line), graph, job, (vertex.id, vertex.parallelism))

    def work_started(self, call: ActionCall, work: CallWork) -> None:
        """Follow what Spark runs for an action itself, unless it is over soon (`ActionListener`)."""
        self._jobs.add_work(work, call.method, self._number, call.location)
        with self._lock:
            line = self._line(call)
            act = line.act or Act(line)
            act.follow_work(work)
            self._works = [*(one for one in self._works if one.is_working()), act]
        _CLOCK.wake(self, act.work_since + WORK_S)

    def action_done(self, report: ActionReport) -> None:
        """Record what became of an action (`ActionListener`)."""
        self._jobs.add_done(report, self._number)
        alone, found = _ran_alone(report)
        plainly = f"plain Spark: {report.reason}" if report.is_left_to_spark and report.reason else ""
        note = "; ".join(filter(None, [plainly, report.note, *found]))
        at = _answered_at(report) if report.kept_at else ""
        stages = 1 if report.is_one_stage else report.stages - report.reused
        with self._lock:
            line = self._line(report)
            act = line.act or Act(line)
            act.end(report.status, report.seconds)
            if act.job is not None and report.is_driven:
                one = act.told()
            else:
                one = CardLine(
                    *line.key, seconds=report.seconds, stages=stages, answered=bool(at),
                    answered_at=at, saved_seconds=report.saved_seconds,
                )  # fmt: skip
            if alone is not None:
                act.alone, line.openable = alone, act
            self._end(act, replace(one, status=report.status, note=note))
        if alone is not None:
            OPENABLE_LINES.add((self, line))

    def rows_done(self, report: ActionReport, done: ActionReport) -> None:
        """Record what became of rows that an action has handed out (`ActionListener`)."""
        with self._lock:
            line = self._lines.get((report.text, report.location.line_in_cell))
            if line is None:  # its cell is over, and is told of
                return
            seconds = line.past.seconds + done.seconds - report.seconds
            note = line.past.note.replace(report.note, done.note)
            line.past = replace(line.past, status=done.status, seconds=seconds, note=note)
            self._changed()

    def begin(self, call: str, number: int) -> Act:
        """Show that an action or a write of a line is compiled from here on, unless that is over soon."""
        with self._lock:
            line = self._lines.setdefault((call, number), LiveLine(call, number))
            line.act = Act(line)
            self._changed(COMPILE_S)
            return line.act

    def drop(self, act: Act) -> None:
        """Stop showing that a write is compiled: it could not be, and plain Spark tells what becomes of it."""
        with self._lock:
            act.line.act = None
            if not act.line.past.times:
                self._lines = {key: line for key, line in self._lines.items() if line is not act.line}
            self._terminal.wipe()
            if self._handle is not None:
                self._show()

    def follow(self, act: Act, graph: CompiledGraph, job: Job, last_stage: tuple[str, int] | None = None) -> Act:
        """Show the job of an action or a write from here on; return what has the job.

        Parameters
        ----------
        last_stage : (str, int), optional
            The vertex that an action runs itself, and how many subtasks it has.
        """
        with self._lock:
            line = act.line
            act = act if act.job is None else act.again()
            act.job, act.graph, act.last_stage = job, graph, last_stage
            line.act = line.openable = act
            self._changed()
            _CLOCK.wake(self, time.monotonic() + LOOK_S)
        OPENABLE_LINES.add((self, line))
        return act

    def finish(self, act: Act, remarks: Sequence[str]) -> None:
        """Show how a write ended whose last job is over, and what else there is to say."""
        assert act.job is not None
        with self._lock:
            act.end(act.job.status.value, act.seconds)
            self._end(act, replace(act.told(), note="; ".join(remarks)))

    def left_to_spark(self, call: str, number: int, seconds: float, why: str) -> None:
        """Show a write that plain Spark has carried out, and why."""
        with self._lock:
            act = Act(self._lines.get((call, number)) or LiveLine(call, number))
            act.end("FINISHED", seconds)
            self._end(act, CardLine(call, number, "FINISHED", seconds=seconds, note=f"plain Spark: {why}"))

    def end(self) -> dict[int, Drawing]:
        """Show all, now that the cell is over; return the graphs of its lines' last jobs, by the numbers of the lines.

        A line whose job still runs has none, nor has one that newer ones have closed in a widget.
        """
        with self._lock:
            self._is_over = True
            if not self._runs():
                _CLOCK.forget(self)
            lines = list(self._lines.values())
            if not self._in_notebook:
                self._terminal.wipe()
                sys.stderr.write("".join(f"{line.shown.to_text()}\n" for line in lines))
                sys.stderr.flush()
                self._lines = {}  # a cell that turns the mode off ends twice
            for line in lines:
                line.settle()
            openable = {line.key[1]: line.openable.drawing for line in lines if line.openable is not None}
            if self._handle is not None:
                self._show()
            elif not self._in_notebook:
                for line in lines:
                    line.close()
        if self._widget is not None:
            OPEN_CARDS.add(self)
        drawings = {number: one for number, one in openable.items() if one is not None}
        self._drawings += drawings.values()
        if drawings:
            _CLOCK.wake(self, time.monotonic() + DRAW_S)
        return drawings

    def close(self) -> None:
        """Leave only what is saved."""
        with self._lock:
            if self._widget is None or self._handle is None:
                return
            widget, self._widget = self._widget, None
            self._handle.update(self._bundle(), raw=True)
            widget.close()
            for line in self._lines.values():
                line.close()

    def close_line(self, line: LiveLine) -> None:
        """Stop a line from being opened: newer ones are. Where none can be, only its job is let go of."""
        with self._lock:
            if not self._has_widget:
                line.settle()
                return
            line.close()
            if self._widget is not None:
                self._show()

    def tick(self) -> None:
        """Show what was left for later, and how far what runs is."""
        self._context.run(self._tick)

    # -- inside ------------------------------------------------------------------------------------------

    def _line(self, call: ActionCall | ActionReport) -> LiveLine:
        """Return the line of an action; it may not be shown yet."""
        key = call.text, call.location.line_in_cell
        return self._lines.get(key) or LiveLine(*key)

    def _end(self, act: Act, one: CardLine) -> None:
        self._lines.setdefault(act.line.key, act.line).end(act, one)
        act.line.update()
        self._changed()

    def _runs(self) -> bool:
        """Return whether there is progress to show."""
        acts = (line.act for line in self._lines.values())
        return any(act.is_working() for act in self._works) or any(act is not None and act.job for act in acts)

    def _tick(self) -> None:
        with outside_captures():  # what is asked of Spark is no call of the cell's
            while self._drawings:
                self._drawings.pop().drawn()
            if self._is_over and not self._runs():
                return
            begun = time.monotonic() - WORK_S
            seen = [act for act in self._works if act.work_since <= begun and act.look()]
            with self._lock:
                for act in seen:
                    if act.is_working():  # else it is told what has become of it
                        act.line = self._lines.setdefault(act.line.key, act.line)
                        act.line.act = act
                for line in self._lines.values():
                    line.update()
                self._show()
                if self._runs():
                    _CLOCK.wake(self, time.monotonic() + LOOK_S)

    def _changed(self, unless_over_in: float = 0.0) -> None:
        """Show the card now, or some seconds from now; but not twice within `UPDATE_S`."""
        now = time.monotonic()
        due = now if self._is_over else max(now + unless_over_in, self._shown_at + UPDATE_S)
        if due <= now:
            self._show()
        else:
            _CLOCK.wake(self, due)

    def _show(self) -> None:
        self._shown_at = time.monotonic()
        lines = list(self._lines.values())
        if not lines and self._handle is None:
            return
        if not self._in_notebook:
            running = [line for line in lines if line.act is not None] or lines
            if sys.stderr.isatty():
                self._terminal.write(running[-1].shown.to_text())
            return
        is_new = self._handle is None
        if self._handle is None:
            self._handle = self._begin()
        if self._widget is not None:
            self._widget.show(
                [line.shown for line in lines],
                [line.openable is not None for line in lines],
                [line.view.place if line.view is not None else "" for line in lines],
            )
        if self._is_over or (self._widget is None and not is_new):
            self._handle.update(self._bundle(), raw=True)

    def _begin(self) -> DisplayHandle:
        if self._has_widget:
            from flinkmagic.display.card_widget import CardWidget

            self._widget = CardWidget(self._open, self._cancel)
        made: DisplayHandle = display(self._bundle(), raw=True, display_id=True)
        return made

    def _bundle(self) -> dict[str, str]:
        bundle = card_bundle([line.shown for line in self._lines.values()])
        return self._widget.in_place_of(bundle) if self._widget is not None else dict(bundle)

    def _open(self, number: int) -> None:
        """Show the graphs of a line's last job, under the line."""
        with self._lock:
            list(self._lines.values())[number].open(lambda: self._cancel(number))
            self._show()

    def _cancel(self, number: int) -> None:
        act = list(self._lines.values())[number].act
        if act is not None:
            act.cancel()


class _Clock:
    """The thread on which cards show what they have left for later; it waits while there is nothing."""

    def __init__(self) -> None:
        self._due: dict[CellCard, float] = {}
        """By `time.monotonic`."""
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def wake(self, card: CellCard, at: float) -> None:
        """Let a card tick at a time, or earlier."""
        with self._changed:
            if at >= self._due.get(card, float("inf")):
                return
            self._due[card] = at
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="flinkmagic-cards", daemon=True)
                self._thread.start()
            else:
                self._changed.notify()

    def forget(self, card: CellCard) -> None:
        """Let a card tick no more."""
        with self._changed:
            self._due.pop(card, None)

    def _run(self) -> None:
        while True:
            card = self._next()
            try:
                card.tick()
            except Exception:  # noqa: BLE001 - the other cards go on
                _LOG.exception("a card could not be shown")

    def _next(self) -> CellCard:
        with self._changed:
            while True:
                card = min(self._due, key=self._due.__getitem__, default=None)
                if card is not None and self._due[card] <= time.monotonic():
                    del self._due[card]
                    return card
                self._changed.wait(None if card is None else self._due[card] - time.monotonic())


_CLOCK = _Clock()

OPEN_CARDS: Newest[CellCard] = Newest(12, CellCard.close)
"""These stay widgets; the older ones are only what is saved of them."""

OPENABLE_LINES: Newest[tuple[CellCard, LiveLine]] = Newest(20, lambda one: one[0].close_line(one[1]))
"""The lines, of all cards, that can be opened, or have findings when their cell ends: each holds its last job."""


def _ran_alone(report: ActionReport) -> tuple[CallRun | None, list[str]]:
    """Return what Spark ran for an action that had no job, and what lost its time; nothing of what was short."""
    if report.work is None or report.work.events is None or report.is_driven:
        return None, []
    from flinkmagic.history.call_run import CallRun
    from flinkmagic.history.event_log import WRONG

    place = report.location.called_from or report.location
    try:
        run = CallRun(report.work.events, report.method, place.code, place.cell, place.line)
        return run, first_finding(run.findings, run.elapsed_ms)
    except WRONG as error:  # the action has its answer, whatever this version of Spark reports
        _LOG.warning("What Spark reported of %s could not be read, so it has no findings: %r", report.text, error)
        return None, []


def _answered_at(report: ActionReport) -> str:
    """Return when an answer was computed: here, or by another kernel, which may be days ago."""
    if not report.is_from_other_kernel:
        return time.strftime("as at %H:%M:%S", time.localtime(report.kept_at))
    return from_other_kernel(report.kept_at)
