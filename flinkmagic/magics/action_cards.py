"""The card under a cell of the session mode: what its actions and writes took, and are taking."""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from IPython.display import DisplayHandle, display

from flinkmagic.capturing.hooks.current import apart
from flinkmagic.display.action_lines import ActionLine, card_bundle
from flinkmagic.magics.card_lines import Act, CardLine
from flinkmagic.magics.live_view import follow_beside
from flinkmagic.magics.terminal import RewrittenLine
from flinkmagic.session import CompiledGraph, Job

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flinkmagic.capturing.capture_listener import ActionCall
    from flinkmagic.deployment.watching.call_work import CallWork
    from flinkmagic.display.action_card import ActionCard
    from flinkmagic.session.actions.action_graph import ActionGraph
    from flinkmagic.session.actions.action_report import ActionReport

UPDATE_S = 0.1
"""Between two updates of a card at least: a loop may have thousands of actions."""

COMPILE_S = 0.3
"""What takes longer to compile is shown from then on, although no job runs yet."""

WORK_S = 0.5
"""Between two looks at what Spark runs for an action itself; most actions are over before the first."""

MAX_OPEN = 12
"""This many cards stay widgets; the older ones are only what is saved of them."""

MAX_GRAPHS = 20
"""This many lines, of all cards, can be opened: each holds its last job."""


class CellCard:
    """The card of one cell; without an action or a write there is none.

    Parameters
    ----------
    in_notebook : bool
        Whether a front end shows rich output; else lines of text go to standard error.
    widget : bool
        Whether it shows widgets.
    """

    def __init__(self, *, in_notebook: bool, widget: bool) -> None:
        self._in_notebook, self._has_widget = in_notebook, widget
        self._lines: dict[tuple[str, int], CardLine] = {}
        self._lock = threading.RLock()
        self._shown_at = float("-inf")
        self._handle: DisplayHandle | None = None
        self._widget: ActionCard | None = None
        self._terminal = RewrittenLine("stderr")
        self._late: threading.Timer | None = None
        self._is_over = False

    # -- what happens in the cell ------------------------------------------------------------------------

    def action_began(self, call: ActionCall) -> None:
        """Show that an action is compiled, unless that is over soon (`ActionListener`)."""
        self.begin(call.text, _number(call))

    def job_started(self, call: ActionCall, graph: ActionGraph, job: Job) -> None:
        """Follow the job of an action, which is still to say what became of it (`ActionListener`)."""
        vertex = graph.last_vertex
        last_stage = vertex.id, vertex.parallelism
        follow_beside(job, self.follow(call.text, _number(call), graph, job, last_stage))

    def work_started(self, call: ActionCall, work: CallWork) -> None:
        """Follow what Spark runs for an action itself, unless it is over soon (`ActionListener`)."""
        with self._lock:
            line = self._lines.get((call.text, _number(call)))
            act = Act() if line is None or line.act.status else line.act
            if line is not None:
                line.work, line.act = work, act
        # The context has the cell to whose output the card belongs.
        follow = partial(copy_context().run, self._follow_work, call.text, _number(call), work, act)
        threading.Thread(target=follow, name=f"flinkmagic-card-{call.method}", daemon=True).start()

    def action_done(self, report: ActionReport) -> None:
        """Note what became of an action (`ActionListener`)."""
        notes = [f"plain Spark: {report.reason}" if report.is_left_to_spark and report.reason else "", report.note]
        note = "; ".join(filter(None, notes))
        at = time.strftime("%H:%M:%S", time.localtime(report.kept_at)) if report.kept_at else ""
        stages = 1 if report.is_one_stage else report.stages - report.reused
        line = self._line(report.text, _number(report))
        with self._lock:
            if line.act.status:  # that of an earlier one: this one was not compiled
                line.act = Act()
            line.act.end(report.status, report.seconds)
            one = line.of(line.act)
        if line.act.job is None or not report.is_driven:
            one = ActionLine(
                report.text, _number(report), seconds=report.seconds, stages=stages, answered=bool(at), answered_at=at,
                saved_seconds=report.saved_seconds,
            )  # fmt: skip
        self.finish(line, replace(one, status=report.status, note=note))

    def rows_done(self, report: ActionReport, done: ActionReport) -> None:
        """Note what became of rows that an action has handed out (`ActionListener`)."""
        with self._lock:
            line = self._lines.get((report.text, _number(report)))
            if line is None:  # its cell is over, and is told of
                return
            seconds = line.total.seconds + done.seconds - report.seconds
            note = line.total.note.replace(report.note, done.note)
            line.total = replace(line.total, status=done.status, seconds=seconds, note=note)
            self._update(line)
            if self._is_over and self._handle is not None:
                self._handle.update(self._bundle(), raw=True)

    def begin(self, call: str, line: int) -> None:
        """Show that an action or a write of a line is compiled from here on, unless that is over soon."""
        with self._lock:
            found = self._line(call, line)
            found.begin()
            if self._handle is None and self._in_notebook:
                self._show_after(COMPILE_S)
            else:
                self._update(found)

    def drop(self, call: str, line: int) -> None:
        """Show no more that a write is compiled: it could not be, and plain Spark tells what becomes of it."""
        with self._lock:
            found = self._line(call, line)
            found.running = None
            if not found.total.times:
                del self._lines[call, line]
            self._terminal.wipe()
            if self._handle is not None:
                self._show()

    def follow(
        self, call: str, line: int, graph: CompiledGraph, job: Job, last_stage: tuple[str, int] | None = None
    ) -> FollowedJob:
        """Show the job of an action or a write from here on; an action runs the last stage itself."""
        found = self._line(call, line)
        with self._lock:
            act = found.act if found.act.job is None else found.act.again()
            act.job, act.last_stage, found.act, found.running = job, last_stage, act, ActionLine(call, line)
            if self._opens:
                act.graph, found.openable, found.pictures = graph, act, None
            self._update(found)
        if self._opens:
            _remember(self, found)
        return FollowedJob(self, found)

    def end(self) -> None:
        """Show all, now that the cell is over."""
        with self._lock:
            if self._late is not None:
                self._late.cancel()
                self._late = None
            self._is_over = True
            if not self._lines and self._handle is None:
                return
            if not self._in_notebook:
                self._terminal.wipe()
                sys.stderr.write("".join(f"{line.shown.to_text()}\n" for line in self._lines.values()))
                sys.stderr.flush()
                self._lines.clear()  # a cell that turns the mode off ends twice
                return
            if self._handle is None:
                return
            if self._widget is not None:
                for line in self._lines.values():
                    line.settle()
            self._show()
            self._handle.update(self._bundle(), raw=True)
        if self._widget is not None:
            _keep(self)

    def close(self) -> None:
        """Leave only what is saved."""
        with self._lock:
            if self._widget is None or self._handle is None:
                return
            widget, self._widget = self._widget, None
            self._handle.update(self._bundle(), raw=True)
            widget.close()
            for line in self._lines.values():
                line.let_go()

    def forget(self, line: CardLine) -> None:
        """Let a line not be opened any more: newer ones are."""
        with self._lock:
            line.let_go()
            if self._widget is not None:
                self._show()

    def _follow_work(self, call: str, number: int, work: CallWork, act: Act) -> None:
        with apart():  # what it asks Spark is no call of the cell's
            while not work.wait(WORK_S) and (progress := work.progress()) is not None:
                with self._lock:
                    if work.wait(0):
                        return
                    line = self._line(call, number)
                    line.work, line.act, act.progress = work, act, progress
                    line.running = line.of(act)
                    line.show(act)
                    self._update(line)

    # -- inside ------------------------------------------------------------------------------------------

    @property
    def _opens(self) -> bool:
        return self._has_widget and self._in_notebook

    def _line(self, call: str, number: int) -> CardLine:
        with self._lock:
            return self._lines.setdefault((call, number), CardLine(call, number))

    def change(self, line: CardLine, act: Act) -> None:
        """Show the progress of a line's action or write, unless another one has followed it."""
        with self._lock:
            line.show(act)
            if line.running is not None and line.act is act:
                line.running = line.of(act)
                self._update(line)

    def finish(self, line: CardLine, one: ActionLine) -> None:
        """Show what an action or a write of a line has come to."""
        with self._lock:
            line.add(one)
            line.show(line.act)
            self._update(line)

    def _update(self, line: CardLine) -> None:
        if not self._in_notebook:
            if sys.stderr.isatty():
                self._terminal.write(line.shown.to_text())
            return
        now = time.monotonic()
        if self._handle is None:
            self._begin()
        elif now - self._shown_at < UPDATE_S:
            self._show_after(UPDATE_S)  # the cell may go on without Spark
            return
        self._shown_at = now
        self._show()

    def _show_after(self, seconds: float) -> None:
        if self._late is None:
            # The context has the cell to whose output the card belongs.
            self._late = threading.Timer(seconds, copy_context().run, (self._show_late,))
            self._late.daemon = True
            self._late.start()

    def _show_late(self) -> None:
        with self._lock:
            if self._late is None:  # the cell is over, and has shown all
                return
            self._late = None
            self._shown_at = time.monotonic()
            if self._handle is None:
                self._begin()
            self._show()

    def _begin(self) -> None:
        if self._has_widget:
            from flinkmagic.display.action_card import ActionCard

            self._widget = ActionCard(self._open, self._cancel)
        self._handle = display(self._bundle(), raw=True, display_id=True)

    def _bundle(self) -> dict[str, str]:
        bundle = card_bundle([line.shown for line in self._lines.values()])
        return self._widget.in_place_of(bundle) if self._widget is not None else dict(bundle)

    def _show(self) -> None:
        lines = list(self._lines.values())
        if self._widget is not None:
            self._widget.show(
                [line.shown for line in lines],
                [line.can_open for line in lines],
                [line.view.place if line.view is not None else "" for line in lines],
            )
        elif self._handle is not None:
            self._handle.update(self._bundle(), raw=True)

    def _open(self, number: int) -> None:
        """Show the graphs of a line's last job, under the line."""
        from flinkmagic.display.widget import JobView

        with self._lock:
            line = list(self._lines.values())[number]
            if not line.can_open or line.view is not None:
                return
            views, snapshot = line.draw()
            line.viewed = line.openable
            line.view = JobView(views, snapshot=snapshot, on_cancel=lambda: self._cancel(number))
            self._show()

    def _cancel(self, number: int) -> None:
        list(self._lines.values())[number].cancel()


class FollowedJob:
    """The progress of one job on its line (`live_view.Shown`).

    Parameters
    ----------
    card : CellCard
        The card.
    line : CardLine
        Its line.
    """

    def __init__(self, card: CellCard, line: CardLine) -> None:
        self._card, self._line, self._act = card, line, line.act

    def update(self) -> None:
        """Show the job's progress now."""
        self._card.change(self._line, self._act)

    def end(self) -> None:
        """Show what the job has come to; an action goes on then."""
        self.update()

    def finish(self, remarks: Sequence[str]) -> None:
        """Show what a write has come to whose last job this is, and what else there is to say."""
        job = self._act.job
        assert job is not None
        self._act.end(job.status.value, self._act.seconds)
        self._card.finish(self._line, replace(self._line.of(self._act), note="; ".join(remarks)))


_open_cards: deque[CellCard] = deque()
_openable: deque[tuple[CellCard, CardLine]] = deque()
_LOCK = threading.Lock()


def _keep(card: CellCard) -> None:
    with _LOCK:
        if card in _open_cards:  # a cell that turns the mode off ends twice
            _open_cards.remove(card)
        _open_cards.append(card)
        gone = [_open_cards.popleft() for _ in range(len(_open_cards) - MAX_OPEN)]
    for one in gone:
        one.close()


def _remember(card: CellCard, line: CardLine) -> None:
    """Let the lines be opened whose jobs are the last ones."""
    with _LOCK:
        if (card, line) in _openable:
            _openable.remove((card, line))
        _openable.append((card, line))
        gone = [_openable.popleft() for _ in range(len(_openable) - MAX_GRAPHS)]
    for its_card, one in gone:
        its_card.forget(one)


def _number(call: ActionCall | ActionReport) -> int:
    return (call.location.called_from or call.location).line
