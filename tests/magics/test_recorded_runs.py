"""Runs that are over stay listed, also those of cells that ran again; each is shown, and compared with others."""

from __future__ import annotations

import json

import pytest

from flinkmagic.magics import graphs, live, live_view

CELL = """\
%%flinkgraph {name} --parallelism 2 --run
rows = spark.range(0, {rows}, 1, 2)
rows.groupBy((F.col("id") % {keys}).alias("last")).count().write.mode("overwrite").json(f"{{at}}/{name}")
"""


@pytest.fixture
def notebook(notebook, tmp_path):
    """Spark's own folder is where the tests were started."""
    notebook.names["at"] = tmp_path
    return notebook


def listed(notebook, name: str = "") -> list[list[str]]:
    return [line.split()[:3] for line in notebook.run(f"%flinkjobs {name}").stdout.splitlines()[1:]]


def test_runs_of_a_cell_that_ran_again_keep_their_numbers(notebook) -> None:
    notebook.run(CELL.format(name="kept", rows=100, keys=10))
    notebook.run("%flinkrun kept")
    notebook.run(CELL.format(name="kept", rows=200, keys=5))
    numbers = [row for row in listed(notebook) if row[0] == "kept"]
    assert numbers == [["kept", str(number), "FINISHED"] for number in (1, 2, 3)]
    both = json.loads(notebook.run("%flinkjobs kept --compare 1 --json").stdout)
    assert (both["first"]["run"], both["second"]["run"]) == (1, 3)
    rows = {one["second"]["plan"]: (one["first"]["rows_out"], one["second"]["rows_out"]) for one in both["vertices"]}
    assert sorted(rows.values()) == [(10, 5), (20, 10)]
    told = notebook.run("%flinkjobs kept --compare").stdout
    assert told.startswith("kept: run 2 (FINISHED, ")
    assert " → run 3 (FINISHED, " in told
    assert "NoSuchRunError" in repr(notebook.run("%flinkjobs kept --compare 7").error)
    assert "the name of a graph" in str(notebook.run("%flinkjobs --compare").error)


def test_what_runs_on_the_way_counts_too(notebook) -> None:
    notebook.run(CELL.format(name="way", rows=100, keys=10))
    notebook.run(
        "%%flinkgraph way --run\n"
        "spark.range(5).write.mode('overwrite').json(f'{at}/first')\n"
        "spark.read.json(f'{at}/first').write.mode('overwrite').json(f'{at}/second')\n"
    )
    graph = notebook.names["way"]
    assert [run.number for run in graph.runs()] == [1, 2, 3]
    assert [len(run.job_view.nodes) for run in graph.runs()] == [2, 1, 1]
    assert [row[1:] for row in listed(notebook, "way")[:3]] == [[str(number), "FINISHED"] for number in (1, 2, 3)]


def test_a_recorded_run_holds_nothing_of_spark_s(notebook) -> None:
    import gc
    import weakref

    notebook.run(CELL.format(name="let_go", rows=100, keys=10))
    job = weakref.ref(notebook.names["let_go"].jobs[-1])
    notebook.run(CELL.format(name="let_go", rows=50, keys=10))
    gc.collect()
    assert job() is None
    assert [run.number for run in notebook.names["let_go"].runs()] == [1, 2]


def test_too_many_are_let_go_of(notebook, monkeypatch) -> None:
    monkeypatch.setattr(graphs, "MOST_RUNS", 1)
    for keys in (3, 4, 5):
        notebook.run(CELL.format(name="many", rows=100, keys=keys))
    assert [run.number for run in notebook.names["many"].runs()] == [2, 3]


@pytest.mark.parametrize("in_notebook", [False, True])
def test_each_run_is_shown(notebook, monkeypatch, in_notebook: bool) -> None:
    name = f"shown_{in_notebook}"
    notebook.run(CELL.format(name=name, rows=100, keys=10))
    notebook.run(CELL.format(name=name, rows=100, keys=5))
    monkeypatch.setattr(live, "in_notebook", lambda: in_notebook)
    shown = notebook.run(f"%flinkshow {name} --run 1")
    if not in_notebook:
        assert shown.stdout.splitlines()[0] == "run 1"
        assert shown.stdout.splitlines()[1].split()[:3] == ["vertex", "tasks", "time"]
        assert "2 finished" in shown.stdout
        return
    assert shown.error is None
    view = live_view.OPEN_VIEWS._held[-1]
    assert isinstance(view, live_view.RecordedView)
    (bundle,) = shown.displays
    for title in ("Stream graph", "Job graph", "Execution graph", "Regions and slots", "Timeline", "Findings (0)"):
        assert f">{title}</summary>" in bundle["text/html"]
    assert f"<strong>{name}</strong>: run 1</div>" in bundle["text/html"]
    assert (view._view._frame["status"], view._view._frame["action"], view._view._tasks["n"]) == ("FINISHED", "none", 4)
    assert notebook.run(f"%flinkshow {name} --run 9").error.number == 9
    view.close()
