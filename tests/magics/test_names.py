"""Names: of graphs, of what they are made of, and of what they have yet to write."""

from __future__ import annotations

import pytest

from flinkmagic.session import CompiledGraph


@pytest.mark.parametrize("name", ["spark", "sales", "late", "print"])
def test_a_graph_replaces_no_variable_that_is_none(notebook, name: str) -> None:
    notebook.names["sales"] = [1, 2]
    before = notebook.names.get(name)
    cell = notebook.run(f"%%flinkgraph {name}\nlate = spark.range(9).groupBy().count()")
    assert cell.error is None
    assert f"The variable {name} stays what it is" in cell.stdout
    if name != "late":
        assert notebook.names.get(name) is before
    assert notebook.names["late"].columns == ["count"]
    shown = notebook.run(f"%flinkgraph {name}").value
    assert isinstance(shown, CompiledGraph)
    assert shown.name == name
    assert notebook.run(f"%flinkrun {name}").error is None
    assert notebook.names["late"].is_cached
    # A variable of the user's that holds a graph is replaced by the cell that defines it again.
    notebook.run("%%flinkgraph free\nlate = spark.range(9).groupBy().count()")
    first = notebook.names["free"]
    notebook.run("%%flinkgraph free\nlate = spark.range(9).groupBy().count()")
    assert isinstance(notebook.names["free"], CompiledGraph)
    assert notebook.names["free"] is not first


def test_an_unnamed_cell_has_its_number_for_a_name(notebook) -> None:
    number = notebook.shell.execution_count
    cell = notebook.run("%%flinkgraph --parallelism 2\ntotal = spark.range(9).groupBy().count()")
    assert cell.error is None
    assert notebook.names[f"cell_{number}"].options.parallelism == 2
    assert notebook.run(f"%flinkrun cell_{number}").error is None


def test_all_dataframes_that_are_named_are_results(notebook) -> None:
    notebook.run("%%flinkgraph prep\nx = spark.range(9).groupBy((F.col('id') % 3).alias('k')).count()")
    notebook.run("%%flinkgraph more\ny = x.orderBy('k')")
    graph = notebook.run("%flinkgraph x y --name both").value
    assert [sink.name for sink in graph.sinks] == ["x", "y"]
    notebook.run("%flinkrun both")
    assert notebook.names["both"].jobs[-1].result("x").count() == 3
    assert notebook.names["both"].jobs[-1].result("y").count() == 3


def test_an_expression_is_a_dataframe_too(notebook) -> None:
    notebook.run("df = spark.range(9).withColumn('x', F.col('id') % 3)\nframes = {'a b': df.limit(2)}")
    graph = notebook.run("""%flinkgraph df.groupBy("x").count() frames["a b"] df --name exprs --parallelism 2""").value
    assert [sink.name for sink in graph.sinks] == ["result", "result2", "df"]
    notebook.run("%flinkrun exprs")
    assert graph.jobs[-1].result("result").count() == 3
    assert graph.jobs[-1].result("result2").count() == 2
    wrong = notebook.run("%flinkgraph df.nothing('x')")
    assert type(wrong.error).__name__ in ("AttributeError", "PySparkAttributeError")
    wrong = notebook.run("%flinkgraph df frames")
    assert str(wrong.error) == "frames must be a DataFrame, not dict."


def test_runs_of_a_graph_that_is_defined_again_stay_listed(notebook, tmp_path) -> None:
    cell = "%%flinkgraph named_twice --run\ntotal = spark.range(9).groupBy().count()"
    notebook.run(cell)
    notebook.run(cell)
    listed = [line.split()[:3] for line in notebook.run("%flinkjobs named_twice").stdout.splitlines()]
    assert listed[1:3] == [["named_twice", "1", "FINISHED"], ["named_twice", "2", "FINISHED"]]
    notebook.run(
        "%%flinkgraph listed_early --run\n"
        f"spark.range(3).write.json('{tmp_path}/out')\n"
        f"print(spark.read.json('{tmp_path}/out').count())\n"
    )
    listed = [line.split()[:3] for line in notebook.run("%flinkjobs listed_early").stdout.splitlines()]
    assert listed == [["graph", "run", "status"], ["listed_early", "1", "FINISHED"]]


@pytest.mark.matrix(2)
@pytest.mark.parametrize("magic", ["", "%%flinkgraph reader\n"])
def test_who_looks_for_what_is_not_written_yet_is_told(notebook, tmp_path, magic: str) -> None:
    notebook.run(
        "%%flinkgraph writer\n"
        f"spark.range(3).write.parquet('{tmp_path}/yet_to_come')\n"
        "spark.range(3).write.saveAsTable('table_yet_to_come')\n"
    )
    read = f"spark.read.parquet('{tmp_path}/yet_to_come')"
    for line in (read, "spark.table('table_yet_to_come')", "open('yet_to_come')"):
        cell = notebook.run(magic + line)
        assert cell.error is not None
        assert "yet_to_come has yet to be written by writer (cell " in cell.stderr
        assert "Run it: %flinkrun writer" in cell.stderr
    assert notebook.run(magic + f"spark.read.parquet('{tmp_path}/nobody_s')").stderr == ""
    assert notebook.run("%flinkrun writer").error is None
    assert notebook.run(magic + f"{read}.count()").value == 3
    notebook.run("spark.sql('DROP TABLE table_yet_to_come')")
    assert "yet to be" not in notebook.run(magic + "spark.table('table_yet_to_come')").stderr


def test_a_cell_that_reads_what_is_about_to_be_overwritten_is_told(notebook, tmp_path) -> None:
    notebook.run(f"spark.range(2).write.parquet('{tmp_path}/stale')")
    notebook.run(f"%%flinkgraph writer\nspark.range(5).write.mode('overwrite').parquet('{tmp_path}/stale')")
    cell = notebook.run(f"%%flinkgraph reader\nspark.read.parquet('{tmp_path}/stale').count()")
    assert cell.value == 2
    assert "line 2: read as it is now; file:" in cell.stdout
    assert "stale has yet to be written by writer (cell " in cell.stdout
    notebook.run("%flinkrun writer")
    cell = notebook.run(f"%%flinkgraph reader\nspark.read.parquet('{tmp_path}/stale').count()")
    assert cell.value == 5
    assert "yet to be" not in cell.stdout
