"""`%flinkrun --stale`: cells whose inputs have changed since they ran, and their code executed again."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

LOAD = "numbers = spark.read.schema('id LONG').json(f'{at}/numbers')"


@pytest.fixture
def on(notebook: Any, tmp_path: Path) -> Any:
    """A notebook with the mode on, and a folder of numbers."""
    notebook.names["at"] = str(tmp_path)
    (tmp_path / "numbers").mkdir()
    (tmp_path / "numbers" / "first.json").write_text("\n".join(f'{{"id": {n}}}' for n in range(4)))
    notebook.run("%flinkgraph on")
    yield notebook
    notebook.run("%flinkgraph off")


def ran(notebook: Any, code: str) -> str:
    """Run a cell; return what the list calls it."""
    cell = notebook.run(code)
    assert cell.error is None
    return f"cell {notebook.shell.execution_count - 1}"


def stale(notebook: Any) -> dict[str, list[str]]:
    """The list of stale cells, with why each is."""
    lines = notebook.run("%flinkrun --stale").stdout.splitlines()
    if lines[0].startswith("No cell is stale"):
        return {}
    end = next(number for number, line in enumerate(lines) if "stale, of" in line)
    rows = [re.split(r"\s{2,}", line) for line in lines[:end]]
    assert rows.pop(0) == ["cell", "defines", "stale because"]
    assert lines[end].startswith(f"{len(rows)} cell")
    return {cell: why.split("; ") for cell, _, why in rows}


def append(folder: Path, number: int) -> None:
    (folder / "numbers" / "more.json").write_text(f'{{"id": {number}}}')


def test_a_new_file_makes_the_cells_stale_that_have_listed_its_folder(on, tmp_path) -> None:
    load, late = ran(on, LOAD), ran(on, "late = numbers.where('id > 1')")
    count = ran(on, "found = late.count()")
    ran(on, "other = spark.range(3).count()")
    unnamed = ran(on, "spark.read.schema('id LONG').json(f'{at}/numbers').count()")
    assert stale(on) == {}
    append(tmp_path, 9)
    assert stale(on) == {cell: ["file numbers/more.json is new"] for cell in (load, late, count, unnamed)}
    cell = on.run("%flinkrun --stale --yes")
    assert cell.error is None
    assert f"Executed again: {load}, {late}, {count}, {unnamed}. No cell is stale now." in cell.stdout
    assert on.names["found"] == 3
    assert stale(on) == {}
    append(tmp_path, 10**6)
    assert stale(on) == {cell: ["file numbers/more.json changed"] for cell in (load, late, count, unnamed)}


def test_a_cell_that_ran_again_makes_its_readers_stale_only_if_its_effect_is_another_one(on) -> None:
    ran(on, LOAD)
    text = "late = numbers.where(f'id > {limit}').groupBy('id').count()"
    ran(on, "limit = 1")
    ran(on, text)
    total = ran(on, "total = late.count()")
    on.run(LOAD)
    on.run("limit = 1")
    late = ran(on, text)
    assert stale(on) == {}, "the same values, made again"
    by = ran(on, "limit = 2")
    assert stale(on) == {
        late: [f"{by} has replaced `limit`"],
        total: [f"{late}, which defines `late`, is stale"],
    }
    again = on.run("%flinkrun --stale --yes")
    assert f"Executed again: {late}, {total}." in again.stdout
    assert on.names["total"] == 1
    ran(on, "limit = 5 - 3")
    assert stale(on) == {}


def test_functions_settings_and_names_taken_further(on, spark) -> None:
    spark.conf.unset("spark.sql.shuffle.partitions")  # which a test before may have set to its default
    ran(on, "def plus(n):\n    return n + 1")
    ran(on, "df = spark.range(8)")
    first = ran(on, "first = df.count()")
    udf = ran(on, "ones = df.select(F.udf(plus, 'long')('id').alias('n')).collect()")
    ran(on, "df = df.where('id > 5')")
    second = ran(on, "second = df.count()")
    assert stale(on) == {}, "the name was only taken further"
    new = ran(on, "def plus(n):\n    return n + 2")
    assert stale(on) == {udf: [f"function plus changed ({new})"]}
    ran(on, "ones = df.select(F.udf(plus, 'long')('id').alias('n')).collect()")
    try:
        spark.conf.set("spark.sql.shuffle.partitions", "3")
        assert stale(on)[first] == stale(on)[second] == ["setting spark.sql.shuffle.partitions changed"]
    finally:
        spark.conf.unset("spark.sql.shuffle.partitions")
    other = ran(on, "df = spark.range(2)")
    assert stale(on)[second] == [f"{other} has replaced `df`"]


def test_a_cell_that_raises_ends_what_is_executed_again(on) -> None:
    ran(on, "limit = 3")
    check = ran(on, "assert limit < 9\nchecked = limit")
    after = ran(on, "after = checked + 1")
    ran(on, "limit = 10")
    assert list(stale(on)) == [check, after]
    cell = on.run("%flinkrun --stale --yes")
    assert type(cell.error).__name__ == "StaleRunStoppedError"
    assert (cell.error.ran, cell.error.failed, cell.error.left) == ([], check, [after])
    assert "AssertionError" in cell.stdout, "the cell's own error is shown"
    assert on.names["after"] == 4
    assert list(stale(on)) == [check, after]


def test_the_words_of_the_magic(on) -> None:
    for line, said in (
        ("%flinkrun", "required: name"),
        ("%flinkrun --yes", "goes with --stale"),
        ("%flinkrun delays --stale", "goes without delays"),
        ("%flinkrun --stale --full", "goes without --full"),
    ):
        assert said in str(on.run(line).error) + on.run(line).stdout + on.run(line).stderr


def test_the_whole_graph_marks_what_stale_cells_have_made(on, tmp_path) -> None:
    load = ran(on, f"{LOAD}\nloaded = numbers.groupBy('id').count()")
    other = ran(on, "other = spark.range(9).groupBy('id').count()")
    fresh = on.run("%flinkgraph").value._repr_mimebundle_()
    assert "stale" not in fresh["text/plain"] + fresh["text/html"]
    append(tmp_path, 9)
    shown = on.run("%flinkgraph").value._repr_mimebundle_()
    assert f"stale: {load}: file numbers/more.json is new" in shown["text/plain"]
    marked = [line for line in shown["text/plain"].splitlines() if "(stale)" in line]
    assert marked
    assert not any(other in line for line in marked)
    assert ">stale<" in shown["image/svg+xml"]
    assert f"stale: {load}" in shown["text/html"]


def test_the_whole_graph_has_what_only_actions_continue_from(on) -> None:
    ran(on, "halves = spark.range(8).groupBy('id').count()\nhalves.where('id > 3').count()")
    shown = on.run("%flinkgraph").value._repr_mimebundle_()["text/plain"]
    assert "groupBy('id').count()" in shown
    ran(on, "large = halves.where('count > 1')")
    shown = on.run("%flinkgraph").value._repr_mimebundle_()["text/plain"]
    assert shown.count("Sink: ") == 1
    assert "where('count > 1')" in shown


def test_cells_of_graphs_run_again_as_graphs(notebook, tmp_path) -> None:
    notebook.names["at"] = str(tmp_path)
    (tmp_path / "numbers").mkdir()
    append(tmp_path, 1)
    first = ran(notebook, f"%%flinkgraph groups --run\n{LOAD}\ngroups_of = numbers.groupBy('id').count()")
    plain = ran(notebook, "size = groups_of.count()")
    second = ran(notebook, "%%flinkgraph sums --run\ngroups_of.agg(F.sum('id')).write.json(f'{at}/sums')")
    assert stale(notebook) == {}, "a job has bound names to the rows that it has kept"
    append(tmp_path, 20)
    assert list(stale(notebook)) == [first, second]
    cell = notebook.run("%flinkrun --stale --yes")
    assert cell.error.failed == second, "its second write to the path, as when IPython runs the cell"
    assert [row.id for row in notebook.names["groups_of"].collect()] == [20]
    assert list(stale(notebook)) == [second]
    assert plain not in stale(notebook), "it ran while nothing was captured"


@pytest.mark.long
def test_in_a_kernel_outputs_appear_below_the_running_cell(kernel, folder) -> None:
    (folder / "numbers").mkdir()
    append(folder, 1)
    kernel.run("%flinkgraph on", cell="mode")
    kernel.run(f"numbers = spark.read.schema('id LONG').json('{folder}/numbers')", cell="load")
    kernel.run("%%flinkgraph one\ngroups_of_one = numbers.groupBy('id').count()", cell="one")
    kernel.run("%%flinkgraph\nnumbers.groupBy('id').count().write.mode('overwrite').json('two')", cell="two")
    assert kernel.run("numbers.count()", cell="count").value["text/plain"] == "1"
    kernel.run("limit = 5\nnumbers.where(f'id > {limit}').count()", cell="edited")
    kernel.run("limit = 0\nnumbers.where(f'id > {limit}').count()", cell="edited")
    kernel.run("import asyncio\nawait asyncio.sleep(0)\nawaited = numbers.count()", cell="awaits")
    (folder / "numbers" / "others.json").write_text('{"id": 2}')
    told = kernel.run("%flinkrun --stale", cell="list").stdout
    cells = ["load", "one", "two", "count", "edited", "awaits"]
    assert len([line for line in told.splitlines() if re.match(r"cell \d", line)]) == len(cells), (
        "an edited cell is one"
    )
    assert "edited or deleted" in told
    names = "sorted(get_ipython().magics_manager.registry['FlinkMagics'].graphs)"
    before = kernel.run(names).value
    again = kernel.run("%flinkrun --stale --yes", cell="again")
    assert again.status == "error"
    assert "awaits at its top level" in again.error
    assert again.value["text/plain"] == "2", "that of the last cell with a value"
    assert len([one for one in again.displays if "image/svg+xml" in one]) == 2, "of both graphs"
    assert kernel.run(names).value == before, "under their names, and those of their cells"
    kernel.run("import asyncio\nawait asyncio.sleep(0)\nawaited = numbers.count()", cell="awaits")
    assert kernel.run("%flinkrun --stale", cell="list").stdout.startswith("No cell is stale, of ")
    kernel.run("%flinkgraph off")


def test_a_function_that_imports_a_library_is_no_other_one_once_it_has_been_called(on, monkeypatch) -> None:
    monkeypatch.delitem(sys.modules, "graphviz", raising=False)
    ran(on, "def shown(df):\n    import graphviz\n    return df.count()")
    ran(on, "n = shown(spark.range(3))")
    assert "graphviz" in sys.modules
    assert stale(on) == {}
