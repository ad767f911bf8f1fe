"""The card under a cell of the session mode."""

from __future__ import annotations

import gc
import io
import itertools
import json
import re
import sys
import threading
import time
from typing import Any

import pytest

from flinkmagic.display.snapshot import STATE_NAMES
from flinkmagic.magics import cell_card
from flinkmagic.magics.line_jobs import LineJobs

_ROWS = itertools.count(1000)


def grouped() -> str:
    """A definition that no test before has run: nothing of it is kept."""
    return f"g = spark.range({next(_ROWS)}).selectExpr('id', 'id % 3 AS k').groupBy('k').count()"


TIME = r"\d+(\.\d)? m?s"


@pytest.fixture
def on(notebook: Any, tmp_path: Any, monkeypatch: Any) -> Any:
    """A notebook with the mode on, and `at`, its folder; rich output is shown."""
    monkeypatch.setattr("flinkmagic.magics.live.in_notebook", lambda: True)
    for newest in (cell_card.OPEN_CARDS, cell_card.OPENABLE_LINES):  # else those of earlier tests are let go of here
        monkeypatch.setattr(newest, "_held", [])
    notebook.names["at"] = str(tmp_path)
    notebook.run(f"%flinkgraph on\n{grouped()}")
    yield notebook
    notebook.run("%flinkgraph off")


def card(cell: Any) -> list[str]:
    bundle = cell.displays[-1]  # the others are what it was before
    assert set(bundle) == {"text/plain", "text/html"}
    return bundle["text/plain"].splitlines()


def test_a_cell_without_an_action_has_no_card(on) -> None:
    assert on.run("h = g.where('k > 0')").displays == []


def test_each_action_and_write_is_a_line(on) -> None:
    cell = on.run("n = g.count()\nspark.range(3).collect()\n\ng.write.json(f'{at}/out')\ng.toPandas()")
    found = card(cell)
    assert re.fullmatch(rf"count\(\) · line 1 · 3 stages, \d+ tasks · {TIME}", found[0])
    assert re.fullmatch(rf"collect\(\) · line 2 · 1 stage · {TIME}", found[1])
    assert re.fullmatch(rf"write\.json\(.*out.*\) · line 4 · 2 stages, \d+ tasks · {TIME}.*", found[2])
    assert re.fullmatch(rf"toPandas\(\) · line 5 · \d stages?.* · {TIME}.*", found[3])
    assert len(cell.value) == 3


@pytest.mark.long
def test_a_loop_is_one_line_with_sums(on) -> None:
    cell = on.run("for number in range(20):\n    spark.range(number + 1).count()")
    (line,) = card(cell)
    assert re.fullmatch(rf"count\(\) · line 2 · 20 times · 40 stages, 60 tasks · {TIME}", line)


def test_actions_that_are_over_soon_start_no_thread(on, monkeypatch) -> None:
    on.run("spark.range(3).collect()")
    started, start = [], threading.Thread.start

    def noted(thread: threading.Thread) -> None:
        started.append(thread.name)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", noted)
    on.run("for number in range(5):\n    spark.range(number + 1).collect()")
    assert set(started) <= {"flinkmagic-cards"}, "which all cards share"
    assert len(started) <= 1


def test_what_was_reused_and_what_it_saved_is_told(on) -> None:
    for number in range(3):
        last = on.run(f"g.groupBy('count').agg({{'k': 'max'}}).where('count > {number}').collect()")
    (line,) = card(last)
    assert re.search(r"reused \d stages?, saved " + TIME, line)


def test_what_is_answered_again_is_told(on) -> None:
    first = on.run("g.count()")
    again = on.run("for _ in range(2):\n    g.count()")
    assert "answered" not in card(first)[0]
    (line,) = card(again)
    assert re.fullmatch(rf"count\(\) · line 2 · 2 times · {TIME} · answered as at \d\d:\d\d:\d\d, saved {TIME}", line)


def test_a_failure_is_told_and_raised(on) -> None:
    cell = on.run("g.selectExpr('raise_error(string(k))').collect()")
    assert cell.error is not None
    assert re.fullmatch(rf"✗ collect\(\) · line 1 · FAILED · .*{TIME}", card(cell)[0])


def test_hostile_text_of_a_call_is_text(on) -> None:
    cell = on.run("g.where(\"'<img src=x onerror=alert(1)>' != 'y'\").count()")
    assert "<img" not in cell.displays[-1]["text/html"]


def test_in_a_terminal_lines_of_text_follow_the_cell(notebook) -> None:
    notebook.run(f"%flinkgraph on\n{grouped()}")
    cell = notebook.run("for number in range(3):\n    g.count()\nspark.range(2).collect()")
    notebook.run("%flinkgraph off")
    first, second = cell.stderr.splitlines()
    assert first.startswith("count() · line 2 · 3 times · ")
    assert second.startswith("collect() · line 3 · 1 stage · ")


def test_in_a_terminal_lines_have_findings_and_graphs_and_hold_no_job(notebook, monkeypatch, tmp_path) -> None:
    notebook.names["at"] = str(tmp_path)
    monkeypatch.setattr(cell_card.OPENABLE_LINES, "most", 1)
    notebook.run(f"%flinkgraph on\n{grouped()}")
    known = notebook.shell.magics_manager.magics["line"]["flinkjobs"].__self__.line_jobs
    number = notebook.shell.execution_count
    notebook.run("n = g.count()\ng.write.json(f'{at}/out')")
    notebook.run("%flinkgraph off")
    told = notebook.run(f"%flinkjobs cell_{number} --findings").stdout.splitlines()
    paths = [line.partition(": of ")[0] for line in told if "is the critical path" in line]
    assert paths == [f"count, cell {number}, line 1", f"cell_{number}, cell {number}, line 2"]
    shown = notebook.run(f"%flinkshow cell_{number} --run 2").stdout.splitlines()
    assert shown[0] == "line 2"
    assert {line.split("  ")[-1] for line in shown[1:]} > {"bytes out"}
    gc.collect()
    assert [one.job() for one in known._jobs.values() if one.cell == f"cell_{number}"] == [None, None]


def test_an_action_of_one_stage_has_a_graph_and_findings_and_is_listed(notebook, monkeypatch) -> None:
    monkeypatch.setattr("flinkmagic.deployment.watching.call_work.RECORDED_S", 0.0)
    notebook.run("%flinkgraph on\nfrom pyspark.sql import SparkSession\nspark = SparkSession.getActiveSession()")
    number = notebook.shell.execution_count
    notebook.run("rows = spark.range(0, 1000, 1, 3).selectExpr('id * 2 AS x').collect()")
    notebook.run("%flinkgraph off")
    (first, *_) = notebook.run(f"%flinkjobs cell_{number} --findings").stdout.splitlines()
    assert first.startswith(f"collect, cell {number}, line 1: of ")
    _, row = notebook.run(f"%flinkjobs cell_{number}").stdout.splitlines()
    assert re.fullmatch(rf"collect  cell {number}, line 1  FINISHED  [\d.]+ m?s +3/3", row), row
    shown = notebook.run(f"%flinkshow cell_{number}").stdout
    assert "result" in shown


def test_a_terminal_keeps_nothing_of_a_write_that_could_not_be_compiled(monkeypatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(cell_card, "COMPILE_S", 0.0)
    shown = cell_card.CellCard(in_notebook=False, widget=False, jobs=LineJobs(), number=2)
    write = shown.begin("write.parquet('out')", 2)
    assert "COMPILING" in terminal.getvalue()
    shown.drop(write)
    shown.end()
    assert set(terminal.getvalue().split("\r")[-2]) == {" "}  # over what stood there
    assert terminal.getvalue().endswith("\r")


def test_a_cell_that_turns_the_mode_off_tells_its_lines_once(notebook) -> None:
    notebook.run(f"%flinkgraph on\n{grouped()}")
    cell = notebook.run("g.count()\n%flinkgraph off\n1 + 1")
    assert cell.stderr.count("count()") == 1


class Watched:
    """The cards that are shown, in order."""

    def __init__(self, monkeypatch: Any) -> None:
        self.made: list[Any] = []
        begin = cell_card.CellCard._begin

        def noted(card: Any) -> Any:
            shown = begin(card)
            self.made.append(card)  # with its widget: another thread may look
            return shown

        monkeypatch.setattr(cell_card.CellCard, "_begin", noted)


def test_each_line_of_a_cell_is_shown_again_with_all_its_tabs(on) -> None:
    number = on.shell.execution_count
    on.run("n = g.count()\n\ng.write.json(f'{at}/out')")
    cell = f"cell_{number}"
    for one, line in list(cell_card.OPENABLE_LINES._held):
        one.close_line(line)  # as when newer ones are opened
    (bundle,) = on.run(f"%flinkshow {cell} --run 1").displays
    for title in ("Stream graph", "Job graph", "Execution graph", "Regions and slots", "Timeline", "Findings (0)"):
        assert f">{title}</summary>" in bundle["text/html"]
    assert "line 1</div>" in bundle["text/html"]
    (last,) = on.run(f"%flinkshow {cell}").displays
    assert "line 3</div>" in last["text/html"]
    assert "FINISHED" in last["text/plain"]
    error = on.run(f"%flinkshow {cell} --run 7").error
    assert (error.name, error.number, error.numbers) == (cell, 7, [1, 3])
    assert type(on.run("%flinkshow cell_77").error).__name__ == "UnknownNameError"


def test_graphs_are_drawn_soon_after_a_cell_and_its_job_is_let_go_of_then(on, monkeypatch, eventually) -> None:
    monkeypatch.setattr(cell_card, "DRAW_S", 3600.0)
    known = on.shell.magics_manager.magics["line"]["flinkjobs"].__self__.line_jobs
    number = on.shell.execution_count
    on.run("n = g.count()")

    def jobs() -> list[Any]:
        gc.collect()
        return [one.job() for one in known._jobs.values() if one.cell == f"cell_{number}"]

    (job,) = jobs()
    assert job.status.is_terminal
    del job
    (shown,) = on.run(f"%flinkshow cell_{number}").displays
    assert "Findings (0)" in shown["text/html"]
    assert jobs() == [None]
    monkeypatch.setattr(cell_card, "DRAW_S", 0.0)
    number = on.shell.execution_count
    on.run("n = g.where('count > 1').count()")
    eventually(lambda: jobs() == [None])


def test_findings_of_a_cell_are_told_line_by_line(on) -> None:
    number = on.shell.execution_count
    on.run("n = g.count()\n\ng.write.json(f'{at}/out')")
    told = on.run(f"%flinkjobs cell_{number} --findings").stdout
    paths = [line for line in told.splitlines() if "is the critical path" in line]
    starts = [f"count, cell {number}, line 1: of ", f"cell_{number}, cell {number}, line 3: of "]
    assert [path.startswith(start) for path, start in zip(paths, starts, strict=True)] == [True, True]
    assert set(paths) <= {*on.run("%flinkjobs --findings").stdout.splitlines()}
    for line, path in zip(on.run(f"%flinkjobs cell_{number} --json").stdout.splitlines(), paths, strict=True):
        found = json.loads(line)
        assert f"{found['name']}: {found['critical_path']['text']}" == path
        assert found["findings"] == []
    assert type(on.run("%flinkjobs cell_0 --findings").error).__name__ == "UnknownNameError"


def test_a_line_opens_to_the_view_of_its_job_and_older_ones_become_text(on, monkeypatch) -> None:
    watched = Watched(monkeypatch)
    monkeypatch.setattr(cell_card.OPEN_CARDS, "most", 2)
    cell = on.run("g.count()")
    first = watched.made[0]
    place = first._widget.place
    assert place in cell.displays[0]["text/html"]
    (row,) = first._widget._rows
    assert (row["state"], row["done"], row["can_open"], row["place"]) == ("FINISHED", None, True, "")
    first._widget._clicked(None, {"type": "open", "row": 0}, None)
    (row,) = first._widget._rows
    (line,) = first._lines.values()
    assert row["place"] == line.view.place
    assert line.view._frame["status"] == "FINISHED"
    job_graph = next(view for view in line.openable.draw().views if view.kind == "job")
    last = next(one for one in job_graph.nodes if one.role == "sink")
    assert set(line.openable.draw()[1].states_of(last)) == {STATE_NAMES.index("FINISHED")}, "the action ran it"
    on.run("g.count()")
    on.run("g.count()")
    assert first._widget is None
    assert line.view is None
    assert watched.made[1]._widget is not None


NAPS = """
from pyspark.sql import functions as F
def nap(id):
    import pathlib, time
    pathlib.Path(begun).touch()
    time.sleep(60)
    return id
nap = F.udf(nap, 'long')
rows = spark.range(0, 2, 1, 2)
"""


@pytest.mark.matrix(3)
@pytest.mark.parametrize(
    ("action", "can_open"),
    [
        ("rows.select(nap('id').alias('k')).groupBy('k').count().collect()", True),
        # The last stage, which the action runs itself.
        ("rows.groupBy(F.expr('id % 2 AS k')).count().select(nap('k')).toPandas()", True),
        ("rows.select(nap('id')).collect()", False),  # one stage
    ],
)
def test_cancel_on_a_line_ends_what_runs_of_it(on, monkeypatch, tmp_path, action, can_open) -> None:
    watched = Watched(monkeypatch)
    on.names["begun"] = str(tmp_path / "begun")
    on.run(NAPS)

    def cancel() -> None:
        while not (tmp_path / "begun").exists():
            time.sleep(0.05)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if watched.made and watched.made[0]._widget._rows and "/" in watched.made[0]._widget._rows[0]["facts"]:
                break
            time.sleep(0.05)
        shown.extend(watched.made[0]._widget._rows)
        watched.made[0]._widget._clicked(None, {"type": "cancel", "row": 0}, None)

    shown: list[Any] = []
    thread = threading.Thread(target=cancel)
    thread.start()
    started = time.monotonic()
    cell = on.run(action)
    thread.join()
    assert time.monotonic() - started < 60
    assert type(cell.error).__name__ == "ActionCancelledError"
    assert (shown[0]["state"], shown[0]["can_open"]) == ("RUNNING", can_open)
    (row,) = watched.made[0]._widget._rows
    assert (row["state"], row["done"]) == ("CANCELED", None)
    assert on.run("rows.count()").value == 2


def test_cancel_between_a_job_and_the_last_stage_ends_the_action(on, monkeypatch, tmp_path) -> None:
    begin = cell_card.CellCard.work_started

    def cancelled_before(card, call, work) -> None:
        card._cancel(0)  # the job is over, and the work has not begun
        begin(card, call, work)

    on.names["begun"] = str(tmp_path / "begun")
    on.run(NAPS)
    monkeypatch.setattr(cell_card.CellCard, "work_started", cancelled_before)
    started = time.monotonic()
    cell = on.run("rows.groupBy(F.expr('id % 2 AS k')).count().select(nap('k')).collect()")
    assert time.monotonic() - started < 30
    assert type(cell.error).__name__ == "ActionCancelledError"


def test_progress_of_what_spark_runs_itself_adds_to_the_jobs(on, monkeypatch, tmp_path) -> None:
    watched = Watched(monkeypatch)
    on.names |= {"go": str(tmp_path / "go"), "rows": on.names["spark"].range(0, 2, 1, 2)}

    def look() -> None:
        deadline = time.monotonic() + 60
        while not told and time.monotonic() < deadline:
            rows = watched.made[0]._widget._rows if watched.made else []
            told.extend(row["facts"] for row in rows if re.search(r"2/4 tasks", row["facts"]))
            time.sleep(0.05)
        watched.made[0]._widget._clicked(None, {"type": "open", "row": 0}, None)
        (line,) = watched.made[0]._lines.values()
        opened.append(line.view)
        told.append(line.view._frame["status"])

    def let_go() -> None:
        try:
            look()
        finally:
            (tmp_path / "go").touch()

    told: list[str] = []
    opened: list[Any] = []
    thread = threading.Thread(target=let_go)
    thread.start()
    cell = on.run(
        "def wait(_rows):\n"
        "    import pathlib, time\n"
        "    while not pathlib.Path(go).exists(): time.sleep(0.05)\n"
        "rows.repartition(2).foreachPartition(wait)"
    )
    thread.join()
    assert cell.error is None
    assert "2/4 tasks" in told[0], "two tasks of the job are finished, and the two of the action's own stage run"
    assert (told[-1], opened[0]._frame["status"]) == ("RUNNING", "FINISHED")
    assert re.fullmatch(rf"foreachPartition\(wait\) · line 4 · 2 stages, 4 tasks · {TIME}", card(cell)[0])


def test_an_action_that_spark_alone_carries_out_is_shown_if_it_takes_long(on, monkeypatch) -> None:
    monkeypatch.setattr(cell_card, "WORK_S", 60.0)
    assert on.run("h = g.describe()\nc = g.crosstab('k', 'count')").displays == []
    monkeypatch.setattr(cell_card, "WORK_S", 0.01)
    (line,) = card(on.run("c = g.crosstab('k', 'count')"))
    assert re.fullmatch(rf"crosstab\(.*\) · line 1 · {TIME} · plain Spark: .*", line)


@pytest.mark.long
def test_the_last_of_many_quick_actions_is_shown_while_the_cell_goes_on(on, monkeypatch) -> None:
    monkeypatch.setattr(cell_card, "UPDATE_S", 0.5)
    watched = Watched(monkeypatch)

    def facts() -> list[str]:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            shown = [row["facts"] for one in watched.made for row in one._widget._rows]
            if any("3 times" in one for one in shown):
                break
            time.sleep(0.02)
        return shown

    on.names["facts"] = facts
    on.run("for _ in range(3): spark.range(3).collect()\nshown = facts()")
    (shown,) = on.names["shown"]
    assert shown.startswith("line 1 · 3 times · ")


def test_a_click_reaches_a_kernel_that_is_busy_also_while_it_writes_to_the_card(bare_kernel: Any) -> None:
    made = bare_kernel.run(
        "import threading\n"
        "from flinkmagic.display.card_widget import CardWidget\n"
        "clicked = threading.Event()\n"
        "card = CardWidget(lambda row: clicked.set(), print)\n"
        "card.comm.send({})\n"
        "print(card.comm.comm_id)"
    )
    bare_kernel.send("is_clicked = clicked.wait(30)")
    bare_kernel.click(made.stdout.strip(), {"type": "open", "row": 0})
    bare_kernel.leave()
    bare_kernel.come_back()
    assert bare_kernel.run("is_clicked").value["text/plain"] == "True"


def test_a_line_that_can_be_opened_no_more_says_so(on, monkeypatch) -> None:
    watched = Watched(monkeypatch)
    monkeypatch.setattr(cell_card.OPENABLE_LINES, "most", 2)
    on.run("g.count()")
    first = watched.made[0]
    first._widget._clicked(None, {"type": "open", "row": 0}, None)
    assert first._widget._rows[0]["place"]
    on.run("g.tail(1)\ng.collect()")
    (row,) = first._widget._rows
    assert (row["can_open"], row["place"]) == (False, "")


def test_a_view_that_is_open_shows_its_own_job_while_a_loop_goes_on(on, monkeypatch) -> None:
    watched = Watched(monkeypatch)
    on.names |= {"click": lambda: watched.made[0]._widget._clicked(None, {"type": "open", "row": 0}, None)}
    on.run("for n in range(3):\n    g.where(f'k > {n}').count()\n    if n == 0: click()")
    (line,) = watched.made[0]._lines.values()
    assert line.shown.times == 3
    assert line.view._frame["status"] == "FINISHED"
    assert line.view._snapshot.started_at_ms < line.openable.draw()[1].started_at_ms
    assert line._viewed is None


def test_a_cell_that_turns_the_mode_off_has_one_card_that_is_kept(on, monkeypatch) -> None:
    watched = Watched(monkeypatch)
    on.run("g.count()\n%flinkgraph off")
    assert cell_card.OPEN_CARDS._held == watched.made
    on.run("%flinkgraph on")


def test_what_compiles_has_a_line_before_it_has_a_job(on, monkeypatch) -> None:
    monkeypatch.setattr(cell_card, "COMPILE_S", 0.0)
    cell = on.run("g.where('k > 1').count()\ng.where('k > 1').write.json(f'{at}/out')")
    first, last = cell.displays[0]["text/plain"], card(cell)
    assert first == "○ count() · line 1 · COMPILING"
    assert [line.partition(" · ")[0] for line in last] == ["count()", "write.json(f'{at}/out')"]


def test_a_write_that_cannot_be_compiled_leaves_no_line(on, monkeypatch) -> None:
    watched = Watched(monkeypatch)
    monkeypatch.setattr(cell_card, "COMPILE_S", 0.0)

    def refuse(*_arguments: Any, **_options: Any) -> Any:
        time.sleep(0.2)  # until the line stands
        raise RuntimeError("no graph today")

    monkeypatch.setattr("flinkmagic.session.actions.session_writes.LineGraph", refuse)
    cell = on.run("g.write.json(f'{at}/out')")
    assert cell.error is None
    assert "no graph today" in cell.stderr
    assert watched.made[0]._widget._rows == []
    assert card(cell) == []


def test_the_line_and_the_view_of_its_job_say_the_same(on, monkeypatch) -> None:
    watched = Watched(monkeypatch)
    on.run("g.groupBy('count').count().collect()")  # what the next one reuses
    on.run("g.groupBy('count').count().collect()")
    for action in ("g.groupBy('count').count().toPandas()", "g.write.mode('overwrite').json(f'{at}/out')"):
        on.run(action)
        card_of_cell = watched.made[-1]
        card_of_cell._widget._clicked(None, {"type": "open", "row": 0}, None)
        (line,) = card_of_cell._lines.values()
        frame, reused = line.view._frame, line.openable.draw()[1].reused
        assert frame["elapsed"] == pytest.approx(1000 * line.shown.seconds)
        left_out = sum(len(line.openable.draw()[1].states[vertex]) for vertex in reused)
        assert (frame["done"], frame["total"]) == (line.shown.tasks + left_out, line.shown.tasks + left_out)
        assert frame["reused"] == left_out


def test_rows_that_fail_when_they_are_asked_for_fail_the_card_of_the_cell_that_made_them(on, monkeypatch) -> None:
    watched = Watched(monkeypatch)
    on.run("rows = spark.range(0, 4, 1, 4).selectExpr('id', 'if(id = 3, raise_error(string(id)), id) AS x')")
    made = on.run("it = rows.toLocalIterator()\nfirst = next(it)")
    assert on.names["first"].x == 0
    (line,) = card(made)
    assert re.fullmatch(rf"toLocalIterator\(\) · line 1 · 1 stage · {TIME} · its rows are computed as .*", line)
    failed = on.run("list(it)")
    assert failed.error is not None
    (row,) = watched.made[0]._widget._rows
    assert row["state"] == "FAILED"
    assert "its rows" not in row["facts"]
    assert failed.displays[-1]["text/plain"].startswith("✗ toLocalIterator() · line 1 · FAILED · 1 stage")
    on.run("it = rows.where('id < 3').repartition(2).toLocalIterator()\nall_rows = list(it)")
    assert sorted(row.x for row in on.names["all_rows"]) == [0, 1, 2]
    (row,) = watched.made[1]._widget._rows
    assert (row["state"], "its rows" in row["facts"]) == ("FINISHED", False)


ALARM = """
import os, pathlib, signal, threading, time
def ring(number, frame):
    raise TimeoutError("the user's alarm")
before = signal.signal(signal.SIGUSR1, ring)
def raise_it():
    while not pathlib.Path(begun).exists():
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGUSR1)
def nap(id):
    pathlib.Path(begun).touch()
    time.sleep(20)
    return id
slow = spark.range(0, 2, 1, 2).select(F.udf(nap, 'long')('id').alias('k'))
"""


@pytest.mark.matrix(2)
@pytest.mark.parametrize(
    "action", ["slow.groupBy('k').count().write.json(f'{at}/out')", "slow.groupBy('k').count().collect()"]
)
def test_a_signal_of_the_cell_s_own_thread_ends_what_runs(on, monkeypatch, tmp_path, action) -> None:
    watched = Watched(monkeypatch)
    on.names["begun"] = str(tmp_path / "begun")
    on.run(ALARM)
    cell = on.run(f"threading.Thread(target=raise_it).start()\n{action}\nover = True")
    on.run("signal.signal(signal.SIGUSR1, before)")
    assert isinstance(cell.error, TimeoutError)
    assert "over" not in on.names
    assert not (tmp_path / "out" / "_SUCCESS").exists()
    (row,) = watched.made[0]._widget._rows
    assert (row["state"], row["done"]) == ("CANCELED", None)
    assert "ran as plain Spark" not in cell.stderr
