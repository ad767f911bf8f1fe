"""`%flinkgraph on`: cells without a magic leave what they leave in plain PySpark, and their writes are graphs."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from IPython.core.completer import provisionalcompleter
from py4j.protocol import Py4JError

from flinkmagic import session
from flinkmagic.capturing.hooks import current_capture, hook_table
from flinkmagic.errors.usage import ReservedNameError
from flinkmagic.magics import session_mode as session_mode_module
from flinkmagic.magics.session_mode import IDLE_S, PAUSE_S
from flinkmagic.planning.stage_handles import WriteStageHandle
from flinkmagic.session.actions import session_writes
from flinkmagic.session.actions.warm_up import REREADS

GROUPED = "g = spark.range(60).selectExpr('id', 'id % 3 AS k').groupBy('k').count()"


@pytest.fixture
def on(notebook: Any, tmp_path: Path) -> Any:
    """A notebook with the mode on, and `at`, its folder."""
    notebook.names["at"] = str(tmp_path)
    notebook.run("%flinkgraph on")
    yield notebook
    notebook.run("%flinkgraph off")
    assert current_capture.active == []


def attributes() -> dict[tuple[Any, str], object]:
    return {(owner, name): vars(owner).get(name) for owner, name, _ in hook_table.entries()}


def are_plain(before: dict[tuple[Any, str], object]) -> bool:
    return all(vars(owner).get(name) is value for (owner, name), value in before.items())


def ran() -> list[str]:
    """The names of the jobs that writes have had; the process knows only the newest jobs."""
    return [job.name for job in session.submitted_jobs() if job.name.startswith("cell_")]


def lines(cell: Any) -> list[str]:
    """The lines of text that a terminal gets for the cell's calls."""
    return [line.rpartition("\r")[2] for line in cell.stderr.splitlines() if " · line " in line]


@pytest.mark.parametrize("error", [Py4JError("no such method"), OSError("broken pipe")])
def test_an_error_of_a_jvm_that_lives_is_told(on, monkeypatch, error) -> None:
    def broken(*_: object) -> None:
        raise error

    monkeypatch.setattr("flinkmagic.magics.session_mode.running_session", broken)
    cell = on.run("spark.range(3).count()")
    assert cell.value == 3
    assert f"The session mode is off, this cell runs plainly: {type(error).__name__}: {error}" in cell.stderr


def test_attributes_are_plain_between_cells_and_after_off(notebook, tmp_path) -> None:
    before = attributes()
    notebook.names["is_plain"] = lambda: are_plain(before)
    notebook.run("%flinkgraph on")
    assert are_plain(before)
    assert notebook.run("is_plain()").value is False
    assert are_plain(before)
    notebook.run("1 / 0")
    assert are_plain(before)
    assert notebook.run("off = is_plain()\n%flinkgraph off\noff, is_plain()").value == (False, True)
    assert notebook.run("is_plain()").value is True
    begun = notebook.run(f"%flinkgraph on\nspark.range(3).write.json('{tmp_path}/begun')\nis_plain()")
    assert begun.value is False, "it begins where it is turned on"
    assert len(lines(begun)) == 1
    notebook.run("%config FlinkMagics.session = False")
    assert notebook.run("is_plain()").value is True


def test_a_write_is_written_when_its_line_has_run(on) -> None:
    before = set(ran())
    cell = on.run(
        f"{GROUPED}\n"
        "g.write.parquet(f'{at}/out')\n"
        "once = sorted(map(tuple, spark.read.parquet(f'{at}/out').collect()))\n"
        "for _ in range(2):\n"
        "    g.write.mode('append').parquet(f'{at}/out')\n"
        "g.write.mode('ignore').parquet(f'{at}/out')\n"
        "once, spark.read.parquet(f'{at}/out').count()"
    )
    assert cell.error is None
    assert cell.value == ([(0, 20), (1, 20), (2, 20)], 9)
    assert len(set(ran()) - before) == 3, "driven, each on its line; one had nothing to do"
    assert [line.split(" · ")[:3] for line in lines(cell) if "write." in line] == [
        ["write.parquet(f'{at}/out')", "line 2", "2 stages, 6 tasks"],
        ["write.mode('append').parquet(f'{at}/out')", "line 5", "2 times"],
    ]
    assert cell.stdout.startswith("Out["), "nothing of ours is on standard output"


def test_statements_write_on_their_lines(on) -> None:
    before = set(ran())
    cell = on.run(
        "spark.sql('CREATE TABLE on_its_line USING parquet AS SELECT 1 AS a')\n"
        "spark.sql('INSERT INTO on_its_line SELECT 2')\n"
        "spark.range(3, 5).selectExpr('CAST(id AS INT) AS a').write.insertInto('on_its_line')\n"
        "found = sorted(row.a for row in spark.table('on_its_line').collect())\n"
        "spark.sql('DROP TABLE on_its_line')\n"
        "found"
    )
    assert cell.error is None
    assert cell.value == [1, 2, 3, 4]
    assert len(set(ran()) - before) == 3


def test_what_a_later_cell_continues_from_is_known_as_long_as_it_has_a_name(on, eventually) -> None:
    on.run("base = spark.range(9).withColumnRenamed('id', 'n')")
    on.run("base.groupBy('n').count().write.json(f'{at}/grouped')")
    (program,) = session_mode(on)._programs
    assert [call.method for call in program.lineage.calls] == ["range", "withColumnRenamed"]
    frame = weakref.ref(on.names["base"])
    on.run("base = None")
    on.run("pass")
    assert session_mode(on)._programs == []
    del program
    on.shell.displayhook.flush()
    eventually(lambda: (gc.collect(), frame())[1] is None)  # the graphs of the cell are drawn by then


def session_mode(notebook: Any) -> Any:
    (callback,) = [one for one in notebook.shell.events.callbacks["pre_run_cell"] if "SessionMode" in repr(one)]
    return callback.__self__


def test_a_failed_write_raises_what_spark_raises_with_its_line_and_its_vertex(on) -> None:
    code = (
        "def broken(value):\n"
        "    raise ValueError('bad row')\n"
        "rows = spark.range(3).select(F.udf(broken, 'long')('id').alias('id'))\n"
        "try:\n"
        "    rows.write.parquet(f'{at}/out_caught')\n"
        "except Exception as error:\n"
        "    caught = error\n"
        "rows.write.parquet(f'{at}/out')"
    )
    cell = on.run(code)
    number = on.shell.execution_count - 1
    on.run("%flinkgraph off")
    plain = on.run(code.replace("/out", "/plain"))
    assert type(cell.error) is type(plain.error)
    assert type(on.names["caught"]) is type(plain.error)
    assert "bad row" in str(cell.error)
    (note,) = cell.error.__notes__
    assert note.startswith(f"cell {number}, line 8: raised in Source: Range -> ")
    shown = cell.stdout.partition("Traceback")[2]
    assert "----> 8 rows.write.parquet(f'{at}/out')" in shown
    assert "flinkmagic/" not in shown
    assert "flinkmagic_hook" not in shown
    assert not Path(on.names["at"], "out", "_SUCCESS").exists()


@pytest.mark.parametrize("action", ["collect()", "select('none_such')"])
def test_an_error_is_shown_on_its_line_without_our_frames(on, action) -> None:
    rows = "rows = spark.range(4).selectExpr('raise_error(string(id)) AS x').groupBy('x').count()"
    cell = on.run(f"{rows}\nrows.{action}")
    shown = cell.stdout.partition("Traceback")[2]
    assert f"----> 2 rows.{action}" in shown
    assert "flinkmagic_hook" not in shown
    assert "hidden" not in shown


def test_what_spark_refuses_it_refuses_on_the_line(on) -> None:
    for code in (
        "spark.range(3).write.parquet(f'{at}/out')\nspark.range(3).write.parquet(f'{at}/out')",
        "spark.read.parquet(f'{at}/out').write.mode('overwrite').parquet(f'{at}/out')",
        "spark.range(3).write.format('none such').save(f'{at}/other')",
        "spark.range(3).write.insertInto('no_such_table')",
    ):
        on.run("import shutil; shutil.rmtree(f'{at}/out', ignore_errors=True); spark.range(9).write.json(f'{at}/out')")
        cell = on.run(code)
        on.run("%flinkgraph off")
        plain = on.run(code.replace("/out'", "/plain'"))
        on.run("%flinkgraph on")
        assert type(cell.error) is type(plain.error)
        assert cell.error is not None
    assert current_capture.active == []


def test_a_write_that_cannot_be_deployed_is_plain_sparks_and_told(on, monkeypatch) -> None:
    def broken(*arguments: Any, **options: Any) -> None:
        raise KeyError("a mistake of ours")

    monkeypatch.setattr(session_writes, "LineGraph", broken)
    cell = on.run(
        f"{GROUPED}\ng.write.json(f'{{at}}/out')\nspark.sql('CREATE TABLE by_spark AS SELECT 1 AS a').count()"
    )
    number = on.shell.execution_count - 1
    assert cell.error is None
    assert cell.value == 0
    assert on.run("spark.table('by_spark').count(), spark.read.json(f'{at}/out').count()").value == (1, 3)
    on.run("spark.sql('DROP TABLE by_spark')")
    assert [
        line.partition(" (")[0] for line in cell.stderr.splitlines() if "KeyError: 'a mistake of ours'" in line
    ] == [
        f"cell {number}, line 2: write.json(f'{{at}}/out') ran as plain Spark, because flinkmagic failed",
        f"cell {number}, line 3: sql('CREATE TABLE by_spark AS SELECT 1 AS a') ran as plain Spark, because flinkmagic "
        "failed",
    ]
    failed = on.run("g.selectExpr('no_such_column').write.json(f'{at}/out')")
    assert "plain Spark" not in failed.stderr


def test_a_write_whose_job_fails_before_a_stage_has_run_is_plain_sparks(on, monkeypatch) -> None:
    def broken(_: Any) -> None:
        raise KeyError("a mistake of ours")

    monkeypatch.setattr(WriteStageHandle, "make", broken)
    cell = on.run("spark.range(3).write.json(f'{at}/one_stage')\nspark.read.json(f'{at}/one_stage').count()")
    assert (cell.error, cell.value) == (None, 3)
    (told,) = (line for line in cell.stderr.splitlines() if "a mistake of ours" in line)
    assert ", line 1: write.json(f'{at}/one_stage') ran as plain Spark, because flinkmagic failed (KeyError" in told
    (card,) = (line for line in cell.stderr.splitlines() if line.startswith("\u2717 write.json"))
    assert card.endswith(" · plain Spark carries it out")
    cell = on.run(f"{GROUPED}\ng.write.json(f'{{at}}/two_stages')")
    assert type(cell.error).__name__ == "ActionFailedError"
    assert "two_stages') failed after stages of it had run (VertexFailedError: " in str(cell.error)


@pytest.mark.parametrize(
    ("condition", "error"),
    [("id > CAST('nine' AS INT)", "CAST_INVALID_INPUT"), ("1 / (id - 4) > 0", "DIVIDE_BY_ZERO")],
    ids=["planned", "run"],
)
def test_pyspark_logs_once_what_a_query_raises(on, heard, condition, error) -> None:
    cell = on.run(f'spark.sql("SELECT id % 3 AS g, count(*) FROM range(9) WHERE {condition} GROUP BY 1").show()')
    assert error in str(cell.error)
    assert heard == [(f"[{error}", "Py4JJavaError")]


def test_pyspark_logs_once_what_fails_again_without_what_is_kept(on, heard) -> None:
    on.run(
        "q = spark.sql('SELECT id % 3 AS g, sum(id) AS s, sum(1 / (id - 4)) AS bad FROM range(9) GROUP BY 1')\n"
        "q.select('g', 's').orderBy('g').count(), q.select('g', 's').orderBy('s').count()"
    )
    assert heard == []
    for number in (1, 2):
        cell = on.run("q.orderBy('g').collect()")
        assert "DIVIDE_BY_ZERO" in str(cell.error)
        assert heard == number * [("[DIVIDE_BY_ZERO", "Py4JJavaError")]


@pytest.mark.parametrize(
    "cell",
    [
        "%%flinkgraph --run\nspark.sql('SELECT 1 / (id - 4) AS bad FROM range(9)').write.csv(f'{at}/bad')",
        "import flinkmagic\n"
        "step = lambda df: spark.sql('SELECT id + 1 AS id FROM {df} WHERE 1 / (id - 4) > 0', df=df)\n"
        "flinkmagic.iterate(spark.range(9).toDF('id'), step, max_iterations=3)",
    ],
    ids=["cell", "superstep"],
)
def test_pyspark_logs_once_what_ends_a_job(on, heard, cell) -> None:
    assert on.run(cell).error is not None
    assert heard == [("[DIVIDE_BY_ZERO", "Py4JJavaError")]


def test_a_cell_under_another_magic_is_captured_too(on) -> None:
    on.run(GROUPED)
    before = set(ran())
    timed = on.run("%%time\ng.write.csv(f'{at}/timed')\ng.count()")
    assert timed.value == 3
    assert "Wall time" in timed.stdout
    assert lines(timed)[0].startswith("write.csv(f'{at}/timed') · line 2 · ")
    quiet = on.run("%%capture said\ng.write.csv(f'{at}/captured')\nprint('heard')")
    assert quiet.stdout == quiet.stderr == ""
    assert on.names["said"].stdout == "heard\n"
    assert "write.csv(f'{at}/captured') · line 2 · " in on.names["said"].stderr
    once = on.run("%time g.write.csv(f'{at}/once')")
    assert once.error is None
    assert len(set(ran()) - before) == 3
    assert {"timed", "captured", "once"} <= set(os.listdir(on.names["at"]))


def test_a_cell_with_the_magic_defers_as_always(on) -> None:
    on.run(GROUPED)
    on.run("%%flinkgraph later\ng.write.csv(f'{at}/later')")
    assert not Path(on.names["at"], "later").exists()
    assert on.run("%flinkrun later").error is None
    assert Path(on.names["at"], "later", "_SUCCESS").exists()
    assert on.run("g.write.csv(f'{at}/now')\n%flinkgraph later --save later.txt").error is None


def test_a_cell_that_awaits_is_captured(on) -> None:
    before = set(ran())
    cell = on.run(
        "import asyncio\n"
        "await asyncio.sleep(0)\n"
        "spark.range(3).write.json(f'{at}/awaited')\n"
        "await asyncio.sleep(0)\n"
        "len(spark.read.json(f'{at}/awaited').collect())"
    )
    assert cell.value == 3
    assert len(set(ran()) - before) == 1
    failed = on.run("await asyncio.sleep(0)\nraise KeyError('mine')")
    assert isinstance(failed.error, KeyError)
    assert current_capture.active == []
    assert current_capture.listening() is None


def test_an_interrupt_cancels_the_write_and_leaves_nothing(on, interrupt_later) -> None:
    cell = on.run(
        "nap = F.udf(lambda value: __import__('time').sleep(30) or value, 'long')\n"
        "spark.range(2).repartition(2).select(nap('id')).write.json(f'{at}/slow')"
    )
    assert isinstance(cell.error, KeyboardInterrupt)
    assert "----> 2 spark.range(2)" in cell.stdout
    assert "flinkmagic/" not in cell.stdout
    assert "flinkmagic_hook" not in cell.stdout
    assert [job.status.value for job in session.submitted_jobs()][-1] == "CANCELED"
    assert current_capture.active == []
    assert on.run("spark.range(3).count()").value == 3


@pytest.fixture
def interrupt_later(spark: Any) -> Any:
    """Interrupt the main thread once a write's second stage runs."""

    def interrupt() -> None:
        while not over.wait(0.05):
            running = [job for job in session.submitted_jobs() if job.status.value == "RUNNING"]
            if any(job.finished_tasks for job in running) and spark.sparkContext.statusTracker().getActiveJobsIds():
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
                return

    over = threading.Event()
    thread = threading.Thread(target=interrupt)
    thread.start()
    yield
    over.set()
    thread.join()


@pytest.mark.matrix(4)
@pytest.mark.parametrize(
    "phase",
    [
        "flinkmagic.capturing.writes.deferral.Deferral._take",
        "flinkmagic.session.compiled_graph.CompiledGraph._compile",
        "flinkmagic.session.compiled_graph.CompiledGraph.run",
        "flinkmagic.magics.cell_card.CellCard.follow",
    ],
)
def test_an_interrupt_in_any_phase_leaves_nothing(on, monkeypatch, phase) -> None:
    def interrupted(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    before = attributes()
    with monkeypatch.context() as patched:
        patched.setattr(phase, interrupted)
        cell = on.run(f"{GROUPED}\ng.write.json(f'{{at}}/out')")
    assert isinstance(cell.error, KeyboardInterrupt)
    assert current_capture.active == []
    assert current_capture.listening() is None
    assert are_plain(before)
    jobs = [job for job in session.submitted_jobs() if not job.status.is_terminal]
    assert all(job.status.value == "CANCELLING" for job in jobs)
    assert on.run("g.write.mode('overwrite').json(f'{at}/out'); spark.read.json(f'{at}/out').count()").value == 3


def completed(notebook: Any, text: str) -> list[str]:
    notebook.shell.set_completer_frame()
    with provisionalcompleter():
        return sorted(one.text for one in notebook.shell.Completer.completions(text, len(text)))


@pytest.mark.long
def test_names_are_completed_between_cells_in_plain_pyspark(on) -> None:
    on.run("%config Completer.evaluation = 'unsafe'\ndf = spark.range(3)")
    before = len(session.submitted_jobs())
    assert completed(on, "df.wri") == ["write", "writeStream", "writeTo"]
    assert completed(on, "df.rdd.mapPartitionsWithI") == ["mapPartitionsWithIndex"]
    on.names["completed"] = lambda: completed(on, "df.toLocal")
    assert on.run("completed()").value == ["toLocalIterator"], "also by code of a cell"
    assert len(session.submitted_jobs()) == before


def test_a_writes_jobs_are_in_the_users_group_and_the_thread_keeps_its_properties(on, spark) -> None:
    names = ("spark.jobGroup.id", "spark.job.description", "users.own")
    cell = on.run(
        f"{GROUPED}\n"
        "sc = spark.sparkContext\n"
        "sc.setJobGroup('my writes', 'what I do')\n"
        "sc.setLocalProperty('users.own', 'kept')\n"
        "g.write.json(f'{at}/out')\n"
        f"[sc.getLocalProperty(name) for name in {names}]"
    )
    assert cell.value == ["my writes", "what I do", "kept"]
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    found = spark.sparkContext.statusTracker().getJobIdsForGroup("my writes")
    assert len(found) == 2, "of the stage before the exchange, and of the write"
    on.run(f"for name in {names}: sc.setLocalProperty(name, None)")


def test_threads_write_plainly_also_after_their_cell(on) -> None:
    before = set(ran())
    cell = on.run(
        "import threading\n"
        "go = threading.Event()\n"
        "def write(name, wait):\n"
        "    go.wait(20) if wait else None\n"
        "    spark.range(3).write.json(f'{at}/{name}')\n"
        "within = threading.Thread(target=write, args=('within', False)); within.start(); within.join()\n"
        "beyond = threading.Thread(target=write, args=('beyond', True)); beyond.start()\n"
    )
    assert cell.error is None
    assert on.run("go.set(); beyond.join()").error is None
    assert {"within", "beyond"} <= set(os.listdir(on.names["at"]))
    assert set(ran()) <= before


def test_its_words_are_no_names(on) -> None:
    assert isinstance(on.run("%%flinkgraph on\ndf = spark.range(3)").error, ReservedNameError)
    on.run("df = spark.range(3)\noff = df")
    for line in ("%flinkgraph df --name off", "%flinkgraph off df"):
        error = on.run(line).error
        assert isinstance(error, ReservedNameError)
        assert error.name == "off"
        assert "frame = off" in str(error)
    with pytest.raises(ReservedNameError):
        session.compile(on.names["df"], name="on")
    assert "frame = off" in on.run("%flinkgraph off").stdout


def test_loaded_again_it_follows_each_cell_only_once(on) -> None:
    on.run("%reload_ext flinkmagic")
    assert on.run("import flinkmagic.capturing.hooks.current_capture as c; len(c.active)").value == 0, (
        "as a new one, it is off"
    )
    on.run("%flinkgraph on")
    assert on.run("len(c.active)").value == 1


def test_a_profile_has_it_on_from_the_start(notebook) -> None:
    from traitlets.config import Config

    notebook.shell.config.merge(Config({"FlinkMagics": {"session": True}}))
    try:
        notebook.run("%reload_ext flinkmagic")
        assert notebook.run("import flinkmagic.capturing.hooks.current_capture as c; len(c.active)").value == 1
    finally:
        del notebook.shell.config["FlinkMagics"]
        notebook.run("%reload_ext flinkmagic")


class Pause(threading.Timer):
    """A timer that is over when a test says so."""

    begun: ClassVar[list[Pause]] = []

    def start(self) -> None:
        self.begun.append(self)

    @classmethod
    def lasts(cls, seconds: float) -> None:
        """Let the user pause."""
        for timer in cls.begun:
            if timer.interval <= seconds and not timer.finished.is_set():
                timer.cancel()
                timer.function(*timer.args)


@pytest.fixture
def kept_classes(on: Any, monkeypatch: Any) -> Iterator[list[Any]]:
    """The contexts whose classes were to be kept for later kernels; `Pause` tells how long the user has paused."""
    kept: list[Any] = []
    monkeypatch.setattr(session, "make_class_archive", kept.append)
    monkeypatch.setattr(Pause, "begun", [])
    session_mode(on)._looked_at = float("-inf")
    with monkeypatch.context() as patched:
        patched.setattr(threading, "Timer", Pause)
        on.run(f"%config FlinkMagics.class_archive = True\n{GROUPED}\ng.count()")
        yield kept
        on.run("%config FlinkMagics.class_archive = False")


def test_in_a_pause_classes_are_kept_for_later_kernels(on, kept_classes, spark) -> None:
    Pause.lasts(PAUSE_S - 1)
    assert kept_classes == []
    on.run("1")  # the user is back, and the first pause is over
    assert [timer.finished.is_set() for timer in Pause.begun] == [True, False]
    Pause.lasts(PAUSE_S)
    assert kept_classes == [spark.sparkContext]
    on.run("2")
    Pause.lasts(PAUSE_S)
    assert kept_classes == [spark.sparkContext]  # not in each pause


def test_classes_are_not_kept_if_that_is_switched_off(on, kept_classes) -> None:
    on.run("%config FlinkMagics.class_archive = False")
    Pause.lasts(PAUSE_S)
    assert kept_classes == []


def test_a_jvm_that_is_yet_to_start_is_offered_what_is_kept(on, monkeypatch) -> None:
    offered = []
    monkeypatch.setattr(session, "offer_class_archive", lambda: offered.append("offered"))
    on.run("%config FlinkMagics.class_archive = True")
    monkeypatch.setattr(session_mode_module, "running_session", lambda shell: None)
    on.run("1")
    on.run("%config FlinkMagics.class_archive = False")
    on.run("2")
    assert offered == ["offered", "offered"]  # by the cell, and by the one that switches it off


@pytest.mark.long
def test_in_a_kernel_a_cell_is_captured_once_there_is_a_session(bare_kernel) -> None:
    bare_kernel.run("%load_ext flinkmagic\n%config FlinkMagics.session = True")
    first = bare_kernel.run(
        "import flinkmagic, asyncio, os\n"
        "spark = flinkmagic.local_session('kernel', 'local[2]', {'spark.ui.enabled': 'false', "
        "'spark.driver.memory': '1g', 'spark.ui.showConsoleProgress': 'false'})\n"
        "spark.range(3).write.json('plain')\n"
        "sorted(os.listdir())[-1]"
    )
    assert first.status == "ok", first.error
    assert first.displays == []
    rehearsals = "from flinkmagic.session.actions import warm_up; warm_up._rehearsal(spark.sparkContext)._left"
    for _ in range(20):  # a look ends the pause in which a rehearsal may begin
        time.sleep(IDLE_S + 2)
        if (left := int(bare_kernel.run(rehearsals).value["text/plain"])) <= REREADS:
            break
    assert left <= REREADS
    card = "import sys; 'flinkmagic.display.card_widget' in sys.modules"
    assert bare_kernel.run(card).value["text/plain"] == "True"
    bare_kernel.run("%flinkgraph off\ndel sys.modules['flinkmagic.display.card_widget']")
    assert bare_kernel.run(f"%flinkgraph on\n{card}").value["text/plain"] == "True"
    for name, code in (("sync", "pass"), ("awaiting", "await asyncio.sleep(0)")):
        cell = bare_kernel.run(f"{code}\nspark.range(3).write.json('{name}')\n{code}\nos.listdir('{name}')[-1] != ''")
        assert cell.status == "ok", cell.error
        (shown,) = cell.displays
        assert shown["text/plain"].startswith(f"write.json('{name}') · line 2 · 1 stage, ")
        assert cell.value["text/plain"] == "True"
    stopped = bare_kernel.run(
        "spark.stop()\n"
        "spark = flinkmagic.local_session('again', 'local[2]', {'spark.ui.enabled': 'false'})\n"
        "spark.range(3).write.json('again')"
    )
    assert stopped.status == "ok", stopped.error
    assert stopped.displays == []
    assert len(bare_kernel.run("spark.range(3).write.json('last')").displays) == 1
    assert (
        bare_kernel.run("import flinkmagic.capturing.hooks.current_capture as c; len(c.active)").value["text/plain"]
        == "1"
    )
    bare_kernel.run("%flinkgraph off")
    assert bare_kernel.run("c.active, c.recording.get()").value["text/plain"] == "([], None)"
    bare_kernel.run("%flinkgraph on")
    # py4j logs a call that is under way when the JVM dies, as its own worker that releases objects may have one.
    quiet = bare_kernel.run(
        "import threading\n"
        "from py4j.clientserver import SHUTDOWN_FINALIZER_WORKER, FinalizerWorker\n"
        "spark.sparkContext._gateway._gateway_client.finalizer_deque.append(SHUTDOWN_FINALIZER_WORKER)\n"
        "for one in threading.enumerate():\n"
        "    if isinstance(one, FinalizerWorker) or one.name == 'flinkmagic-warm-up':\n"
        "        one.join()"
    )
    assert quiet.status == "ok", quiet.error
    gone = bare_kernel.run("os.kill(spark.sparkContext._gateway.proc.pid, 9)\nspark.sparkContext._gateway.proc.wait()")
    assert gone.status == "ok", gone.error
    after = bare_kernel.run("1 + 1")
    assert (gone.stderr, after.stderr, after.value["text/plain"]) == ("", "", "2")


@pytest.mark.long
def test_a_random_split_and_a_split_are_computed_once_for_all_lines(on) -> None:
    on.run(
        "import random, flinkmagic\n"
        "from pyspark.sql import functions as F\n"
        "drawn = F.udf(lambda: random.SystemRandom().random(), 'double').asNondeterministic()\n"
        "rows = spark.range(0, 500, 1, 3).select(drawn().alias('r'), 'id')\n"
        "one, two = rows.randomSplit([0.5, 0.5], 3)\n"
        "parts = flinkmagic.split(rows, {'low': 'r < 0.5', 'high': 'r >= 0.5'})\n"
        "low, high = parts.select('low'), parts.select('high')\n"
        "one.write.parquet(f'{at}/one')"
    )
    two = on.run("two.write.parquet(f'{at}/two')\nlow.count() + high.count(), low.join(high, 'id').count()")
    assert two.value == (500, 0)
    ids = on.run("[row.id for name in ('one', 'two') for row in spark.read.parquet(f'{at}/{name}').collect()]")
    assert sorted(ids.value) == list(range(500))


def test_a_loop_runs_on_its_line_and_names_it(on) -> None:
    on.run("import flinkmagic\nfrom pyspark.sql import functions as F\nbegin = spark.range(8).select('id')")
    on.run("def step(df):\n    return df.groupBy((F.col('id') + 1).alias('id')).count().select('id')")
    cell = on.run(
        "end = flinkmagic.iterate(begin, step, max_iterations=3, until=lambda a, b: b.count() < 8)\nend.count()"
    )
    assert cell.value == 8
    assert on.run("flinkmagic.iterations()[-1].outcome").value == "3 supersteps, not converged"
    assert sorted(row.id for row in on.run("end.orderBy('id').collect()").value) == list(range(3, 11))


@pytest.mark.matrix(2)
@pytest.mark.parametrize("mode", ["on", "off"])
def test_a_frame_sees_an_appended_file_as_plain_spark_does(on, tmp_path, mode: str) -> None:
    on.run(f"%flinkgraph {mode}")
    on.run("rows = spark.range(0, 10, 1, 2)\nrows.write.parquet(f'{at}/days')\ndays = spark.read.parquet(f'{at}/days')")
    ask = "days.count(), days.groupBy('id').count().count(), spark.read.parquet(f'{at}/days').count()"
    assert on.run(ask).value == (10, 10, 10)
    (tmp_path / "days" / "more.parquet").write_bytes(next((tmp_path / "days").glob("part-*")).read_bytes())
    assert on.run(ask).value == (10, 10, 15), "from elsewhere: it has listed its files when it was made"
    on.run("rows.write.mode('append').parquet(f'{at}/days')")
    assert on.run(ask).value == (10, 10, 25), "by the session itself"
    on.run("days = spark.read.parquet(f'{at}/days').cache()\ndays.count()")
    on.run("rows.write.mode('append').parquet(f'{at}/days')")
    assert on.run("days.count(), days.groupBy('id').count().count()").value == (35, 10), "it was cached again"
    on.run("days.unpersist()")


@pytest.mark.long
def test_the_card_says_that_rows_were_brought_up_to_date_unless_that_is_switched_off(on) -> None:
    grow = "spark.range(600, 0, -1, 1).selectExpr('id', 'id % 3 AS k').write.mode('append').parquet(f'{at}/grown')"
    ask = "spark.read.parquet(f'{at}/grown').groupBy('k').agg(F.sum('id')).toPandas()"
    told = []
    try:
        for option in ("added", "added", "full", "added"):
            on.run(f"%flinkgraph on --refresh {option}")
            on.run(grow)
            told.append("brought up to date from 1 added file" in lines(on.run(ask))[0])
    finally:
        on.run("%config FlinkMagics.refresh = 'added'")
    assert told == [False, True, False, True]
