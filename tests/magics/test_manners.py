"""A captured cell behaves in a notebook as any other."""

from __future__ import annotations

import threading

import pytest

from flinkmagic.session import Job

TOTAL = "total = spark.range(9).groupBy().count()"


def test_time_on_the_second_line_times_the_cell(notebook) -> None:
    cell = notebook.run(f"%%flinkgraph timed\n%%time\n{TOTAL}\n6 * 7")
    assert cell.error is None
    assert "Wall time" in cell.stdout
    assert cell.value == 42
    (call,) = [call for call in notebook.names["timed"].program.lineage.calls if call.method == "count"]
    assert call.location.line == 3, "lines are counted from the cell's first"


def test_capture_on_the_second_line_takes_what_is_printed(notebook) -> None:
    cell = notebook.run(f"%%flinkgraph quiet\n\n%%capture out\nprint('taken')\n{TOTAL}")
    assert cell.error is None
    assert cell.stdout == ""
    assert "taken" in notebook.names["out"].stdout
    assert notebook.names["quiet"].sinks[0].location.line == 5


def test_other_cell_magics_stand_on_the_second_line_and_above(notebook, tmp_path) -> None:
    cell = notebook.run("%%flinkgraph written\n%%writefile note.txt\na note")
    assert cell.error is None
    assert (tmp_path / "note.txt").read_text().strip() == "a note"
    cell = notebook.run(f"%%time\n%%flinkgraph under\n{TOTAL}")
    assert cell.error is None
    assert "under" in notebook.names


def test_a_cell_may_await(notebook, tmp_path) -> None:
    notebook.run("import asyncio\nasync def later(value):\n    await asyncio.sleep(0.01)\n    return value")
    cell = notebook.run(
        "%%flinkgraph awaiting --run\n"
        "n = await later(9)\n"
        "async def both(): return await asyncio.gather(later(1), later(2))\n"
        "numbers = spark.range(n)\n"
        f"numbers.write.parquet('{tmp_path}/awaited')\n"
        "async with asyncio.Lock():\n"
        "    found = await both()\n"
        "found\n"
    )
    assert cell.error is None
    assert cell.value == [1, 2]
    assert notebook.names["awaiting"].sinks[0].location.line == 5
    assert notebook.names["spark"].read.parquet(f"{tmp_path}/awaited").count() == 9
    silent = notebook.run("%%flinkgraph awaiting\nawait later(3);")
    assert silent.value is None
    assert "nothing to compile" in silent.stdout


def test_a_cell_that_awaits_and_raises_is_captured_no_longer(notebook, tmp_path) -> None:
    cell = notebook.run("%%flinkgraph broken\nimport asyncio\nawait asyncio.sleep(0)\nraise KeyError('mine')")
    assert isinstance(cell.error, KeyError)
    assert "----> 4 raise KeyError('mine')" in cell.stdout
    notebook.run(f"spark.range(3).write.json('{tmp_path}/plain')")
    assert (tmp_path / "plain" / "_SUCCESS").exists()


def test_under_another_magic_nothing_can_await(notebook) -> None:
    cell = notebook.run("get_ipython().run_cell_magic('flinkgraph', 'g', 'import asyncio\\nawait asyncio.sleep(0)')")
    assert "Line 3 awaits at the top level" in str(cell.error)


def test_a_syntax_error_is_shown_as_that_of_any_cell(notebook) -> None:
    cell = notebook.run("%%flinkgraph wrong\nx = 1\ny = = 2\n")
    assert isinstance(cell.error, SyntaxError)
    assert "line 3" in cell.stdout
    assert "y = = 2" in cell.stdout
    for foreign in ("flinkmagic", "run_cell_magic", "interactiveshell"):
        assert foreign not in cell.stdout
    cell = notebook.run("%%flinkgraph wrong\nreturn 1\n")
    assert "'return' outside function" in cell.stdout
    assert "flinkmagic" not in cell.stdout


@pytest.mark.parametrize("place", ["cell", "run"])
def test_an_interrupt_is_shown_without_our_frames(notebook, place: str, monkeypatch) -> None:
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    wait = Job.wait

    def wait_interrupted(job, timeout=None):
        # Only where the cell waits: the view has a thread of its own, and what was interrupted is waited for.
        if timeout is None and threading.current_thread() is threading.main_thread() and not job.status.is_terminal:
            monkeypatch.setattr(Job, "wait", wait)
            raise KeyboardInterrupt
        return wait(job, timeout)

    if place == "run":
        monkeypatch.setattr(Job, "wait", wait_interrupted)
        code = f"%%flinkgraph stopped --run\n{TOTAL}"
    else:
        notebook.names["interrupted"] = interrupted
        code = "%%flinkgraph stopped --run\nspark.range(3).write.parquet('dropped')\ninterrupted()"
    cell = notebook.run(code)
    assert isinstance(cell.error, KeyboardInterrupt)
    assert "KeyboardInterrupt" in cell.stdout
    assert ("----> 3 interrupted()" in cell.stdout) is (place == "cell")
    assert ("and dropped: the writes to file:" in cell.stdout) is (place == "cell")
    for foreign in ("flinkmagic/", "concurrent", "run_cell_magic"):
        assert foreign not in cell.stdout


MAGICS = ["flinkgraph", "flinkrun", "flinkcancel", "flinkshow", "flinkjobs", "flinksim", "flinkhistory"]


@pytest.mark.parametrize(
    "code", [*(f"%{magic} --help" for magic in MAGICS), "%%flinkgraph --help", "%%flinkgraph -h\nx = 1"]
)
def test_every_magic_prints_help(notebook, code: str) -> None:
    cell = notebook.run(code)
    assert cell.error is None
    assert cell.stdout.split()[0] == code.split()[0]
    assert cell.stderr == ""


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("%%flinkgraph g --paralelism 4\nspark.range(3)", "Did you mean --parallelism?"),
        ("%flinkrun delays --detatch", "Did you mean --detach?"),
        ("%flinkrun delay", "Did you mean delays?"),
        ("%flinkgraph delay", "There is no variable named 'delay'. Did you mean delays?"),
    ],
)
def test_what_is_misspelt_is_named(notebook, code: str, says: str) -> None:
    notebook.run("%%flinkgraph delays\ntotal = spark.range(9).groupBy().count()")
    cell = notebook.run(code)
    assert says in str(cell.error)


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("%flinkgraph", "No cell has defined a graph yet"),
        ("%flinkjobs", "No graph has been defined yet"),
        ("%flinkjobs --retained", "Nothing is retained."),
        ("%flinkjobs --release x", "There is no retained result named 'x'. Nothing is retained."),
        ("%flinkrun nobody", "There is no graph named 'nobody'"),
        ("%%flinkgraph g --frobnicate\nx = 1", "unrecognized arguments: --frobnicate"),
        ("%%flinkgraph g\n# nothing\n", "nothing to compile: the cell is empty"),
        ("%%flinkgraph g\nx = = 1", "invalid syntax"),
    ],
)
def test_no_session_is_started_only_to_say_this(notebook, monkeypatch, code: str, says: str) -> None:
    def started() -> None:
        raise AssertionError("a session is started")

    monkeypatch.setattr("flinkmagic.magics.spark_session.local_session", started)
    monkeypatch.setattr("flinkmagic.session.submitted_jobs", list, raising=False)
    monkeypatch.setattr("flinkmagic.jvm.java.is_stopped", lambda session: True)
    cell = notebook.run(code)
    assert says in cell.stdout + str(cell.error or "")
    assert "a session is started" not in str(cell.error)


def test_an_extension_that_is_loaded_again_leaves_nothing_twice(notebook) -> None:
    def ours() -> list[int]:
        kinds = (
            notebook.shell.input_transformers_cleanup,
            notebook.shell.events.callbacks["post_run_cell"],
            [one for one in notebook.shell.Completer.custom_matchers if "flinkmagic" in one.matcher_identifier],
        )
        return [len([one for one in kind if "flinkmagic" in f"{one} {one.__module__}"]) for kind in kinds]

    before = ours()
    assert before == [1, 2, 1]
    notebook.run("%reload_ext flinkmagic")
    assert ours() == before


def test_a_cell_with_checkpoints_needs_a_name(notebook, tmp_path) -> None:
    refused = notebook.run(f"%%flinkgraph --checkpoint-dir {tmp_path}\n{TOTAL}")
    assert "A cell with --checkpoint-dir needs a name" in str(refused.error)
    assert notebook.run(f"%%flinkgraph checked --checkpoint-dir {tmp_path}\n{TOTAL}").error is None
