"""The Python API: capture, compile, run."""

from __future__ import annotations

import json
import re
import threading

import pytest
from pyspark.sql import functions as F

import flinkmagic
from flinkmagic.errors.capturing import NoResultError
from flinkmagic.errors.usage import InvalidValueError, NotAProgramError, UnknownNameError
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.scheduling.job_status import JobStatus


@pytest.fixture(scope="module")
def ran(spark, tmp_path_factory):
    """A graph of two sinks over one aggregate, run once."""
    out = tmp_path_factory.mktemp("out")
    with flinkmagic.capture(spark, name="totals") as program:
        numbers = spark.range(0, 1000, 1, 2).withColumn("last", F.col("id") % 10)
        totals = numbers.groupBy("last").agg(F.sum("id").alias("total"))
        totals.write.json(str(out / "totals"))
        totals.where("total > 49700").write.parquet(str(out / "high"))
    graph = flinkmagic.compile(program, parallelism=2)
    assert not any(out.iterdir())
    graph.run()
    return graph, out


def test_a_run_ends_finished_with_the_rows_of_a_plain_run(ran, spark) -> None:
    graph, out = ran
    assert graph.name == "totals"
    assert graph.jobs[-1].status is JobStatus.FINISHED
    expected = {last: sum(range(last, 1000, 10)) for last in range(10)}
    assert {row["last"]: row["total"] for row in spark.read.json(str(out / "totals")).collect()} == expected
    high = spark.read.parquet(str(out / "high"))
    assert {row["last"]: row["total"] for row in high.collect()} == {
        last: total for last, total in expected.items() if total > 49700
    }
    assert [field.dataType.simpleString() for field in high.schema] == ["bigint", "bigint"]


def test_the_graphs_agree(ran) -> None:
    graph, _ = ran
    assert [vertex.parallelism for vertex in graph.job_graph.vertices_in_topological_order()] == [2, 2, 2, 2]
    assert graph.execution_graph.n_vertices == 8
    operators = sum(len(vertex.operators) for vertex in graph.job_graph.vertices_in_topological_order())
    assert operators == len(graph.stream_graph.nodes)


def test_tasks_are_spark_s_own(ran) -> None:
    graph, _ = ran
    tasks = graph.jobs[-1].tasks()
    assert len(tasks) == 8
    assert {task.state for task in tasks} == {ExecutionState.FINISHED}
    assert {task.executor for task in tasks} == {"driver"}
    assert all(task.start_ms <= task.end_ms for task in tasks)
    sources = [task for task in tasks if task.vertex.startswith("Source")]
    assert sum(task.rows_in or 0 for task in sources) == 1000
    assert sum(task.rows_out for task in tasks if "json totals" in task.vertex) == 10


def test_the_summary_tells_what_became_of_each_sink(ran) -> None:
    graph, out = ran
    text = graph.summary()
    assert "in 4 job vertices, 8 tasks, 8 regions; 2 slots" in text
    assert "totals is shared by 2 sinks (totals, high) and computed once: it holds a shuffle" in text
    assert "FINISHED" in text
    assert f"✓ totals: json, errorifexists -> file:{out / 'totals'} (test_session.py, line" in text


def test_the_snapshot_and_the_pictures_hold_the_final_states(ran) -> None:
    graph, _ = ran
    snapshot = graph.jobs[-1].snapshot()
    assert snapshot.status == "FINISHED"
    assert snapshot.task_counts == {"FINISHED": 8}
    bundle = graph._repr_mimebundle_()
    assert re.search(r">[\d.]+ m?s · [^<]+", bundle["image/svg+xml"])
    assert json.dumps(dict(bundle))


@pytest.mark.parametrize("restart", ["sometimes", "fixed-delay:3", "fixed-delay:x:1s", "failure-rate:0:1m:1s", 3])
def test_a_restart_strategy_that_does_not_exist_is_refused(spark, restart) -> None:
    with pytest.raises(InvalidValueError, match=r"^restart must be none, fixed-delay:ATTEMPTS:DELAY, "):
        flinkmagic.compile(spark.range(3), restart=restart)


@pytest.mark.matrix(3)
@pytest.mark.parametrize("restart", ["fixed-delay:2:10ms", "failure-rate:3:1m:10ms", "exponential-delay"])
def test_failed_tasks_are_restarted(spark, tmp_path, restart) -> None:
    marks = str(tmp_path)

    def fails_once(batches):
        from pathlib import Path

        from pyspark import TaskContext

        mark = Path(marks, str(TaskContext.get().partitionId()))
        if not mark.exists():
            mark.touch()
            raise OSError("the disk is full")
        yield from batches

    source = spark.range(0, 100, 1, 2)
    counts = source.mapInArrow(fails_once, source.schema).groupBy("id").count()
    job = flinkmagic.compile({"counts": counts}, parallelism=2, restart=restart).run()
    assert job.status is JobStatus.FINISHED
    assert sorted(row.id for row in job.result("counts").collect()) == list(range(100))
    assert 1 <= job.info().number_of_restarts <= 2
    graph = job.execution_graph
    mapped = graph.job_vertices[0]
    for subtask in range(2):
        tasks = [task for task in job.tasks() if (task.vertex_id, task.subtask) == (mapped.id, subtask)]
        assert [task.attempt for task in tasks] == list(range(len(tasks)))
        assert tasks[-1].state is ExecutionState.FINISHED
        vertex = graph.execution_vertex(mapped.first + subtask)
        assert vertex.current_execution.attempt >= 1
        assert {prior.state for prior in vertex.prior_executions} <= {ExecutionState.FAILED, ExecutionState.CANCELED}


def test_results_stay_in_the_session(spark) -> None:
    frames = {"even": spark.range(10).where("id % 2 = 0"), "sum": spark.range(10).agg(F.sum("id").alias("s"))}
    graph = flinkmagic.compile(frames, name="kept", parallelism=2)
    job = graph.run()
    assert sorted(row.id for row in job.result("even").collect()) == [0, 2, 4, 6, 8]
    assert job.result("sum").first().s == 45
    with pytest.raises(UnknownNameError, match="no result named 'odd'"):
        job.result("odd")


def test_a_job_runs_beside_the_caller_and_can_be_cancelled(spark, tmp_path) -> None:
    slow = F.udf(lambda value: __import__("time").sleep(30) or value, "long")
    with flinkmagic.capture(spark) as program:
        spark.range(0, 4, 1, 2).select(slow("id").alias("id")).write.json(str(tmp_path / "slow"))
    job = flinkmagic.compile(program).run(wait=False)
    assert job.wait(0.1) in (JobStatus.CREATED, JobStatus.RUNNING)
    threading.Timer(1.0, job.cancel).start()
    assert job.wait(60) is JobStatus.CANCELED
    assert not (tmp_path / "slow" / "_SUCCESS").exists()
    assert spark.range(5).count() == 5


def test_a_failure_is_told_with_vertex_and_line(spark, tmp_path) -> None:
    def fail(value):
        raise ValueError("bad row")

    with flinkmagic.capture(spark) as program:
        failing = spark.range(0, 1, 1, 1).select(F.udf(fail, "long")("id").alias("id"))
        failing.write.json(str(tmp_path / "failing"))
    job = flinkmagic.compile(program, name="failing").run()
    assert job.status is JobStatus.FAILED
    (entry, *_) = job.exceptions()
    assert entry.root.task_name.endswith("(1/1)")
    assert "ValueError: bad row" in str(entry.root.error)
    (error, *_) = job.snapshot().errors
    assert "test_session.py" in error.where
    assert 'raise ValueError("bad row")' in error.traceback


@pytest.mark.parametrize("value", [0, -1, "four", 1.5, True])
def test_a_parallelism_is_a_whole_number(spark, value) -> None:
    with pytest.raises(InvalidValueError, match=r"^parallelism must be a whole number of at least 1"):
        flinkmagic.compile(spark.range(1), parallelism=value)


def test_what_sinks_share_is_one_of_three_words(spark) -> None:
    with pytest.raises(InvalidValueError, match="one of auto, always, never, not 'sometimes'"):
        flinkmagic.compile(spark.range(1), share="sometimes")


def test_what_cannot_be_compiled_is_refused_by_name(spark) -> None:
    with pytest.raises(InvalidValueError, match=r"^a graph's name .* must be a Python identifier .*, not 'two words'"):
        flinkmagic.compile(spark.range(1), name="two words")
    with pytest.raises(TypeError, match=r"^compile\(\) got an unexpected keyword argument 'paralellism'"):
        flinkmagic.compile(spark.range(1), paralellism=2)
    with pytest.raises(NotAProgramError, match="not int"):
        flinkmagic.compile([spark.range(1), 7])
    with pytest.raises(NotAProgramError, match="not str"):
        flinkmagic.compile("df")
    with pytest.raises(NoResultError, match="nothing to compute"):
        flinkmagic.compile([])
    with flinkmagic.capture(spark, name="nothing") as program:
        pass
    with pytest.raises(NoResultError, match="'nothing' has nothing to compute"):
        flinkmagic.compile(program)


@pytest.mark.parametrize(
    ("slots", "noted"),
    [
        (1, "3 job vertices are wider than 1 slot (up to 3 tasks): each runs alone, and Spark may run 2 of its tasks"),
        (2, None),
        (None, None),
    ],
)
def test_the_summary_says_where_spark_may_go_beyond_the_slots(spark, slots, noted) -> None:
    totals = spark.range(0, 9, 1, 3).groupBy((F.col("id") % 2).alias("odd")).count().orderBy("odd")
    graph = flinkmagic.compile(totals, parallelism=3, slots=slots)
    assert spark.sparkContext.defaultParallelism == 2
    if noted is None:
        assert "wider" not in graph.summary()
    else:
        assert noted in graph.summary()
