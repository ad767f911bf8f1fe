"""What holds on every version of Spark that the project runs on, from a cell to its results.

`.ci/run` runs this folder against PySpark 3.5 too, in an environment of its own; what 3.5 cannot do is refused by name.
On the newest Spark other tests say the same in more detail, so these are among the long ones.
"""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql.utils import AnalysisException

import flinkmagic
from flinkmagic.capturing.capture_listener import CaptureListener, DeployingListener
from flinkmagic.errors.actions import ActionCancelledError
from flinkmagic.errors.capturing import OverwritesInputError, PendingWriteError, UndeferrableWriteError
from flinkmagic.errors.graph import PipelinedExchangeError
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.session import SessionActions

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def source(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    """2000 rows in four files: id, k (0 to 6), m (0 to 99), with nulls."""
    path = str(tmp_path_factory.mktemp("smoke") / "source")
    rows = spark.range(0, 2000, 1, 4)
    rows.selectExpr("id", "id % 7 AS k", "IF(id % 11 = 0, NULL, id % 100) AS m").write.parquet(path)
    return path


def _rows(frame: Any) -> list[Any]:
    return sorted(frame.collect(), key=str)


def _run(program: Any, **options: Any) -> Any:
    job = flinkmagic.compile(program, name="smoke", parallelism=2, **options).run()
    assert job.status is JobStatus.FINISHED, [str(entry.root.error) for entry in job.exceptions()]
    return job


def test_queries_have_the_rows_and_types_of_a_plain_run(spark: Any, source: str) -> None:
    rows = spark.read.parquet(source)
    names = spark.createDataFrame([(k, f"line {k}") for k in range(5)], "k long, name string")
    rows.createOrReplaceTempView("smoke_rows")
    plus_one = F.udf(lambda value: None if value is None else value + 1, "long")
    twice = F.pandas_udf(lambda values: values * 2, "double")
    queries = {
        "joined": rows.join(F.broadcast(names), "k", "left").groupBy("name").agg(F.avg("m").alias("mean")),
        "merged": rows.hint("merge").join(names, "k").groupBy("name").count(),
        "ranked": rows.withColumn("r", F.row_number().over(Window.partitionBy("k").orderBy("m", "id"))).where("r < 3"),
        "ordered": rows.orderBy(F.desc("m"), "id").limit(13),
        "python": rows.select("id", plus_one("m").alias("m")).groupBy("m").count(),
        "pandas": rows.select("id", twice(F.col("m").cast("double")).alias("m")).groupBy("m").count(),
        "grouped": rows.groupBy("k").applyInPandas(lambda pdf: pdf.nsmallest(1, "id"), rows.schema),
        "subquery": spark.sql("SELECT id FROM smoke_rows WHERE m > (SELECT avg(m) FROM smoke_rows) AND k IN (1, 2)"),
        "rollup": rows.rollup("k").agg(F.countDistinct("m").alias("different")),
        "empty": rows.where("id < 0").groupBy("k").count(),
    }
    job = _run(queries)
    for name, query in queries.items():
        result = job.result(name)
        assert _rows(result) == _rows(query), name
        assert result.schema == query.schema, name


FORMATS = ["parquet", "orc", "json", "csv"]


def test_writes_leave_what_plain_writes_leave(spark: Any, source: str, tmp_path: Path) -> None:
    by_k = spark.read.parquet(source).groupBy("k").agg(F.sum("m").alias("total"))

    def writes(where: str) -> None:
        for file_format in FORMATS:
            by_k.write.format(file_format).save(str(tmp_path / where / file_format))
        by_k.write.partitionBy("k").mode("overwrite").parquet(str(tmp_path / where / "folders"))
        by_k.selectExpr("concat(k, ' ', total)").write.text(str(tmp_path / where / "text"))

    writes("plain")
    with flinkmagic.capture(spark) as program:
        writes("deferred")
    assert not (tmp_path / "deferred").exists()
    job = _run(program)
    assert len(job.sinks) == 6
    for file_format in (*FORMATS, "text", "folders"):
        reader = spark.read.format("parquet" if file_format == "folders" else file_format)
        plain, deferred = (reader.load(str(tmp_path / where / file_format)) for where in ("plain", "deferred"))
        assert _rows(deferred) == _rows(plain)
        assert deferred.schema == plain.schema
    folders = [sorted(path.name for path in (tmp_path / where / "folders").iterdir() if path.is_dir())
               for where in ("plain", "deferred")]  # fmt: skip
    assert folders[0] == folders[1] == [f"k={k}" for k in range(7)]


def test_what_two_sinks_need_is_computed_once(spark: Any, source: str, tmp_path: Path) -> None:
    counted = spark.sparkContext.accumulator(0)

    def count(value: Any) -> Any:
        counted.add(1)
        return value

    with flinkmagic.capture(spark) as program:
        shared = spark.read.parquet(source).select("id", F.udf(count, "long")("k").alias("k")).groupBy("k").count()
        shared.where("k > 2").write.parquet(str(tmp_path / "high"))
        shared.orderBy("k").write.json(str(tmp_path / "all"))
    _run(program)
    assert counted.value == 2000
    assert spark.read.parquet(str(tmp_path / "high")).count() == 4
    assert spark.read.json(str(tmp_path / "all")).count() == 7


def test_a_failure_names_what_was_raised(spark: Any, source: str, tmp_path: Path) -> None:
    def fail(value: Any) -> Any:
        raise KeyError("no such city")

    with flinkmagic.capture(spark) as program:
        spark.read.parquet(source).select(F.udf(fail, "long")("k").alias("k")).write.parquet(str(tmp_path / "out"))
    job = flinkmagic.compile(program, name="smoke").run()
    assert job.status is JobStatus.FAILED
    assert "KeyError: 'no such city'" in str(job.exceptions()[0].root.error)
    assert not (tmp_path / "out" / "_SUCCESS").exists()


def test_cancelling_ends_the_jobs_tasks_and_nothing_else(spark: Any, source: str) -> None:
    def slow(batches: Any) -> Any:
        import time

        time.sleep(120)
        yield from batches

    frame = spark.range(0, 4, 1, 2).mapInPandas(slow, "id long")
    job = flinkmagic.compile({"slow": frame}, name="smoke").run(wait=False)
    started = threading.Event()
    watcher = threading.Thread(target=lambda: _until(lambda: job.tasks(), started))
    watcher.start()
    assert started.wait(60)
    job.cancel()
    assert job.wait(30) is JobStatus.CANCELED
    assert spark.range(5).count() == 5


def _until(holds: Any, event: threading.Event) -> None:
    while not holds():
        event.wait(0.05)
    event.set()


def test_a_job_that_overwrites_what_it_reads_is_refused(spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "own")
    spark.range(5).write.parquet(path)
    with pytest.raises(OverwritesInputError), flinkmagic.capture(spark):
        spark.read.parquet(path).where("id > 2").write.mode("overwrite").parquet(path)
    with pytest.raises(PendingWriteError), flinkmagic.capture(spark):
        _write_and_read(spark, path)
    assert spark.read.parquet(path).count() == 5


def _write_and_read(spark: Any, path: str) -> None:
    spark.range(9).write.mode("overwrite").parquet(path)
    spark.read.parquet(path)


def test_a_database_is_written(spark: Any, source: str, tmp_path: Path) -> None:
    package = "jdbc" if spark.version.startswith("3.") else "iapi.jdbc"
    database = {
        "url": f"jdbc:derby:{tmp_path / 'db'};create=true",
        "table": "APP.TOTALS",
        "properties": {"driver": f"org.apache.derby.{package}.AutoloadedDriver"},
    }
    by_k = spark.read.parquet(source).groupBy("k").count()
    with flinkmagic.capture(spark) as program:
        by_k.write.jdbc(**database)
    assert len(_run(program).tasks()) >= 3
    assert [tuple(row) for row in _rows(spark.read.jdbc(**database))] == [tuple(row) for row in _rows(by_k)]


TABLE_WRITES = {
    "saveAsTable": lambda df: df.write.saveAsTable("smoke_made"),
    "insertInto": lambda df: df.write.insertInto("smoke_there"),
    "create": lambda df: df.writeTo("smoke_made").using("parquet").create(),
}


@pytest.mark.parametrize("method", TABLE_WRITES)
def test_tables_are_written_or_refused_by_name(spark: Any, source: str, method: str) -> None:
    spark.range(2).write.mode("overwrite").saveAsTable("smoke_there")
    rows = spark.read.parquet(source).groupBy("k").count().select("count")
    try:
        if spark.version.startswith("3."):
            with pytest.raises(UndeferrableWriteError, match=rf"{method} cannot be deferred with Spark 3\.5"), \
                    flinkmagic.capture(spark):  # fmt: skip
                TABLE_WRITES[method](rows)
            assert not spark.catalog.tableExists("smoke_made")
            assert spark.table("smoke_there").count() == 2
        else:
            with flinkmagic.capture(spark) as program:
                TABLE_WRITES[method](rows)
            _run(program)
            written = spark.table("smoke_there" if method == "insertInto" else "smoke_made")
            assert written.count() == (9 if method == "insertInto" else 7)
    finally:
        spark.sql("DROP TABLE IF EXISTS smoke_made")
        spark.sql("DROP TABLE smoke_there")


def test_the_magics_show_and_run_a_cell(spark: Any, source: str, tmp_path: Path, capsys: Any) -> None:
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    try:
        shell.run_line_magic("load_ext", "flinkmagic")
        shell.user_ns.update(spark=spark, source=source, out=str(tmp_path / "out"))
        cell = "spark.read.parquet(source).groupBy('k').count().write.parquet(out)"
        shell.run_cell(f"%%flinkgraph smoke --parallelism 2\n{cell}").raise_error()
        assert not (tmp_path / "out").exists()
        shell.run_cell("%flinkrun smoke").raise_error()
        assert shell.user_ns["smoke"].jobs[-1].status is JobStatus.FINISHED
        assert spark.read.parquet(str(tmp_path / "out")).count() == 7
        shell.run_cell("%flinkjobs").raise_error()
        assert "FINISHED" in capsys.readouterr().out
    finally:
        InteractiveShell.clear_instance()


def test_with_nothing_deferred_each_write_is_written_on_its_line(spark: Any, source: str, tmp_path: Path) -> None:
    deployed: list[str] = []
    plain: list[str] = []

    class Lines(DeployingListener):
        def run_pending(self, program: Any) -> None:
            job = flinkmagic.compile(program, name="on_its_line").run()
            assert job.status is JobStatus.FINISHED
            deployed.append(program.writes[-1].name)

        def ran_plainly(self, location: Any, text: str, refusal: Exception, seconds: float) -> None:
            plain.append(type(refusal).__name__)

    by_k = spark.read.parquet(source).groupBy("k").count()
    with flinkmagic.capture(spark, mode="lines", listener=Lines()) as program:
        by_k.write.parquet(str(tmp_path / "out"))
        assert spark.read.parquet(str(tmp_path / "out")).count() == 7
        with pytest.raises(AnalysisException):
            by_k.write.parquet(str(tmp_path / "out"))
        by_k.write.saveAsTable("smoke_on_its_line")
        assert spark.table("smoke_on_its_line").count() == 7
        spark.sql("DROP TABLE smoke_on_its_line")
        again = spark.read.parquet(source)
    assert deployed[0] == "out"
    assert len(deployed) + len(plain) == 2
    assert set(plain) <= {UndeferrableWriteError.__name__}, "Spark 3.5 makes such a command only to run it"
    assert program.writes == ()
    assert program.variables["again"] is again


class Acts(CaptureListener):
    """Lets a session's machine carry out actions."""

    def __init__(self, machine: SessionActions) -> None:
        self._machine = machine

    def act(self, call: Any) -> Any:
        return self._machine.run(call)


def test_actions_through_the_machine_return_what_plain_ones_return(spark: Any, source: str, capsys: Any) -> None:
    by_k = spark.read.parquet(source).groupBy("k").agg(F.sum("m").alias("total")).orderBy("k")
    more = by_k.groupBy(F.expr("total % 2 AS odd")).count().orderBy("odd")

    def actions() -> list[Any]:
        more.show()
        answers = [by_k.count(), by_k.take(2), by_k.first(), by_k.collect(), more.collect(), by_k.tail(1)]
        return [*answers, list(by_k.toLocalIterator()), by_k.toPandas().to_dict(), by_k.isEmpty()]

    plain, printed = actions(), capsys.readouterr().out
    machine = SessionActions()
    with flinkmagic.capture(spark, listener=Acts(machine)):
        answers = actions()
    assert answers == plain
    assert capsys.readouterr().out == printed
    assert [report.reason for report in machine.reports] == [""] * len(machine.reports)
    assert len(machine.reports) == 10
    assert max(report.reused for report in machine.reports) > 0


def test_what_a_python_function_made_is_reused(spark: Any, source: str) -> None:
    plus_one = F.udf(lambda value: value + 1, "long")
    by_next = spark.read.parquet(source).groupBy(plus_one("k").alias("next")).count()
    machine = SessionActions()
    with flinkmagic.capture(spark, listener=Acts(machine)):
        assert len(by_next.collect()) == 7
        assert [row.next for row in by_next.orderBy("next").collect()] == [1, 2, 3, 4, 5, 6, 7]
    _, second = machine.reports
    assert second.reused > 0


def test_an_action_is_cancelled_in_what_spark_runs_itself(spark: Any, source: str) -> None:
    class Canceller:
        def action_began(self, call: Any) -> None: ...

        def job_started(self, *_: Any) -> None: ...

        def action_done(self, report: Any) -> None: ...

        def work_started(self, call: Any, work: Any) -> None:
            def cancel() -> None:
                while work.progress().active == 0:
                    time.sleep(0.05)
                work.cancel()

            threading.Thread(target=cancel).start()

    nap = F.udf(lambda value: time.sleep(60) or value, "long")
    by_k = spark.read.parquet(source).groupBy("k").agg(F.sum("m").alias("total"))
    machine = SessionActions(listener=Canceller())
    started = time.monotonic()
    with flinkmagic.capture(spark, listener=Acts(machine)), pytest.raises(ActionCancelledError):
        by_k.select(nap("total")).collect()
    assert time.monotonic() - started < 60
    assert machine.reports[-1].status == "CANCELED"
    assert by_k.count() > 0


def test_splits_and_side_outputs_have_each_row_once(spark: Any) -> None:
    drawn = F.udf(lambda: random.SystemRandom().random(), "double").asNondeterministic()

    def ways() -> dict[str, Any]:
        rows = spark.range(0, 400, 1, 3).select(drawn().alias("r"), "id")
        parts = flinkmagic.split(rows, {"low": "r < 0.5", "high": "r >= 0.5"})
        main, late = flinkmagic.side_output(rows, flinkmagic.OutputTag("late"), "r > 0.7")
        return {"low": parts.select("low"), "high": parts.select("high"), "main": main, "late": late}

    with flinkmagic.capture(spark) as program:
        frames = ways()
        frames["one"], frames["two"] = frames["low"].randomSplit([0.5, 0.5], 3)
    program.results = frames
    job = _run(program)
    plain = ways()
    for found in (lambda *names: [job.result(name) for name in names], lambda *names: [plain[name] for name in names]):
        for pair in (("low", "high"), ("main", "late")):
            assert sorted(row["id"] for frame in found(*pair) for row in frame.collect()) == list(range(400))
    assert job.result("one").count() + job.result("two").count() == job.result("low").count()


def test_loops_end_where_plain_loops_end(spark: Any) -> None:
    def step(df: Any) -> Any:
        return df.groupBy((F.col("id") % 3).alias("id")).agg((F.sum("v") * 2).alias("v"))

    def until(before: Any, after: Any) -> Any:
        total = after.agg(F.sum("v").alias("total"))
        return total.select((F.col("total") > 3000).alias("enough"), "total")

    plain = begin = spark.range(0, 30, 1, 3).select("id", F.col("id").alias("v"))
    for _ in range(3):
        plain = step(plain)
    assert _rows(flinkmagic.iterate(begin, step, max_iterations=9, until=until, parallelism=2)) == _rows(plain)
    assert [one.measures["total"] for one in flinkmagic.iterations()[-1].supersteps] == [870, 1740, 3480]
    added = flinkmagic.co_iterate(begin, begin, lambda data, df: step(df.union(data)), max_iterations=2)
    assert _rows(added) == _rows(step(step(begin.union(begin)).union(begin)))


def test_a_stream_runs_as_a_job(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("".join(f"{value}\n" for value in range(30)))
    with flinkmagic.capture(spark, name="streamed", mode="streaming") as program:
        values = spark.readStream.schema("value long").csv(str(tmp_path))
        counts = values.groupBy((F.col("value") % 3).alias("k")).count()
        writer = counts.writeStream.format("memory").queryName("streamed").outputMode("complete")
        query = writer.trigger(availableNow=True).start()
    graph = flinkmagic.compile(program, mode="streaming", parallelism=2)
    assert len(graph.job_graph.vertices) == 2
    assert graph.run().status is JobStatus.FINISHED
    assert _rows(spark.table("streamed")) == [(k, 10) for k in range(3)]
    assert not query.isActive


def test_a_batch_of_a_stream_is_one_graph_and_fails_with_its_write(spark: Any, tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"in{number}").mkdir()
        (tmp_path / f"in{number}" / "rows.csv").write_text(f"{number}\n{number + 10}\n")

    def both(batch: Any, batch_id: int) -> None:
        counts = batch.groupBy("value").count()
        counts.write.mode("append").json(str(tmp_path / "a"))
        counts.where("if(value = 2, raise_error('torn'), true)").write.mode("append").json(str(tmp_path / "b"))

    def run(folder: str) -> Any:
        with flinkmagic.capture(spark, name="batches", mode="streaming") as program:
            stream = spark.readStream.schema("value long").option("maxFilesPerTrigger", 1).csv(str(tmp_path / folder))
            stream.writeStream.foreachBatch(both).trigger(availableNow=True).start()
        job = flinkmagic.compile(program, mode="streaming", parallelism=2).run(wait=False)
        job.wait(60)
        return job

    job = run("in[01]")
    assert job.status is JobStatus.FINISHED, job.exceptions()
    assert [(one.status, len(one.graphs), one.reason) for one in job.batches()] == [
        ("FINISHED", 0, ""), ("FINISHED", 1, ""),
    ]  # fmt: skip
    for sink in "ab":
        assert _rows(spark.read.json(str(tmp_path / sink)).select("value", "count")) == [
            (0, 1), (1, 1), (10, 1), (11, 1),
        ]  # fmt: skip
    failing = run("in2")
    assert failing.status is JobStatus.FAILED
    assert [one.status for one in failing.batches()] == ["FAILED"]
    assert _rows(spark.read.json(str(tmp_path / "b")).agg(F.max("value"))) == [(11,)]


def test_pipelined_exchanges_run_or_are_refused_by_name(spark: Any) -> None:
    frame = spark.range(0, 100, 1, 1).repartition(1).selectExpr("id * 2 AS twice")
    if tuple(map(int, spark.version.split(".")[:2])) < (4, 3):
        with pytest.raises(PipelinedExchangeError, match=r"4\.3 and newer have"):
            flinkmagic.compile({"r": frame}, exchange="pipelined")
        return
    job = _run({"r": frame}, exchange="pipelined")
    assert _rows(job.result("r")) == _rows(frame)
    assert job.execution_graph.pipelined_regions.count == 1
