"""A failing task fails the job with the user's own words, and leaves alone what does not depend on it."""

from __future__ import annotations

import os

import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

import flinkmagic
from flinkmagic.capturing.capture import capture
from flinkmagic.capturing.source_code import source_location
from flinkmagic.capturing.source_code.source_location import CellSource
from flinkmagic.deployment.failures import cause_of, python_traceback, short_reason, vertex_failed
from flinkmagic.deployment.stages.write_retries import EarlierRun, prepare_write_retry
from flinkmagic.errors.deployment import (
    ResultNotReadyError,
    StageAbortedError,
    VertexFailedError,
    WriteNotRepeatableError,
)
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.graph.job_graph_generator import create_job_graph
from flinkmagic.planning import plan
from flinkmagic.scheduling.failover.restart_strategy import FixedDelayRestartBackoffTimeStrategy
from flinkmagic.scheduling.job_status import JobStatus


def bad_row(value):
    if value == 77:
        raise ValueError(f"bad row {value}")
    return value


def frame_that_fails(spark):
    return spark.range(0, 100, 1, 4).withColumn("x", F.udf(bad_row, LongType())("id"))


def states(deployment):
    graph = deployment.execution_graph
    return {v.name: {graph.state_of(i) for i in v.vertices} for v in graph.job_vertices}


def test_names_the_line_that_raised_and_the_line_that_asked(spark, deploy, tmp_path):
    with capture(spark) as program:
        shown = frame_that_fails(spark).groupBy("x").count()
        shown.write.parquet(str(tmp_path / "out"))
    deployment = deploy(program)
    assert deployment.wait(60) is JobStatus.FAILED
    (entry,) = deployment.exceptions()
    error = entry.root.error
    assert isinstance(error, VertexFailedError)
    assert error.cause == "ValueError: bad row 77"
    assert entry.root.task_name.endswith("(4/4)")
    assert "(4/4)" in error.vertex
    assert 'raise ValueError(f"bad row {value}")' in error.python_traceback
    assert "pyspark" not in error.python_traceback
    assert "line" in error.where
    assert error.code
    assert error.where in str(error)
    assert error.code in str(error)
    failed = [task for task in deployment.tasks() if task.state is ExecutionState.FAILED]
    assert [(task.subtask, task.reason) for task in failed] == [(3, "ExceptionFailure")]
    assert "ValueError: bad row 77" in failed[0].error
    assert not (tmp_path / "out").exists() or not (tmp_path / "out" / "_SUCCESS").exists()


def test_sinks_that_do_not_depend_on_the_failure_finish(spark, deploy, tmp_path, numbers):
    def bad(number):  # known to be pure: what the others write cannot be read by it
        if number == 77:
            raise ValueError(f"bad row {number}")
        return number

    slow = spark.read.parquet(numbers).groupBy("k").agg(F.sum("m").alias("s")).orderBy("s").groupBy("s").count()
    failing = spark.range(0, 100, 1, 4).withColumn("x", F.udf(bad, LongType())("id"))
    with capture(spark) as program:
        failing.groupBy("x").count().write.parquet(str(tmp_path / "bad"))
        slow.write.parquet(str(tmp_path / "good"))
    deployment = deploy(program)
    seen = {deployment.status}
    while deployment.wait(0.01) and not deployment.termination_future.done():
        seen.add(deployment.status)
    assert deployment.wait(60) is JobStatus.FAILED
    assert JobStatus.RESTARTING not in seen
    assert [sink.name for sink in deployment.finished_sinks()] == ["good"]
    assert (tmp_path / "good" / "_SUCCESS").exists()
    assert spark.read.parquet(str(tmp_path / "good")).count() == slow.count()
    (entry,) = deployment.exceptions()
    assert entry.root.error.cause == "ValueError: bad row 77"


def test_what_depends_on_the_failure_never_starts(spark, deploy):
    deployment = deploy({"counts": frame_that_fails(spark).groupBy("x").count()})
    assert deployment.wait(60) is JobStatus.FAILED
    mapped, reduced = deployment.execution_graph.job_vertices
    assert {task.vertex_id for task in deployment.tasks()} == {mapped.id}
    assert states(deployment)[reduced.name] == {ExecutionState.CANCELED}
    assert ExecutionState.FAILED in states(deployment)[mapped.name]
    with pytest.raises(ResultNotReadyError, match="the job is FAILED"):
        deployment.result("counts")


def test_a_failure_on_the_driver_fails_its_vertex(spark, deploy, tmp_path):
    with capture(spark) as program:
        spark.range(0, 10, 1, 2).write.parquet(str(tmp_path / "out"))
    # The path comes into being after Spark has analysed the write.
    spark.range(3).write.parquet(str(tmp_path / "out"))
    deployment = deploy(program)
    assert deployment.wait(60) is JobStatus.FAILED
    (entry,) = deployment.exceptions()
    assert "PATH_ALREADY_EXISTS" in entry.root.error.cause
    assert deployment.tasks() == []
    assert spark.read.parquet(str(tmp_path / "out")).count() == 3


@pytest.mark.parametrize("shuffles", [True, False])
def test_an_error_of_py4js_names_no_call_of_ours(spark, deploy, tmp_path, shuffles):
    (tmp_path / "broken.parquet").write_text("no parquet")
    with capture(spark) as program:
        read = spark.read.schema("id long").parquet(str(tmp_path / "broken.parquet"))
        (read.groupBy("id").count() if shuffles else read).write.parquet(str(tmp_path / "out"))
    deployment = deploy(program)
    assert deployment.wait(60) is JobStatus.FAILED
    raised = deployment.exceptions()[-1].root.error.__cause__
    assert str(raised).startswith("An error occurred while running a stage.\n: org.apache.spark.SparkException: ")


def test_a_commit_that_fails_is_no_success(spark, deploy, tmp_path):
    """All tasks succeed, and the driver cannot move what they wrote: the folder of one is gone."""
    out = tmp_path / "out"

    def write_and_break(batches):
        import shutil

        yield from batches
        # The task that ends last takes away what the others wrote, before the driver commits.
        shutil.rmtree(out, ignore_errors=True)
        out.write_text("in the way")

    source = spark.range(0, 10, 1, 1)
    with capture(spark) as program:
        source.mapInArrow(write_and_break, source.schema).write.parquet(str(out))
    deployment = deploy(program)
    assert deployment.wait(60) is JobStatus.FAILED
    assert deployment.finished_sinks() == []
    assert ExecutionState.FAILED in states(deployment)[deployment.execution_graph.job_vertices[-1].name]


def failing_once(flag):
    """Return a function whose fourth task fails the first time."""

    def fails_once(batches):
        from pathlib import Path

        from pyspark import TaskContext

        if TaskContext.get().partitionId() == 3 and not Path(flag).exists():
            Path(flag).touch()
            raise OSError("the disk is full")
        yield from batches

    return fails_once


def test_restarts_only_what_is_missing(spark, deploy, tmp_path, spark_work):
    """A task that fails once: the stage is submitted again, and runs the failed task only."""
    fails_once = failing_once(str(tmp_path / "flag"))
    source = spark.range(0, 100, 1, 4)
    frame = source.mapInArrow(fails_once, source.schema).groupBy("id").count()
    deployment = deploy({"counts": frame}, restart_strategy=FixedDelayRestartBackoffTimeStrategy(1, 50.0))
    assert deployment.wait(60) is JobStatus.FINISHED
    assert deployment.result("counts").count() == 100
    mapped = deployment.execution_graph.job_vertices[0]
    vertex = deployment.execution_graph.execution_vertex(mapped.first + 3)
    assert vertex.current_execution.attempt == 1
    (prior,) = vertex.prior_executions
    assert prior.state is ExecutionState.FAILED
    assert prior.error.cause == "OSError: the disk is full"
    own = [task for task in deployment.tasks() if task.vertex_id == mapped.id]
    assert [task.state.name for task in own if task.subtask == 3] == ["FAILED", "FINISHED"]
    for subtask in range(3):
        # What was finished did not run again; what Spark ended with the stage did.
        again = deployment.execution_graph.execution_vertex(mapped.first + subtask).current_execution.attempt
        assert len([task for task in own if task.subtask == subtask]) <= 1 + again
    (entry,) = deployment.exceptions()
    assert all(isinstance(other.error, StageAbortedError) for other in entry.concurrent)


@pytest.mark.matrix(3)
@pytest.mark.parametrize("mode", ["errorifexists", "append", "overwrite"])
def test_a_restarted_write_runs_as_a_whole(spark, deploy, tmp_path, mode):
    fails_once = failing_once(str(tmp_path / "flag"))
    source = spark.range(0, 100, 1, 4)
    with capture(spark) as program:
        source.mapInArrow(fails_once, source.schema).write.mode(mode).parquet(str(tmp_path / "out"))
    deployment = deploy(program, restart_strategy=FixedDelayRestartBackoffTimeStrategy(1, 50.0))
    assert deployment.wait(60) is JobStatus.FINISHED
    assert sorted(row.id for row in spark.read.parquet(str(tmp_path / "out")).collect()) == list(range(100))


class TestPreparingARetry:
    """The write's own plan, and a target as a first attempt may have left it."""

    @pytest.fixture
    def plan_of(self, spark, tmp_path):
        def make(mode):
            with capture(spark) as program:
                spark.range(4).write.mode(mode).parquet(str(tmp_path / "out"))
            graph = create_job_graph(plan(program).environment.get_stream_graph())
            (vertex,) = graph.vertices.values()
            return vertex.operator_factory.make()

        return make

    def test_an_empty_folder_is_cleared_away(self, spark, plan_of, tmp_path):
        made = plan_of("errorifexists")
        (tmp_path / "out").mkdir()
        prepare_write_retry(spark.sparkContext, made, "out", EarlierRun(True, False))
        assert not (tmp_path / "out").exists()

    def test_a_folder_of_the_users_own_is_not(self, spark, plan_of, tmp_path):
        made = plan_of("errorifexists")
        (tmp_path / "out").mkdir()
        prepare_write_retry(spark.sparkContext, made, "out", EarlierRun(False, False))
        assert (tmp_path / "out").exists()

    def test_files_that_were_left_are_not_passed_over(self, spark, plan_of, tmp_path):
        made = plan_of("ignore")
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "part-0").write_text("x")
        with pytest.raises(WriteNotRepeatableError, match="left files"):
            prepare_write_retry(spark.sparkContext, made, "out", EarlierRun(True, True))
        assert (tmp_path / "out" / "part-0").exists()

    def test_an_append_whose_commit_failed_is_not_repeated(self, spark, plan_of):
        made = plan_of("append")
        prepare_write_retry(spark.sparkContext, made, "out", EarlierRun(True, False))
        with pytest.raises(WriteNotRepeatableError, match="rows may be there already"):
            prepare_write_retry(spark.sparkContext, made, "out", EarlierRun(True, True))

    @pytest.mark.parametrize("mode", ["append", "overwrite", "errorifexists"])
    def test_what_a_late_task_of_the_first_attempt_left_is_no_part_of_the_second(self, spark, plan_of, tmp_path, mode):
        made = plan_of(mode)
        stale = tmp_path / "out" / "_temporary" / "0" / "task_202601010000000000000000000_0001_m_000002"
        stale.mkdir(parents=True)
        spark.range(1000, 1001).coalesce(1).write.parquet(str(tmp_path / "late"))
        (file,) = (tmp_path / "late").glob("part-*.parquet")
        file.rename(stale / file.name)
        prepare_write_retry(spark.sparkContext, made, "out", EarlierRun(True, False))
        made.executeCollect()
        assert sorted(row.id for row in spark.read.parquet(str(tmp_path / "out")).collect()) == [0, 1, 2, 3]

    def test_an_append_whose_tasks_write_to_the_target_is_not_repeated(self, spark, plan_of):
        made, hadoop = plan_of("append"), spark.sparkContext._jsc.hadoopConfiguration()
        name = "mapreduce.fileoutputcommitter.algorithm.version"
        before = hadoop.get(name)  # "1": Spark sets it, Hadoop's own default is "2"
        hadoop.set(name, "2")
        try:
            with pytest.raises(WriteNotRepeatableError, match="before the commit"):
                prepare_write_retry(spark.sparkContext, made, "out", EarlierRun(True, False))
        finally:
            hadoop.set(name, before)

    def test_an_overwrite_can_always_be_repeated(self, spark, plan_of, tmp_path):
        made = plan_of("overwrite")
        (tmp_path / "out").mkdir()
        prepare_write_retry(spark.sparkContext, made, "out", EarlierRun(True, True))
        assert (tmp_path / "out").exists()


def test_a_failure_after_the_last_restart_is_final(spark, deploy):
    deployment = deploy(
        {"counts": frame_that_fails(spark).groupBy("x").count()},
        restart_strategy=FixedDelayRestartBackoffTimeStrategy(2, 10.0),
    )
    assert deployment.wait(60) is JobStatus.FAILED
    failed = [task for task in deployment.tasks() if task.state is ExecutionState.FAILED]
    assert [task.attempt for task in failed if task.subtask == 3] == [0, 1, 2]
    assert len(deployment.exceptions()) == 3


def test_a_lost_session_ends_the_job(spark, deploy, eventually):
    """Only the news of it is made here; the session is other tests' too."""
    deployment = deploy({"rows": spark.range(0, 4, 1, 2).mapInArrow(_sleep, "id long")})
    eventually(lambda: any(task.end_ms is None for task in deployment.tasks()), 60)
    deployment._run(lambda: deployment._lost(ConnectionError("the gateway is closed")))
    assert deployment.wait(60) is JobStatus.FAILED
    assert "the gateway is closed" in str(deployment.exceptions()[-1].root.error)
    spark.sparkContext.cancelAllJobs()


def _sleep(batches):
    import time

    time.sleep(30)
    yield from batches


SPARKS_WORDS = """org.apache.spark.SparkException: Job aborted due to stage failure: Task 3 in stage 1.0 failed 1 \
times, most recent failure: Lost task 3.0 in stage 1.0 (TID 4) (host executor driver): \
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/x/lib/pyspark.zip/pyspark/worker.py", line 1247, in main
    process()
  File "/tmp/ipykernel_1/99.py", line 4, in parse
  File "/nowhere/json/decoder.py", line 337, in decode
    obj, end = self.raw_decode(s, idx=_w(s, 0).end())
json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(PythonRunner.scala:572)
Driver stacktrace:
"""


def test_keeps_the_users_frames_of_a_traceback():
    trace, raised = python_traceback(SPARKS_WORDS)
    assert raised == "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)"
    assert trace.splitlines() == [
        "Traceback (most recent call last):",
        '  File "/tmp/ipykernel_1/99.py", line 4, in parse',
        '  File "/nowhere/json/decoder.py", line 337, in decode',
        "    obj, end = self.raw_decode(s, idx=_w(s, 0).end())",
        raised,
    ]


def test_adds_source_lines_that_only_this_process_has(monkeypatch):
    import linecache

    source = "a\nb\nc\n    rows = json.loads(text)\n"
    monkeypatch.setitem(linecache.cache, "/tmp/ipykernel_1/99.py", (len(source), None, source.splitlines(True), ""))
    trace, _ = python_traceback(SPARKS_WORDS)
    assert trace.splitlines()[2] == "    rows = json.loads(text)"


def test_says_what_the_jvm_says_last():
    assert python_traceback("java.lang.RuntimeException: no Python here") is None
    text = (
        "Job aborted due to stage failure: Task 0 in stage 3.0 failed 4 times, most recent failure: "
        "Lost task 0.3 in stage 3.0 (TID 9) (10.0.0.1 executor 2): java.lang.ArithmeticException: / by zero\n"
        "\tat a.b.C.d(C.java:1)\nDriver stacktrace:\n"
    )
    assert cause_of(text) == "java.lang.ArithmeticException: / by zero"
    assert cause_of("x failed\n\tat a.b(C)\nCaused by: java.io.IOException: disk\n\tat a.b(C)\n\t... 3 more") == (
        "java.io.IOException: disk"
    )
    assert cause_of("") == "Spark gave no reason"
    called = "An error occurred while calling z:a.b.withNewId.\n: a.SparkException: [TOO_MANY] rows\n\tat a.b(C)"
    assert cause_of(called) == "a.SparkException: [TOO_MANY] rows"
    assert cause_of(called.replace("calling z:a.b.withNewId", "running a stage")) == cause_of(called)
    crash = "Job aborted: a.SparkException: Python worker exited unexpectedly (crashed). Consider a.\n\tat a.b(C)\n"
    assert cause_of(f"{crash}Caused by: java.io.EOFException\n\tat a.b(C)") == (
        "Python worker exited unexpectedly (crashed). Consider a."
    )


def test_an_error_without_a_line_of_the_users_has_no_empty_brackets():
    error = vertex_failed("Map (1/2)", RuntimeError("boom"), "", {})
    assert str(error) == "Map (1/2) failed: boom"
    assert error.__cause__.args == ("boom",)


WORKER = """\
An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "/opt/spark/python/lib/pyspark.zip/pyspark/worker.py", line 1, in main
    process()
  File "/tmp/ipykernel_1/77.py", line 3, in check
  File "/home/me/helpers.py", line 9, in parse
    return int(text)
ValueError: bad row
 SQLSTATE: 38000)
"""


def test_a_cell_in_a_traceback_goes_by_its_number(monkeypatch):
    monkeypatch.setattr(source_location, "_labels", {})
    source_location.remember(CellSource("cell 5", "/tmp/ipykernel_1/99.py", "", {"/tmp/ipykernel_1/77.py": "cell 2"}))
    trace, what = python_traceback(WORKER)
    assert what == "ValueError: bad row"
    assert trace.splitlines() == [
        "Traceback (most recent call last):",
        "  cell 2, line 3, in check",
        '  File "/home/me/helpers.py", line 9, in parse',
        "    return int(text)",
        "ValueError: bad row",
    ]


OURS = f"{os.path.dirname(flinkmagic.__file__)}/session/batch_runs.py"
CALLED_BACK = f"""\
An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "/opt/lib/python3.11/site-packages/py4j/clientserver.py", line 641, in _call_proxy
  File "{OURS}", line 1, in run
    function(batch, batch_id)
  File "/home/me/helpers.py", line 9, in write
    return int(text)
ValueError: bad row
helpers.py, line 9: raised in Sink: json a (1/1)
 SQLSTATE: 39000 SQLSTATE: XXKST
"""


def test_what_calls_a_function_of_batches_is_none_of_the_users_frames():
    trace, what = python_traceback(CALLED_BACK)
    assert what == "ValueError: bad row\nhelpers.py, line 9: raised in Sink: json a (1/1)"
    assert trace.splitlines() == [
        "Traceback (most recent call last):",
        '  File "/home/me/helpers.py", line 9, in write',
        "    return int(text)",
        *what.splitlines(),
    ]


def test_a_traceback_without_a_frame_of_the_users_is_left_out():
    lines = [line for line in CALLED_BACK.splitlines() if 'helpers.py"' not in line]
    trace, what = python_traceback("\n".join(lines))
    assert trace == ""
    assert what == "ValueError: bad row\nhelpers.py, line 9: raised in Sink: json a (1/1)"


def test_a_cell_that_ran_again_goes_by_its_newest_number(monkeypatch):
    monkeypatch.setattr(source_location, "_labels", {})
    for label in ("cell 2", "cell 6"):
        source_location.remember(CellSource(label, "/tmp/ipykernel_1/77.py", ""))
    assert source_location.label_of("/tmp/ipykernel_1/77.py") == "cell 6"
    assert source_location.label_of("/home/me/helpers.py") is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (WORKER, "ValueError: bad row"),
        (f"TaskKilled (Stage cancelled: {WORKER}", "ValueError: bad row"),
        ("java.io.IOException: no space\n\tat java.base/x.Y(Z.java:1)", "java.io.IOException: no space"),
    ],
)
def test_the_reason_in_a_line(text, reason):
    assert short_reason(text) == reason
