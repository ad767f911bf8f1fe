"""After a run, what is the same is not computed again; what is not the same is.

Spark's own status store says what ran: the tasks of all jobs that were started meanwhile.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
import textwrap
import threading
from collections import Counter

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

import flinkmagic
from flinkmagic.errors.usage import InvalidValueError, UnknownNameError
from flinkmagic.jvm.java import of_environment
from flinkmagic.reuse.result_keys import ResultKeys
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.session import capture, release_retained
from flinkmagic.session import retained as retained_of
from tests.status_store import StatusStore


@pytest.fixture
def numbers(spark, tmp_path):
    """A folder of 200 rows in two files: id, k (0 to 6)."""
    path = str(tmp_path / "numbers")
    spark.range(0, 200, 1, 2).selectExpr("id", "id % 7 AS k").write.parquet(path)
    return path


class Run:
    """One run of a cell: its graph, its job, and how many tasks Spark ran for it in all."""

    def __init__(self, graph, spark, **options):
        store = StatusStore(spark)
        before = store.jobs()
        self.graph, self.job = graph, graph.run(**options)
        self.spark_tasks = sum(job.numCompletedTasks() for job in store.since(before))
        self.vertices = Counter(task.vertex_id for task in self.job.tasks() if task.role == "task")
        self.ran = {v.name for v in self.job.execution_graph.job_vertices if v.id in self.vertices}
        self.reused = len(self.job.reused())

    @property
    def status(self):
        return self.job.status


@pytest.fixture
def cell(spark):
    """Run a cell's source under a graph's name, as a notebook does: `spark`, `F` and `names` are there."""

    def run(source, name="g", *, lines_before=0, compile_options=None, run_options=None, **names):
        namespace = {"__name__": "__main__", "spark": spark, "F": F, **names}
        code = compile("\n" * lines_before + textwrap.dedent(source), "a cell", "exec", dont_inherit=True)
        with capture(spark, name=name) as program:
            exec(code, namespace)
        graph = flinkmagic.compile(program, parallelism=2, **(compile_options or {}))
        return Run(graph, spark, **(run_options or {}))

    return run


UDF = """
def plus(x):
    return x + delta

sums = (
    spark.read.parquet(numbers).withColumn("p", F.udf(plus, "long")("id")).groupBy("k").agg(F.sum("p").alias("s"))
)
sums.write.mode("overwrite").parquet(out)
"""
TOTAL = 200 * 199 // 2


def total(spark, path):
    return spark.read.parquet(path).agg(F.sum("s")).collect()[0][0]


def test_a_second_run_runs_the_write_alone(spark, cell, numbers, tmp_path):
    out = str(tmp_path / "out")
    first = cell(UDF, numbers=numbers, out=out, delta=1)
    assert (first.status, first.reused, sum(first.vertices.values())) == (JobStatus.FINISHED, 0, 4)
    moved = cell(UDF, lines_before=2, numbers=numbers, out=out, delta=1)
    assert (moved.status, moved.reused) == (JobStatus.FINISHED, 1)
    assert moved.spark_tasks == sum(moved.vertices.values()) == 2
    assert total(spark, out) == TOTAL + 200
    assert "1 job vertex reused" in moved.graph.summary()
    assert "(reused)" in moved.graph._repr_mimebundle_()["text/plain"]
    again = moved.graph.run()
    assert len({task.vertex_id for task in again.tasks()}) == 1


def test_the_files_of_a_write_are_listed_only_if_a_later_run_may_keep_it(cell, numbers, tmp_path, monkeypatch):
    listed = []
    listing = ResultKeys.listing
    monkeypatch.setattr(ResultKeys, "listing", lambda keys, path: listed.append(path) or listing(keys, path))
    names = {"numbers": numbers, "out": str(tmp_path / "out")}
    assert cell(TWO_SINKS.format(limit=MENDED, mode="overwrite"), **names).status is JobStatus.FINISHED
    assert listed == []
    assert cell(TWO_SINKS.format(limit=FAILS, mode="overwrite"), **names).status is JobStatus.FAILED
    assert [path.endswith("/sound") for path in listed] == [True]


def test_a_thread_that_is_new_to_spark_may_run_again(spark, tmp_path):
    """As a click on Run again does: no session is active there, and nodes of plans take the active one as theirs."""
    grouped = spark.range(0, 100, 1, 4).groupBy((F.col("id") % 3).alias("k")).count()
    with capture(spark) as program:
        grouped.orderBy("k").write.mode("overwrite").csv(str(tmp_path / "sorted"))
        grouped.where("k > 0").write.mode("overwrite").parquet(str(tmp_path / "some"))
    graph = flinkmagic.compile(program, name="clicked", parallelism=2)
    assert graph.run().status is JobStatus.FINISHED
    statuses = []
    thread = threading.Thread(target=lambda: statuses.append(graph.run().status))
    thread.start()
    thread.join()
    assert statuses == [JobStatus.FINISHED]
    assert spark.read.parquet(str(tmp_path / "some")).count() == 2
    graph.jobs[-1].release()


@pytest.mark.matrix(3)
@pytest.mark.parametrize("change", ["appended file", "touched file", "global", "setting", "released", "code"])
def test_what_changed_is_computed_again(spark, cell, numbers, tmp_path, change):
    out = str(tmp_path / "out")
    cell(UDF, numbers=numbers, out=out, delta=1)
    expected, source, delta = TOTAL + 200, UDF, 1
    if change == "appended file":
        spark.range(1).selectExpr("id", "id AS k").write.mode("append").parquet(numbers)
        expected += 1
    elif change == "touched file":
        name = next(name for name in os.listdir(numbers) if name.endswith(".parquet"))
        os.utime(os.path.join(numbers, name), (1_000_000, 1_000_000))
    elif change == "global":
        delta, expected = 2, TOTAL + 400
    elif change == "code":
        source, expected = UDF.replace("x + delta", "x - delta"), TOTAL - 200
    elif change == "released":
        release_retained(spark, "g")
        gc.collect()
    elif change == "setting":
        spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        second = cell(source, numbers=numbers, out=out, delta=delta)
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    assert (second.status, second.reused) == (JobStatus.FINISHED, 0)
    assert len(second.vertices) == 2
    assert total(spark, out) == expected


@pytest.mark.long
def test_an_edited_module_is_computed_again(spark, cell, numbers, tmp_path, monkeypatch):
    folder = tmp_path / "modules"
    folder.mkdir()
    helper = folder / "fm_retained_helper.py"
    helper.write_text("def f(x):\n    return x + 1\n")
    monkeypatch.syspath_prepend(str(folder))
    # Workers find it by this; another environment also means fresh workers, which have imported nothing yet.
    monkeypatch.setitem(spark.sparkContext.environment, "PYTHONPATH", str(folder))
    source = "import fm_retained_helper\n" + UDF.replace("x + delta", "fm_retained_helper.f(x)")
    out = str(tmp_path / "out")
    cell(source, numbers=numbers, out=out)
    assert cell(source, numbers=numbers, out=out).reused == 1
    before = {tuple(row) for row in spark.read.parquet(out).collect()}
    helper.write_text("# later\ndef f(x):\n    return x + 3\n")
    importlib.invalidate_caches()
    importlib.reload(sys.modules["fm_retained_helper"])
    edited = cell(source, numbers=numbers, out=out)
    assert edited.reused == 0
    why = "fm_retained_helper was edited, and Spark's Python workers may still hold it as it was"
    assert any(why in reason for reason in edited.job.not_retained().values())
    # No one can say which workers computed that; now new ones do.
    monkeypatch.setitem(spark.sparkContext.environment, "FM_RETAINED", "new workers")
    assert cell(source, numbers=numbers, out=out).reused == 0
    after = {tuple(row) for row in spark.read.parquet(out).collect()}
    assert len(after) == len(before) == 7
    assert after.isdisjoint(before)
    del sys.modules["fm_retained_helper"]


@pytest.mark.matrix(4)
@pytest.mark.parametrize("column", ["rand()", "uuid()", "monotonically_increasing_id()", "current_timestamp()"])
def test_what_depends_on_chance_or_time_is_computed_again(cell, numbers, tmp_path, column):
    source = f"""
    df = spark.read.parquet(numbers).selectExpr("k", "string({column}) AS c")
    df.groupBy("k").agg(F.max("c").alias("c")).write.mode("overwrite").parquet(out)
    """
    cell(source, numbers=numbers, out=str(tmp_path / "out"))
    second = cell(source, numbers=numbers, out=str(tmp_path / "out"))
    assert second.reused == 0
    assert len(second.vertices) == 2
    if column != "current_timestamp()":
        assert any("nondeterministic" in why for why in second.job.not_retained().values())


def test_what_a_function_reads_for_itself_is_read_again(spark, cell, numbers, tmp_path):
    """Under another name too: it is retained for no one."""
    source = """
    import configparser

    def factor(x):
        settings = configparser.ConfigParser()
        settings.read(path)
        return x * int(settings["a"]["factor"])

    df = spark.read.parquet(numbers).withColumn("p", F.udf(factor, "long")("id"))
    df.groupBy("k").agg(F.sum("p").alias("s")).write.mode("overwrite").parquet(out)
    """
    ini = tmp_path / "settings.ini"
    names = {"numbers": numbers, "path": str(ini), "out": str(tmp_path / "out")}
    for factor, name in ((1, "g"), (2, "g"), (3, "other")):
        ini.write_text(f"[a]\nfactor = {factor}\n")
        run = cell(source, name, compile_options={"retain": "session"}, **names)
        assert (run.status, run.reused) == (JobStatus.FINISHED, 0)
        assert total(spark, names["out"]) == TOTAL * factor
    assert "configparser.ConfigParser" in "".join(run.job.not_retained().values())


def test_a_file_that_changes_while_the_job_runs_leaves_nothing(spark, cell, numbers, tmp_path):
    source = """
    def touch(x):
        import os
        os.utime(path, (2_000_000, 2_000_000))
        return x

    df = spark.read.parquet(numbers)
    df.groupBy("k").count().write.mode("overwrite").parquet(out)
    df.select(F.udf(touch, "long")("k").alias("k")).write.mode("overwrite").parquet(other)
    """
    name = next(name for name in os.listdir(numbers) if name.endswith(".parquet"))
    outs = {"out": str(tmp_path / "out"), "other": str(tmp_path / "other")}
    run = cell(source, numbers=numbers, path=os.path.join(numbers, name), **outs)
    assert run.status is JobStatus.FINISHED
    assert retained_of(spark) == []
    assert "changed while it ran" in "".join(run.job.not_retained().values())


# -- for whom -----------------------------------------------------------------------------------------------


def test_none_retains_nothing(spark, cell, numbers, tmp_path):
    out = str(tmp_path / "out")
    cell(UDF, numbers=numbers, out=out, delta=1)
    assert retained_of(spark)
    second = cell(UDF, compile_options={"retain": "none"}, numbers=numbers, out=out, delta=1)
    assert second.reused == 0
    assert retained_of(spark) == []


@pytest.mark.long
def test_job_is_for_the_same_name_and_session_for_all(cell, numbers, tmp_path):
    names = {"numbers": numbers, "out": str(tmp_path / "out"), "delta": 1}
    cell(UDF, "one", **names)
    assert cell(UDF, "two", compile_options={"retain": "session"}, **names).reused == 0
    assert cell(UDF, "three", **names).reused == 0
    third = cell(UDF, "three_too", compile_options={"retain": "session"}, **names)
    assert third.reused == 1
    assert len(third.vertices) == 1


def test_a_changed_cell_ends_the_life_of_its_former_results(spark, cell, numbers, tmp_path):
    names = {"numbers": numbers, "out": str(tmp_path / "out")}
    cell(UDF, delta=1, **names)
    before = {one.key for one in retained_of(spark)}
    cell(UDF, delta=2, **names)
    after = {one.key for one in retained_of(spark)}
    assert len(before) == len(after) == 1
    assert before != after


def test_the_bound_holds(spark, cell, numbers, tmp_path):
    names = {"numbers": numbers, "out": str(tmp_path / "out"), "delta": 1}
    cell(UDF, compile_options={"retain_bytes": 1}, **names)
    try:
        assert retained_of(spark) == []
        assert cell(UDF, **names).reused == 0
    finally:
        flinkmagic.compile(spark.range(1), "h", retain_bytes=2**33).run()


def test_a_cancelled_job_leaves_nothing(spark, numbers):
    slow = spark.read.parquet(numbers).repartition(2).groupBy("k").count()
    held = slow.withColumn("c", F.udf(lambda x: __import__("time").sleep(60) or x, "long")("count"))
    graph = flinkmagic.compile({"held": held}, "cancelled", parallelism=2)
    job = graph.run(wait=False)
    while not any(task.end_ms for task in job.tasks()):
        assert not job.status.is_terminal
    job.cancel()
    assert job.wait(60) is JobStatus.CANCELED
    assert [one for one in retained_of(spark) if one.graph == "cancelled"] == []


@pytest.mark.parametrize("options", [{"retain": "always"}, {"retain_bytes": -1}, {"retain_bytes": 1.5}])
def test_wrong_words_are_refused(spark, options):
    with pytest.raises(InvalidValueError, match=rf"^{next(iter(options))} must be "):
        flinkmagic.compile(spark.range(1), **options)


def test_release_of_what_is_not_there_is_refused(spark):
    with pytest.raises(UnknownNameError, match="'nothing'"):
        release_retained(spark, "nothing")


# -- kinds of results -----------------------------------------------------------------------------------------


def test_all_kinds_of_results_are_used_again(spark, cell, numbers, tmp_path):
    source = """
    df = spark.read.parquet(numbers)
    late = df.withColumn("p", F.udf(lambda x: x + 1, "long")("id")).groupBy("k").agg(F.sum("p").alias("s"))
    names = spark.range(7).selectExpr("id AS k", "concat('n', id) AS name")
    joined = late.join(F.broadcast(names), "k").where("s > (SELECT avg(id) FROM range(9))")
    late.orderBy(F.desc("s")).limit(3).write.mode("overwrite").parquet(out + "/b")
    joined.groupBy("name").agg(F.max("s").alias("s")).write.mode("overwrite").parquet(out + "/a")
    """
    out = str(tmp_path / "out")
    first = cell(source, numbers=numbers, out=out)
    rows = [sorted(spark.read.parquet(out + part).collect()) for part in ("/a", "/b")]
    kinds = {one.kind for one in retained_of(spark)}
    assert kinds >= {"shuffle", "broadcast", "boundary"}
    second = cell(source, numbers=numbers, out=out)
    assert second.status is JobStatus.FINISHED
    assert len(second.vertices) == 2
    assert second.reused == len(first.vertices) - 2
    assert [sorted(spark.read.parquet(out + part).collect()) for part in ("/a", "/b")] == rows


@pytest.mark.long
def test_the_object_of_a_broadcast_goes_alone_and_is_made_again(spark, cell, numbers, tmp_path):
    source = """
    names = spark.range(7).selectExpr("concat('k', id) AS k", "concat('n', id) AS name")
    sums = spark.read.parquet(numbers).groupBy(F.expr("concat('k', k) AS k")).agg(F.sum("id").alias("s"))
    joined = sums.join(F.broadcast(names), "k")
    joined.write.mode("overwrite").parquet(out + "/a")
    joined.groupBy("name").count().write.mode("overwrite").parquet(out + "/b")
    """

    def rows():
        return [sorted(spark.read.parquet(out + part).collect()) for part in ("/a", "/b")]

    def result(kind):
        return next(one for one in retained_of(spark) if one.kind == kind)

    out = str(tmp_path / "out")
    first = cell(source, numbers=numbers, out=out)
    expected = rows()
    broadcast = result("broadcast")
    blocks = of_environment(spark.sparkContext, "blockManager")
    blocks_of = spark._jvm.org.apache.spark.storage.BroadcastBlockId
    block = blocks_of(broadcast.computed.executeBroadcast().id(), "")
    assert blocks.getStatus(block).get().memSize() >= broadcast.driver_bytes > 2**20  # of seven rows
    assert 0 < broadcast.bytes < 2**14
    assert broadcast.shrink()
    assert not blocks.getStatus(block).isDefined()
    spark._jvm.System.gc()  # Spark still finds the object while it exists
    # Spark computes lost partitions with the same broadcast.
    builder = result("boundary").computed.rows.builder
    blocks.master().removeRdd(builder.cachedColumnBuffers().id(), True)
    second = cell(source, numbers=numbers, out=out)
    assert second.reused == len(first.vertices) - 2
    assert rows() == expected
    release_retained(spark, "g")
    assert not blocks.getStatus(block).isDefined()


def test_a_result_is_used_again_and_outlives_its_first_job(spark, numbers):
    def compiled():
        counts = spark.read.parquet(numbers).groupBy("k").count().orderBy("k")
        return flinkmagic.compile({"counts": counts}, "results", parallelism=2)

    first = Run(compiled(), spark)
    rows = first.job.result("counts").collect()
    del first
    gc.collect()
    second = Run(compiled(), spark)
    assert (second.status, second.spark_tasks) == (JobStatus.FINISHED, 0)
    assert second.job.result("counts").collect() == rows
    second.job.release()
    third = Run(compiled(), spark)
    assert third.spark_tasks == 0
    assert third.job.result("counts").collect() == rows


# -- after a failure --------------------------------------------------------------------------------------------

TWO_SINKS = """
df = spark.read.parquet(numbers)
sums = df.groupBy("k").agg(F.sum("id").alias("s"))

def check(x):
    if x > {limit}:
        raise ValueError("too much")
    return x

sums.write.mode("{mode}").parquet(out + "/sound")
sums.repartition(2, "s").withColumn("s", F.udf(check, "long")("s")).write.mode("overwrite").parquet(out + "/failing")
"""
FAILS, MENDED = "10", "10**9"


@pytest.mark.matrix(2)
@pytest.mark.parametrize("mode", ["overwrite", "append"])
def test_after_a_mend_only_what_failed_runs(spark, cell, numbers, tmp_path, mode):
    names = {"numbers": numbers, "out": str(tmp_path / "out")}
    failed = cell(TWO_SINKS.format(limit=FAILS, mode=mode), **names)
    assert failed.status is JobStatus.FAILED
    sound = sorted(os.listdir(tmp_path / "out" / "sound"))
    mended = cell(TWO_SINKS.format(limit=MENDED, mode=mode), **names)
    assert mended.status is JobStatus.FINISHED
    assert len(mended.vertices) == 1
    assert sorted(os.listdir(tmp_path / "out" / "sound")) == sound
    assert "1 write kept of the failed run" in mended.graph.summary()
    sound_line, failing_line = [line for line in mended.graph.jobs[-1].report() if line.startswith("  ✓ ")]
    assert sound_line.endswith(", kept of the failed run")
    assert "kept" not in failing_line
    assert total(spark, names["out"] + "/sound") == total(spark, names["out"] + "/failing") == TOTAL
    if mode == "append":  # a run of a finished job is a fresh run of its writes
        assert cell(TWO_SINKS.format(limit=MENDED, mode=mode), **names).status is JobStatus.FINISHED
        assert total(spark, names["out"] + "/sound") == 2 * TOTAL


@pytest.mark.long
def test_equal_appends_are_told_apart(spark, cell, numbers, tmp_path):
    source = """
    sums = spark.read.parquet(numbers).groupBy("k").agg(F.sum("id").alias("s"))

    def check(x):
        if x > {limit}:
            raise ValueError("too much")
        return x

    for _ in range({appends}):
        sums.write.mode("append").parquet(out + "/sound")
    sums.repartition(2, "s").withColumn("s", F.udf(check, "long")("s")).write.parquet(out + "/failing")
    """
    names = {"numbers": numbers, "out": str(tmp_path / "out")}
    failed = cell(source.format(limit=FAILS, appends=2), **names)
    assert failed.status is JobStatus.FAILED
    assert total(spark, names["out"] + "/sound") == 2 * TOTAL
    mended = cell(source.format(limit=MENDED, appends=3).replace(".write.parquet", ".write.mode('overwrite').parquet"),
                  **names)  # fmt: skip
    assert mended.status is JobStatus.FINISHED
    assert "2 writes kept of the failed run" in mended.graph.summary()
    assert total(spark, names["out"] + "/sound") == 3 * TOTAL


APPENDED_AND_OVERWRITTEN = """
df = spark.read.parquet(numbers)

def check(x):
    if x > {limit}:
        raise ValueError("too much")
    return x

df.groupBy("k").agg(F.sum("id").alias("s")).write.mode("append").parquet(out + "/both")
{overwrite}
df.select(F.udf(check, "long")("id").alias("s")).write.mode("overwrite").parquet(out + "/failing")
"""
OVERWRITE = 'df.where("k < 3").groupBy("k").agg(F.max("id").alias("s")).write.mode("overwrite").parquet(out + "/both")'


@pytest.mark.long
@pytest.mark.parametrize("has_key", [True, False])
def test_what_was_appended_and_overwritten_counts_as_written_only_with_the_overwrite(
    spark, cell, numbers, tmp_path, has_key
):
    names = {"numbers": numbers, "out": str(tmp_path / "out")}
    # Rows in an order of chance have no key: such a write is never found again, and has overwritten all the same.
    overwrite = OVERWRITE if has_key else OVERWRITE.replace(".write", ".orderBy(F.rand()).write")
    cell(APPENDED_AND_OVERWRITTEN.format(limit=FAILS, overwrite=overwrite), **names)
    assert spark.read.parquet(names["out"] + "/both").count() == 3
    mended = cell(APPENDED_AND_OVERWRITTEN.format(limit=MENDED, overwrite=""), **names)
    assert mended.status is JobStatus.FINISHED
    assert "kept of the failed run" not in mended.graph.summary()
    assert spark.read.parquet(names["out"] + "/both").count() == 3 + 7


@pytest.mark.long
def test_what_was_appended_and_overwritten_is_kept_with_the_overwrite(spark, cell, numbers, tmp_path):
    names = {"numbers": numbers, "out": str(tmp_path / "out")}
    cell(APPENDED_AND_OVERWRITTEN.format(limit=FAILS, overwrite=OVERWRITE), **names)
    mended = cell(APPENDED_AND_OVERWRITTEN.format(limit=MENDED, overwrite=OVERWRITE), **names)
    assert "2 writes kept of the failed run" in mended.graph.summary()
    assert spark.read.parquet(names["out"] + "/both").count() == 3


def test_what_spark_refuses_to_write_over_is_refused_after_a_failure_too(cell, numbers, tmp_path):
    names = {"numbers": numbers, "out": str(tmp_path / "out")}
    assert cell(TWO_SINKS.format(limit=FAILS, mode="error"), **names).status is JobStatus.FAILED
    with pytest.raises(AnalysisException, match="PATH_ALREADY_EXISTS"):
        cell(TWO_SINKS.format(limit=MENDED, mode="error"), **names)


@pytest.mark.long
def test_a_target_that_changed_since_is_written_again(spark, cell, numbers, tmp_path):
    names = {"numbers": numbers, "out": str(tmp_path / "out")}
    cell(TWO_SINKS.format(limit=FAILS, mode="overwrite"), **names)
    spark.range(1).selectExpr("id AS k", "id AS s").write.mode("overwrite").parquet(names["out"] + "/sound")
    mended = cell(TWO_SINKS.format(limit=MENDED, mode="overwrite"), **names)
    assert len(mended.vertices) == 2
    assert total(spark, names["out"] + "/sound") == TOTAL


@pytest.mark.long
def test_a_write_after_one_that_runs_again_runs_again(spark, cell, numbers, tmp_path):
    source = """
    df = spark.read.parquet(numbers)
    df.where("k < {first}").groupBy("k").agg(F.sum("id").alias("s")).write.mode("overwrite").parquet(out + "/both")
    df.groupBy("k").agg(F.max("id").alias("s")).write.mode("append").parquet(out + "/both")

    def check(x):
        if x > {limit}:
            raise ValueError("too much")
        return x

    df.select(F.udf(check, "long")("id").alias("s")).write.mode("overwrite").parquet(out + "/failing")
    """
    names = {"numbers": numbers, "out": str(tmp_path / "out")}
    cell(source.format(first=7, limit=FAILS), **names)
    cell(source.format(first=6, limit=MENDED), **names)
    rows = spark.read.parquet(names["out"] + "/both").count()
    assert rows == 6 + 7


# -- runs of some of the sinks ----------------------------------------------------------------------------------

APPENDED = """
df = spark.read.parquet(numbers)
sums = df.groupBy("k").agg(F.sum("id").alias("s"))

def check(x):
    if x > {limit}:
        raise ValueError("too much")
    return x

sums.write.mode("append").parquet(out + "/sound")
sums.write.mode("append").parquet(out + "/apart")
sums.repartition(2, "s").withColumn("s", F.udf(check, "long")("s")).write.mode("overwrite").parquet(out + "/failing")
"""


@pytest.mark.long
@pytest.mark.parametrize("full", [False, True])
def test_a_run_of_one_sink_leaves_the_finished_writes_of_the_others(spark, cell, numbers, tmp_path, full):
    names = {"numbers": numbers, "out": str(tmp_path / "out")}
    failed = cell(APPENDED.format(limit=FAILS), **names)
    assert failed.status is JobStatus.FAILED
    one = cell(APPENDED.format(limit=MENDED), run_options={"only": ["failing"], "full": full}, **names)
    assert one.status is JobStatus.FINISHED
    assert (one.reused == 0) is full
    rest = one.graph.run()
    assert rest.status is JobStatus.FINISHED
    assert "2 writes kept of the failed run" in rest.snapshot().note
    for part in ("sound", "apart", "failing"):
        assert total(spark, f"{names['out']}/{part}") == TOTAL


@pytest.mark.long
def test_a_run_in_full_repeats_what_a_failed_run_had_written(spark, cell, numbers, tmp_path):
    names = {"numbers": numbers, "out": str(tmp_path / "out")}
    cell(TWO_SINKS.format(limit=FAILS, mode="append"), **names)
    full = cell(TWO_SINKS.format(limit=MENDED, mode="append"), run_options={"full": True}, **names)
    assert (full.status, full.reused) == (JobStatus.FINISHED, 0)
    assert total(spark, names["out"] + "/sound") == 2 * TOTAL
    assert total(spark, names["out"] + "/failing") == TOTAL


def test_what_is_retained_bears_the_users_last_name_and_no_chain_of_operators(spark, tmp_path):
    names = {}
    with flinkmagic.capture(spark, namespace=names) as program:
        names["numbers"] = spark.range(90).select((F.col("id") % 9).alias("k"), "id").where("id > 3")
        names["sums"] = names["numbers"].groupBy("k").agg(F.sum("id").alias("s"))
        names["sums"].write.parquet(str(tmp_path / "sums"))
    assert flinkmagic.compile(program, name="named").run().status is JobStatus.FINISHED
    bare = spark.range(90).groupBy((F.col("id") % 9).alias("k")).count()
    assert flinkmagic.compile({"counted": bare}, name="bare").run().status is JobStatus.FINISHED
    kept = {one.graph: one.what for one in retained_of(spark) if one.kind == "shuffle"}
    assert kept == {"named": "sums", "bare": "HashAggregate"}
