"""A run on a virtual cluster beside a real one: what it says of tasks of which the real run tells no time."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from pyspark.sql import functions as F

import flinkmagic
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.session import CompiledGraph, simulate_graph


def graph_with(spark: Any, at: Path, function: Any) -> CompiledGraph:
    """A graph with two tasks that write a shuffle, and two that read it and call a function of Python's."""
    with flinkmagic.capture(spark, name="tried") as program:
        keys = spark.range(0, 1000, 1, 2).select((F.col("id") % 10).alias("key"))
        called = keys.groupBy("key").count().select(F.udf(function, "long")("key").alias("value"))
        called.write.mode("overwrite").json(str(at / "out"))
    return flinkmagic.compile(program, parallelism=2)


def notes(graph: CompiledGraph, **asked: Any) -> list[str]:
    """What stands below the timelines; the picture has the same."""
    simulated = simulate_graph(graph, slots=4, **asked)
    told = simulated.text.partition("simulated on 4 slots\n")[2].splitlines()
    below = told[next(number for number, line in enumerate(told) if line.startswith("makespan")) + 1 :]
    assert all(line in simulated.svg for line in below)
    return below


def test_tasks_that_did_not_finish_are_told_and_what_is_assumed_of_them(spark, tmp_path) -> None:
    def fail(key):
        raise ValueError(key)

    graph = graph_with(spark, tmp_path, fail)
    assert graph.run().status is JobStatus.FAILED
    unknown = "2 of 4 tasks did not finish in that run, so their times are not known: about 1.0 s is assumed of each"
    assert notes(graph) == [unknown]
    assert graph.run().status is JobStatus.FAILED
    again = "2 of 4 tasks did not run, because their results were there: here, too, they take no time"
    assert notes(graph) == [unknown, again]
    reader = next(vertex.name for vertex in graph.job_graph.vertices.values() if vertex.inputs)
    assert notes(graph, task_seconds=[f"{reader}=3"]) == [again]


def test_of_a_cancelled_run_nothing_is_calibrated_either(spark, tmp_path) -> None:
    begun = str(tmp_path / "begun")

    def sleep(key):
        Path(begun).touch()
        time.sleep(60)
        return key

    graph = graph_with(spark, tmp_path, sleep)
    job = graph.run(wait=False)
    while not Path(begun).exists():
        time.sleep(0.05)
    job.cancel()
    assert job.wait() is JobStatus.CANCELED
    assert [note.partition(" did ")[0] for note in notes(graph)] == ["2 of 4 tasks"]


def test_a_run_that_reused_results_says_so_and_is_calibrated(spark, tmp_path) -> None:
    graph = graph_with(spark, tmp_path, lambda key: key)
    graph.run()
    assert [note.partition(":")[0] for note in notes(graph)] == ["calibration"]
    graph.run()
    told = notes(graph)
    assert told[0] == "2 of 4 tasks did not run, because their results were there: here, too, they take no time"
    assert [note.partition(":")[0] for note in told[1:]] == ["calibration"]
