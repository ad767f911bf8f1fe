"""Loops show their progress and their graph below their cell, whatever follows them there."""

from __future__ import annotations

from typing import Any

import pytest

import flinkmagic

LOOP = (
    "numbers = spark.range(0, 30, 1, 3).select('id', F.col('id').alias('v'))\n"
    "def doubled(df):\n"
    "    seen.append(flinkmagic.iterations()[-1].progress())\n"
    "    return df.groupBy((F.col('id') % 3).alias('id')).agg((F.sum('v') * 2).alias('v'))\n"
    "def until(before, after):\n"
    "    return after.agg((F.sum('v') > 3000).alias('enough'), F.sum('v').alias('total'))\n"
    "seen = []\n"
    "last = flinkmagic.iterate(numbers, doubled, max_iterations=9, until=until, name='doubling')\n"
)
ONCE = "last = flinkmagic.iterate(spark.range(4), lambda df: {}, max_iterations={}, name={!r})\n"


@pytest.fixture
def loops(notebook: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A notebook whose front end shows rich output."""
    monkeypatch.setattr(notebook.shell, "kernel", None, raising=False)
    notebook.names["flinkmagic"] = flinkmagic
    return notebook


@pytest.mark.matrix(2)
@pytest.mark.parametrize(
    ("first_line", "follows", "said"),
    [
        ("%%flinkgraph looped\n", "last.show()", "nothing is left to run: 1 loop has run, nothing is deferred"),
        ("%%flinkgraph looped --run\n", "rows = last.collect()", "nothing is left to run: 1 loop has run"),
        ("%%flinkgraph looped\n", "last.write.mode('overwrite').json('out')", ""),
        ("", "rows = last.collect()", ""),
    ],
)
def test_a_loop_shows_its_graph_and_how_it_went(loops, first_line: str, follows: str, said: str) -> None:
    cell = loops.run(first_line + LOOP + follows)
    assert cell.error is None
    shown = [bundle for bundle in cell.displays if bundle.get("text/plain", "").startswith("doubling")]
    assert [line.split(" · ")[0] for line in loops.names["seen"]] == [
        f"doubling ▶ RUNNING superstep {number} of 9" for number in (1, 2, 3)
    ]
    assert " · total 1.74e+03 · " in loops.names["seen"][-1]
    told = shown[-1]["text/plain"].splitlines()
    assert told[0] == "doubling: FINISHED, 3 supersteps, converged"
    assert [line.partition(":")[0].strip() for line in told[1:]] == ["1", "2", "3"]
    assert told[-1].endswith("enough True, total 3480")
    assert "IterationSource" in shown[-1]["image/svg+xml"]
    assert "FINISHED, 3 supersteps, converged" in shown[-1]["text/html"]
    assert "nothing to compile" not in cell.stdout
    assert said in cell.stdout


def test_a_terminal_shows_the_graph_as_text(notebook) -> None:
    notebook.names["flinkmagic"] = flinkmagic
    cell = notebook.run(LOOP + "last.count()")
    assert cell.value == 3
    lines = cell.stdout.splitlines()
    assert any("Sink: result" in line for line in lines)
    assert "doubling: FINISHED, 3 supersteps, converged" in lines


def test_a_line_that_runs_loops_one_after_the_other_shows_the_last_one(loops) -> None:
    body = "for n in (1, 2):\n    " + ONCE.format("df", "n", "again")
    body += ONCE.format("flinkmagic.iterate(df, lambda one: one, max_iterations=1, name='inner')", 2, "outer")
    cell = loops.run(body)
    assert cell.error is None
    last = {place: bundle["text/plain"] for place, bundle in zip(cell.places, cell.displays, strict=True)}
    assert [text.splitlines()[0] for text in last.values()] == [
        "again: FINISHED, 2 supersteps",
        "outer: FINISHED, 2 supersteps",
    ]


def test_a_loop_that_fails_or_is_cancelled_says_so_without_a_traceback(loops) -> None:
    wrong = loops.run(ONCE.format("7", 2, "wrong"))
    assert type(wrong.error).__name__ == "IterationArgumentsError"
    assert wrong.displays[-1]["text/plain"] == "wrong: FAILED, 0 supersteps"
    cell = loops.run(
        "def stop(before, after):\n"
        "    flinkmagic.iterations()[-1].cancel()\n"
        "    return False\n"
        "flinkmagic.iterate(spark.range(4), lambda df: df, max_iterations=3, until=stop, name='ended')"
    )
    assert cell.displays[-1]["text/plain"].startswith("ended: CANCELED, 1 superstep")
    assert "Traceback" not in cell.stdout
    assert "IterationCancelledError: The loop 'ended' was cancelled after 1 finished superstep." in cell.stdout


def test_beside_the_graph_of_what_ran_on_the_way_nothing_is_left(loops, tmp_path) -> None:
    loops.names["at"] = f"{tmp_path}/early"
    cell = loops.run("%%flinkgraph early --run\nspark.range(3).write.json(at)\nprint(spark.read.json(at).count())")
    assert cell.error is None
    assert cell.stdout.startswith("3\n")
    assert cell.stdout.endswith("nothing is left to run: 1 write has run on the way, nothing is deferred\n")


def test_an_interrupt_shows_the_users_line_and_none_of_ours(loops) -> None:
    cell = loops.run(
        "def stopped(df):\n"
        "    raise KeyboardInterrupt\n"
        "flinkmagic.iterate(spark.range(4), stopped, max_iterations=3, name='halted')"
    )
    assert isinstance(cell.error, KeyboardInterrupt)
    assert "flinkmagic.iterate(spark.range(4), stopped, max_iterations=3, name='halted')" in cell.stdout
    assert "It has cancelled the loop 'halted' after 0 finished supersteps." in cell.stdout
    assert "iterate.py" not in cell.stdout
    assert cell.displays[-1]["text/plain"] == "halted: CANCELED, 0 supersteps"
