"""Names after a run: they stand for what was computed, and for nothing else."""

from __future__ import annotations

import gc
import textwrap
import time
from typing import Any

import pytest
from pyspark.sql import functions as F

import flinkmagic
from flinkmagic.capturing.program import Program
from flinkmagic.capturing.source_code.source_location import CellSource
from flinkmagic.errors.capturing import OverwritesInputError
from flinkmagic.scheduling.job_status import JobStatus


class Notebook:
    """Cells that are captured one after the other in one namespace, and Spark's own count of what ran."""

    def __init__(self, spark: Any, folder: Any) -> None:
        self.spark = spark
        self.calls = spark.sparkContext.accumulator(0)
        calls = self.calls

        @F.udf("long")
        def doubled(value):
            calls.add(1)
            return value * 2

        self.names: dict[str, Any] = {"spark": spark, "F": F, "out": str(folder), "doubled": doubled}
        self.programs: list[Program] = []

    def cell(self, name: str, source: str) -> Program:
        source = textwrap.dedent(source)
        cell = CellSource(f"cell {len(self.programs)}", f"/tmp/ipykernel_2/{len(self.programs)}.py", source)
        with flinkmagic.capture(
            self.spark, name=name, location=cell, namespace=self.names, earlier=self.programs
        ) as program:
            exec(compile(source, cell.filename, "exec"), self.names)
        self.programs.append(program)
        return program

    def are_kept(self, name: str) -> bool:
        """Whether Spark keeps rows of that name."""
        return f"In-memory table {name} (" in self.spark.sparkContext._jsc.sc().getPersistentRDDs().toString()


SHARED = """\
    twice = spark.range(0, 60, 1, 2).select("id", doubled("id").alias("twice"))
    twice.where("twice < 20").write.mode("overwrite").json(f"{out}/low")
    twice.agg(F.sum("twice")).write.mode("overwrite").json(f"{out}/sum")
"""


@pytest.fixture
def notebook(spark: Any, tmp_path: Any) -> Notebook:
    return Notebook(spark, tmp_path)


def test_a_name_of_which_only_some_columns_are_kept_stays_as_it_is(notebook):
    parts = notebook.cell(
        "parts",
        """\
        parts = spark.range(0, 60, 1, 2).select("id", doubled("id").alias("twice"), doubled(-F.col("id")).alias("less"))
        parts.agg(F.sum("twice")).write.mode("overwrite").json(f"{out}/sum")
        parts.agg(F.max("twice")).write.mode("overwrite").json(f"{out}/max")
        """,
    )
    before = notebook.names["parts"]
    graph = flinkmagic.compile(parts, "parts", parallelism=2)
    finished(graph)
    assert notebook.are_kept("parts")
    assert notebook.names["parts"] is before
    rows = notebook.names["parts"].where("id < 3").orderBy("id").collect()
    assert [row.less for row in rows] == [0, -2, -4]


@pytest.fixture
def shared(notebook: Notebook) -> Notebook:
    notebook.cell("shared", SHARED)
    return notebook


def finished(graph: Any) -> Any:
    job = graph.run()
    assert job.status is JobStatus.FINISHED, job.exceptions()
    return job


def test_a_boundary_s_name_stands_for_its_rows(shared: Notebook, capsys: pytest.CaptureFixture[str]) -> None:
    original = shared.names["twice"]
    graph = flinkmagic.compile(shared.programs[0], parallelism=2)
    assert shared.names["twice"] is original
    job = finished(graph)
    kept = shared.names["twice"]
    assert kept is not original
    assert (kept.is_cached, kept.sparkSession is shared.spark, kept.schema == original.schema) == (True, True, True)
    assert shared.calls.value == 60
    assert sorted(kept.collect()) == [(number, 2 * number) for number in range(60)]
    assert (kept.count(), kept.where(original.twice >= 100).count(), len(kept.toPandas())) == (60, 10, 60)
    kept.orderBy("id").show(2)
    cells = [line.split("|")[1:3] for line in capsys.readouterr().out.splitlines() if "|" in line]
    assert [[text.strip() for text in row] for row in cells] == [["id", "twice"], ["0", "0"], ["1", "2"]]
    assert shared.calls.value == 60, "nothing was computed again"
    assert original.count() == 60
    assert sum(row.twice for row in original.collect()) == 3540
    assert shared.calls.value > 60, "the DataFrame itself is computed as ever"
    job.release()
    assert shared.names["twice"] is original


def test_a_result_s_name_stands_for_its_rows(notebook: Notebook) -> None:
    program = notebook.cell("results", 'sums = spark.range(0, 60, 1, 2).select(doubled("id").alias("twice"))')
    original = notebook.names["sums"]
    job = finished(flinkmagic.compile(program, parallelism=2))
    assert notebook.names["sums"] is job.result("sums") is not original
    kept = notebook.names["sums"]
    assert sum(row.twice for row in kept.collect()) == 3540
    # A column that was taken of the DataFrame before is a column of the rows.
    more = kept.where(original["twice"] >= 100).select((original["twice"] + 1).alias("more"))
    assert more.agg(F.min("more")).first()[0] == 101
    assert kept.alias("a").join(kept.alias("b"), F.col("a.twice") == F.col("b.twice") + 2).count() == 59
    assert kept.join(kept.where("twice > 9"), "twice").count() == 55
    assert notebook.calls.value == 60


def test_a_result_with_one_column_twice_stands_for_its_rows(notebook: Notebook) -> None:
    program = notebook.cell("results", 'both = spark.range(3).groupBy("id").count().select("id", "id")')
    job = finished(flinkmagic.compile(program, parallelism=2))
    assert notebook.names["both"] is job.result("both")
    assert sorted(notebook.names["both"].collect()) == [(0, 0), (1, 1), (2, 2)]


def test_only_a_name_that_still_holds_the_program_s_dataframe_is_bound_again(shared: Notebook) -> None:
    other = shared.spark.range(3)
    graph = flinkmagic.compile(shared.programs[0], parallelism=2)
    shared.names.update(also=shared.names["twice"], _hidden=shared.names["twice"], twice=other)
    finished(graph)
    assert shared.names["twice"] is other
    assert shared.names["also"].is_cached
    assert not shared.names["_hidden"].is_cached


def test_a_later_run_restores_names_and_binds_them_to_its_own_rows(shared: Notebook) -> None:
    original = shared.names["twice"]
    graph = flinkmagic.compile(shared.programs[0], parallelism=2)
    finished(graph)
    first = shared.names["twice"]
    finished(graph)
    second = shared.names["twice"]
    assert len({id(original), id(first), id(second)}) == 3
    graph.jobs[0].release()
    assert shared.names["twice"] is second
    graph.jobs[1].release()
    assert shared.names["twice"] is original


def test_names_are_restored_when_no_name_holds_the_graph_any_more(shared: Notebook) -> None:
    original = shared.names["twice"]
    graph = flinkmagic.compile(shared.programs[0], parallelism=2)
    finished(graph)
    assert shared.names["twice"] is not original
    del graph
    gc.collect()
    assert shared.names["twice"] is original


def test_names_are_left_alone_where_that_is_asked_for_or_the_run_failed(shared: Notebook, tmp_path: Any) -> None:
    original = shared.names["twice"]
    finished(flinkmagic.compile(shared.programs[0], parallelism=2, retain="none"))
    assert shared.names["twice"] is original
    program = shared.cell(
        "failing",
        """\
        twice.where("twice < 20").write.mode("overwrite").json(f"{out}/low")
        twice.select(F.assert_true(F.col("twice") < 0)).write.mode("overwrite").json(f"{out}/none")
        """,
    )
    job = flinkmagic.compile(program, parallelism=2).run()
    assert job.status is JobStatus.FAILED
    assert shared.names["twice"] is original


def test_a_block_without_a_namespace_keeps_its_variables(spark: Any, tmp_path: Any) -> None:
    with flinkmagic.capture(spark) as program:
        counts = spark.range(0, 60, 1, 2).groupBy((F.col("id") % 7).alias("k")).count()
        counts.write.json(str(tmp_path / "counts"))
        counts.where("k = 1").write.json(str(tmp_path / "one"))
    original = counts
    graph = flinkmagic.compile(program, parallelism=2)
    finished(graph)
    assert [stage.variable for stage in graph.shared] == ["counts"]
    assert counts is original


def test_what_is_defined_again_sees_new_files(notebook: Notebook, tmp_path: Any) -> None:
    spark, path = notebook.spark, str(tmp_path / "grows")
    spark.range(10).selectExpr("id % 2 AS k").write.parquet(path)
    notebook.names["path"] = path
    define = 'counts = spark.read.parquet(path).groupBy("k").count()\n'
    program = notebook.cell(
        "grows",
        define + 'counts.where("k = 0").write.json(f"{out}/even")\ncounts.agg(F.sum("count")).write.json(f"{out}/sum")',
    )
    finished(flinkmagic.compile(program, parallelism=2))
    assert sorted(notebook.names["counts"].collect()) == [(0, 5), (1, 5)]
    spark.range(10).selectExpr("id % 2 AS k").write.mode("append").parquet(path)
    again = spark.read.parquet(path).groupBy("k").count()
    assert sorted(again.collect()) == [(0, 10), (1, 10)]
    assert sorted(notebook.names["counts"].collect()) == [(0, 5), (1, 5)], "as after persist()"


def test_a_later_cell_goes_on_from_the_rows(shared: Notebook) -> None:
    first = flinkmagic.compile(shared.programs[0], parallelism=2)
    finished(first)
    program = shared.cell(
        "later", 'high = twice.where("twice >= 100")\nhigh.write.mode("overwrite").json(f"{out}/high")'
    )
    assert [str(use) for use in program.uses] == ["twice of shared, cell 0"]
    graph = flinkmagic.compile(program, parallelism=2)
    [vertex] = graph.job_graph.vertices_in_topological_order()
    assert vertex.name == "CacheRead: twice -> In-memory table twice -> Filter -> Sink: json high"
    scan = next(node for node in vertex.operators if node.name.startswith("In-memory"))
    assert (scan.metadata["variable"], scan.metadata["line"]) == ("twice", 1)
    finished(graph)
    assert shared.calls.value == 60
    assert shared.spark.read.json(f"{shared.names['out']}/high").count() == 10


def test_both_cells_as_one_graph_share_again(shared: Notebook) -> None:
    first = flinkmagic.compile(shared.programs[0], parallelism=2)
    finished(first)
    shared.cell("later", 'twice.where("twice >= 100").write.mode("overwrite").json(f"{out}/high")')
    whole = flinkmagic.compile(shared.programs, name="whole", parallelism=2)
    assert [(stage.variable, stage.sinks) for stage in whole.shared] == [("twice", ("low", "sum"))]


def test_the_input_of_kept_rows_is_not_overwritten_by_a_later_cell(notebook: Notebook, tmp_path: Any) -> None:
    path = str(tmp_path / "input")
    notebook.spark.range(10).write.parquet(path)
    notebook.names["path"] = path
    program = notebook.cell(
        "first",
        """\
        counts = spark.read.parquet(path).groupBy("id").count()
        counts.where("id = 0").write.json(f"{out}/zero")
        counts.agg(F.sum("count")).write.json(f"{out}/sum")
        """,
    )
    graph = flinkmagic.compile(program, parallelism=2)
    finished(graph)
    assert notebook.names["counts"].is_cached
    with pytest.raises(OverwritesInputError, match="input"):
        notebook.cell("second", 'counts.write.mode("overwrite").parquet(path)')
    assert notebook.spark.read.parquet(path).count() == 10


def test_lost_rows_are_computed_again(shared: Notebook) -> None:
    graph = flinkmagic.compile(shared.programs[0], parallelism=2)
    finished(graph)
    context = shared.spark.sparkContext._jsc
    expected = sorted(shared.names["twice"].collect())
    for number in list(context.getPersistentRDDs()):
        context.sc().cleaner().get().doCleanupRDD(number, True)
    assert sorted(shared.names["twice"].collect()) == expected
    assert shared.calls.value == 120


def test_the_rows_of_a_cancelled_job_are_let_go_of(notebook: Notebook) -> None:
    notebook.names["slow"] = F.udf(lambda value: __import__("time").sleep(60) or value, "long")
    program = notebook.cell(
        "slow",
        """\
        dropped = spark.range(0, 60, 1, 2).groupBy((F.col("id") % 30).alias("id")).count()
        dropped.where("id < 3").write.json(f"{out}/few")
        dropped.select(slow("id")).write.json(f"{out}/slow")
        """,
    )
    job = flinkmagic.compile(program, parallelism=2).run(wait=False)
    deadline = time.monotonic() + 60
    while not any("slow" in task.vertex and task.state.name == "RUNNING" for task in job.tasks()):
        assert not job.status.is_terminal
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert notebook.are_kept("dropped")
    job.cancel()
    assert job.wait(60) is JobStatus.CANCELED
    assert not notebook.are_kept("dropped")
    assert not notebook.names["dropped"].is_cached
