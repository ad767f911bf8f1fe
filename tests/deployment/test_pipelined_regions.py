"""Pipelined regions on real Spark: what the consumer sees when, and what becomes of a region."""

from __future__ import annotations

import sys

import pytest
from own_process import told_by
from pyspark.sql import functions as F

import flinkmagic
from flinkmagic.scheduling.job_status import JobStatus

BATCH, BATCHES = 10_000, 120
N_ROWS = 2 * BATCH * BATCHES


def exact(rows):
    return [rows, rows * (rows - 1) // 2]


@pytest.fixture
def run(spark):
    """Run with pipelined exchanges that fit into the two slots of the session."""

    def start(frames, **options):
        graph = flinkmagic.compile(frames, "piped", parallelism=1, exchange="pipelined", retain="none", **options)
        return graph, graph.run()

    return start


@pytest.fixture
def numbers(spark):
    return spark.range(0, 500, 1, 1).withColumn("k", F.col("id") % 7)


def test_two_vertices_are_one_region_one_job_of_spark_s_and_its_rows_are_those_of_plain_spark(run, numbers):
    frame = numbers.repartition(1).groupBy("k").agg(F.sum("id").alias("s"))
    graph, job = run({"r": frame})
    assert job.status is JobStatus.FINISHED
    assert graph.execution_graph.pipelined_regions.count == 1
    assert len(graph.job_graph.vertices) == 2
    own = [task for task in job.tasks() if task.role == "task"]
    assert len({task.stage for task in own}) == len(own) == 2
    assert sorted(job.result("r").collect()) == sorted(frame.collect())


def test_kept_rows_are_read_without_the_shuffle_that_made_them(run, numbers):
    """Spark neither runs a pipelined shuffle twice nor in a job with another one."""
    _, job = run({"r": numbers.repartition(1)})
    kept = job.result("r")
    assert sorted(kept.groupBy("k").count().collect()) == sorted(numbers.groupBy("k").count().collect())
    assert kept.join(numbers.withColumnRenamed("k", "j"), "id").count() == 500


def test_a_graph_runs_again(run, numbers):
    graph, _ = run({"r": numbers.repartition(1)})
    job = graph.run(full=True)
    assert job.status is JobStatus.FINISHED
    assert job.result("r").count() == 500


def test_a_broadcast_is_a_finished_input_of_a_region(run, numbers):
    weights = numbers.where("id < 50").repartition(1).groupBy("k").agg(F.max("id").alias("top"))
    frame = numbers.repartition(1).join(F.broadcast(weights), "k")
    graph, job = run({"r": frame})
    assert job.status is JobStatus.FINISHED
    assert graph.execution_graph.pipelined_regions.count == 2
    assert sorted(job.result("r").collect()) == sorted(frame.collect())


def test_a_write_that_fails_once_is_made_by_the_second_attempt_of_the_whole_region(spark, numbers, tmp_path):
    mark = tmp_path / "failed"

    def fail_once(batches):
        for batch in batches:
            if not mark.exists():
                mark.touch()
                raise OSError("the disk is full")
            yield batch

    with flinkmagic.capture(spark, name="writes") as captured:
        frame = numbers.repartition(1).mapInArrow(fail_once, numbers.schema)
        frame.write.parquet(str(tmp_path / "out"))
    graph = flinkmagic.compile(captured, parallelism=1, exchange="pipelined", restart="fixed-delay:1:20ms")
    job = graph.run()
    assert job.status is JobStatus.FINISHED, job.exceptions()
    assert "the disk is full" in str(job.exceptions()[0].root.error)
    execution = job.execution_graph
    assert [len(execution.execution_vertex(vertex).prior_executions) for vertex in range(2)] == [1, 1]
    assert sorted(spark.read.parquet(str(tmp_path / "out")).collect()) == sorted(numbers.collect())


def test_a_function_that_stops_reading_ends_the_region(run, numbers):
    def first(batches):
        yield next(batches)

    _, job = run({"r": numbers.repartition(1).mapInArrow(first, numbers.schema)})
    assert job.status is JobStatus.FINISHED
    assert 0 < job.result("r").count() <= 500


@pytest.fixture(scope="module", params=[pytest.param("local", marks=pytest.mark.exhaustive), "cluster"])
def story(request, tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("pipelined"))
    script = ("-m", "tests.deployment.pipelined_process", folder, request.param)
    return told_by(*script, environment={"PYSPARK_PYTHON": sys.executable}).value | {"kind": request.param}


@pytest.mark.long
def test_the_consumer_sees_its_first_row_before_a_tenth_of_the_producer_s_rows_are_read(story):
    early = story["early"]
    assert early["status"] == "FINISHED", early["errors"]
    assert (early["regions"], early["spark_stages"]) == (1, 2)
    assert early["rows"] == exact(N_ROWS)
    assert 0 < early["before"] < N_ROWS / 10


@pytest.mark.long
def test_a_region_waits_for_the_slots_that_a_job_of_the_user_s_holds(story):
    others = story["others"]
    waits = "the region of rows (2 vertices) waits for 4 slots, which it needs simultaneously"
    assert others["note"] == f"{waits}, and Spark's other jobs leave 1"
    assert others["status"] == "FINISHED", others["errors"]
    assert others["rows"] == exact(100_000)


@pytest.mark.long
def test_a_region_waits_for_more_slots_than_the_session_has_and_says_for_how_many(story):
    few = story["too_few"]
    assert few["note"].endswith("(2 vertices) waits for 6 slots, which it needs simultaneously; 4 of 4 are free")
    assert "It needs 6 slots, and there are 4: it waits until there are more." in few["summary"]
    assert ("A session on local[4] never gets more" in few["summary"]) == (story["kind"] == "local")
    assert few["tasks"] == 0
    if story["kind"] == "cluster":  # where a worker came
        assert few["status"] == "FINISHED", few["errors"]
        assert few["rows"] == exact(1000)
    else:
        assert few["status"] == "CANCELED"


@pytest.mark.long
def test_a_killed_executor_restarts_the_region_as_a_whole_and_no_row_is_lost_or_doubled(story):
    if story["kind"] == "local":
        pytest.skip("a local session has no executor to kill")
    killed = story["killed"]
    assert killed["status"] == "FINISHED", killed["errors"]
    assert killed["rows"] == exact(N_ROWS)
    attempts = {number for of_vertex in killed["attempts"] for number in of_vertex}
    assert len(attempts) == 1
    assert attempts.pop() >= 1


@pytest.mark.long
def test_cancelling_ends_every_stage_of_the_region(story):
    cancelled = story["cancelled"]
    assert cancelled["status"] == "CANCELED"
    assert {state for of_vertex in cancelled["states"] for state in of_vertex} == {"CANCELED"}
