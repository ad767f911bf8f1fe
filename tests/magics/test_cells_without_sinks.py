"""Cells that write nothing: they run as they are, and tell in a line what there was."""

from __future__ import annotations

import pytest

from flinkmagic.session import CompiledGraph


@pytest.mark.parametrize(
    ("body", "value", "told"),
    [
        ("1 + 1", 2, "the cell has run"),
        ("1 + 1;", None, "the cell has run"),
        ("x = 1", None, "the cell has run"),
        ("def clean(df):\n    return df.dropna()", None, "the cell has run"),
        ("spark.range(3).createOrReplaceTempView('three_numbers')", None, "the cell has run"),
        ("numbers = spark.range(4)\nnumbers.show()\nnumbers.count()", 4, "2 actions have run"),
        ("spark.range(5).collect()[0].id", 0, "1 action has run"),
        ("ticks = spark.readStream.format('rate').load()", None, "the cell has run"),
        ("spark.sparkContext.parallelize([1, 2, 3], 1).map(lambda n: n + 1).sum()", 9, "the cell has run"),
        ("kept = spark.range(6).cache()\nkept.count()\nkept.unpersist();", None, "1 action has run"),
    ],
)
@pytest.mark.parametrize("options", ["", " --run"])
def test_a_cell_without_a_sink_runs_and_tells_it(notebook, body: str, value: object, told: str, options: str) -> None:
    cell = notebook.run(f"%%flinkgraph bare{options}\n{body}")
    assert cell.error is None
    assert cell.value == value
    assert cell.stdout.splitlines()[-1 if value is None else -2 :][0] == (
        f"nothing to compile: {told}, nothing is deferred"
    )
    assert cell.stderr == ""
    assert "bare" not in notebook.names


def test_a_name_that_only_filters_is_shown_and_not_computed(notebook) -> None:
    cell = notebook.run("%%flinkgraph light --run\nlow = spark.range(9).where('id < 3')")
    assert "low only reads, filters and projects: it is shown, and nothing is run for it" in cell.stdout
    assert "Run it: %flinkrun light" in cell.displays[-1]["text/plain"] + cell.stdout
    light = notebook.names["light"]
    assert isinstance(light, CompiledGraph)
    assert light.jobs == []
    assert not notebook.names["low"].is_cached
    notebook.run("%flinkrun light")
    assert notebook.names["low"].is_cached, "asked for by name it is computed"


def test_of_several_names_those_are_computed_that_are_worth_it(notebook) -> None:
    cell = notebook.run(
        "%%flinkgraph mixed --run\n"
        "low = spark.range(9).where('id < 3')\n"
        "high = spark.range(9).where('id > 3')\n"
        "totals = spark.range(9).groupBy((F.col('id') % 2).alias('odd')).count()\n"
        "shown = spark.range(9).groupBy().count()\n"
        "shown.show()\n"
    )
    assert cell.error is None
    assert "low, high only read, filter and project: they are shown, and nothing is run for them" in cell.stdout
    (job,) = notebook.names["mixed"].jobs
    assert [sink.name for sink in job.sinks] == ["totals"]
    assert notebook.names["totals"].is_cached
    assert not notebook.names["low"].is_cached
    assert not notebook.names["shown"].is_cached, "it has been computed once"


def test_what_several_names_share_is_worth_it(notebook) -> None:
    notebook.run(
        "%%flinkgraph sharing --run\n"
        "totals = spark.range(90).groupBy((F.col('id') % 9).alias('k')).count()\n"
        "low = totals.where('k < 3')\nhigh = totals.where('k > 3')\n"
    )
    (job,) = notebook.names["sharing"].jobs
    assert [sink.name for sink in job.sinks] == ["low", "high"]


def test_nothing_has_been_computed_yet_of_a_graph_without_writes(notebook) -> None:
    cell = notebook.run("%%flinkgraph lazy\ntotal = spark.range(9).groupBy().count()")
    text = cell.displays[-1]["text/plain"]
    assert "Nothing has been computed yet. Run it: %flinkrun lazy" in text
    assert "written" not in text
