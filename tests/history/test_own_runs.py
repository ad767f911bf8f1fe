"""A run of flinkmagic's is one job of a log, although each of its stages is a Spark job."""

from __future__ import annotations

import pytest

from flinkmagic.history.event_files import find_logs
from flinkmagic.history.event_log import read_application
from flinkmagic.history.logged_run import LoggedRun, logged_runs
from flinkmagic.history.report import History
from tests.history.logging_spark import logged
from tests.history.test_event_log import HEAD, event, read, task
from tests.history.test_logged_run import edges, titles
from tests.notebook_shell import NotebookShell

BEGIN = """
from pyspark.sql import functions as F
rows = spark.range(0, 6000, 1, 2).selectExpr("id", "id % 10 AS k")
keys = spark.range(0, 5, 1, 1).select(F.col("id").alias("k"), F.concat(F.lit("n"), "id").alias("name"))
"""
ACTION = "rows.join(F.broadcast(keys), 'k').groupBy('name').count().orderBy('name').collect()"
GRAPH = """%%flinkgraph orders
most = rows.groupBy("k").agg(F.max("id").alias("m"))
most.join(F.broadcast(keys), "k").write.parquet(at + "/names")
most.orderBy("m").write.parquet(at + "/most")
"""


@pytest.fixture(scope="module")
def runs(spark, tmp_path_factory: pytest.TempPathFactory) -> dict[str, LoggedRun]:
    """The jobs of a log by what they do: an action of the session mode, a graph, an action of plain Spark."""
    folder = tmp_path_factory.mktemp("own")
    with logged(spark, folder / "logs"), NotebookShell() as notebook:
        notebook.begin(spark=spark, at=str(folder))
        for cell in (BEGIN, "%flinkgraph on", ACTION, "%flinkgraph off", GRAPH, "%flinkrun orders"):
            left = notebook.run(cell)
            assert left.error is None, left.traceback
        notebook.magics.graphs["orders"].jobs[-1].wait(60)
        notebook.run("rows.groupBy('k').count().count()")
    (log,) = find_logs(folder / "logs")
    return {run.description.partition("(")[0]: run for run in logged_runs(read_application(log)) if run.n_tasks}


def test_the_stages_of_an_action_are_one_job(runs):
    run = runs["collect"]
    assert (run.name, run.status, run.is_run) == (f"run_{run.jobs[0].id}", "FINISHED", True)
    assert run.description == "collect() (cell 3, line 1)"
    # The broadcast, two shuffles of which the second has sampled before, the action's own.
    assert [vertex.kind for vertex in run.facts.vertices] == ["broadcast", "shuffle", "shuffle", "result"]
    assert edges(run) == [(0, 1, "BROADCAST"), (1, 2, "HASH"), (2, 3, "RANGE")]
    assert {task.role for task in run.facts.helpers} == {"helper"}
    assert titles(run)[0] == ["Range", "Project"]
    # The plan of the last stage is in the log, with what its operators have measured.
    assert titles(run)[3][:2] == ["Scan Exchange", "Sort"]
    scan = run.facts.vertices[3].operators[0]
    assert scan.metrics["numOutputRows"] == 5


def test_the_stages_of_a_graph_are_one_job(runs):
    run = runs["orders"]
    kinds = [vertex.kind for vertex in run.facts.vertices]
    assert sorted(kinds) == ["boundary", "broadcast", "shuffle", "shuffle", "write", "write"]
    of_kind = {(kinds[source], kinds[target], how) for source, target, how in edges(run)}
    assert of_kind == {
        ("shuffle", "boundary", "HASH"), ("boundary", "shuffle", "RESCALE"), ("boundary", "write", "RESCALE"),
        ("broadcast", "write", "BROADCAST"), ("shuffle", "write", "RANGE"),
    }  # fmt: skip
    written = {vertex.above.metrics["numOutputRows"] for vertex in run.facts.vertices if vertex.kind == "write"}
    assert written == {5, 10}
    assert run.facts.reads_of_dropped_caches == {}
    assert run.critical_path().elapsed_s == pytest.approx(run.elapsed_ms / 1000)
    assert [view.kind for view in run.views()] == ["job", "stream"]


def test_other_jobs_are_what_they_were(runs):
    (run,) = [one for one in runs.values() if not one.is_run]
    assert run.name == f"query_{run.executions[0].id}"


def test_a_stage_that_was_submitted_again_has_not_failed(tmp_path):
    def job(number: int, place: str, **more: str) -> bytes:
        stage = {"Stage ID": number, "Stage Name": "orders: Map", "Parent IDs": [], "RDD Info": [{"RDD ID": number}]}
        properties = {"flinkmagic.stage": place, "callSite.long": "orders: Map", "spark.job.description": "orders: Map"}
        return event(
            "SparkListenerJobStart",
            **{
                "Job ID": number, "Submission Time": 1500, "Stage IDs": [number], "Stage Infos": [stage],
                "Properties": properties,
            },
        )  # fmt: skip

    def end(number: int, result: str) -> bytes:
        told = {"Job ID": number, "Completion Time": 2100 + number, "Job Result": {"Result": result}}
        return event("SparkListenerJobEnd", **told)

    def of_stage(number: int, *tasks: bytes) -> list[bytes]:
        return [one.replace(b'"Stage ID":0', b'"Stage ID":%d' % number) for one in tasks]

    events = [
        *HEAD, job(0, "run 0000000a shuffle"), task(0, 1600), task(0, 1600, 1700), end(0, "JobFailed"),
        job(1, "run 0000000a shuffle"), *of_stage(1, task(1, 1800), task(1, 1800, 1900)), end(1, "JobSucceeded"),
        job(2, "run 0000000b result 0000000a:NO_SUCH 0000000b:HASH 0000000c:HASH"),
        *of_stage(2, task(2, 2000), task(2, 2000, 2050)), end(2, "JobSucceeded"),
    ]  # fmt: skip
    app = read(tmp_path / "log", *events)
    (run,) = logged_runs(app)
    assert (run.name, run.description, run.status, run.n_tasks) == ("run_0", "orders", "FINISHED", 3)
    assert [len(vertex.attempts) for vertex in run.facts.vertices] == [2, 1]
    assert edges(run) == [(0, 1, "CUSTOM")]
    assert "run_0 (orders): of 602 ms" in History(app, 5).to_text()
    (run,) = logged_runs(read(tmp_path / "log", *events[:-4], end(1, "JobFailed")))
    assert run.status == "FAILED"
