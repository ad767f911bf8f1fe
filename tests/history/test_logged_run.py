"""Jobs of a log have the graph, the measures and the findings that a live job has."""

from __future__ import annotations

import pytest

from flinkmagic.history.logged_run import logged_runs
from flinkmagic.session.findings import find as findings
from tests.history.test_event_log import HEAD, event, read, task


@pytest.fixture
def all_told(monkeypatch):
    """Findings that cost nothing are told, too."""
    monkeypatch.setattr(findings, "NOTABLE_S", 0.0)
    monkeypatch.setattr(findings, "NOTABLE_SHARE", 0.0)


def titles(run):
    """Spark's operators of each vertex, inputs first."""
    return [[one.operator for one in vertex.operators if one.kind] for vertex in run.facts.vertices]


def edges(run):
    """How each vertex reads which, by their places."""
    place = {vertex.id: number for number, vertex in enumerate(run.facts.vertices)}
    return [
        (place[one.vertex_id], number, one.partitioner)
        for number, vertex in enumerate(run.facts.vertices)
        for one in vertex.inputs
    ]


def test_a_write_is_one_stage_with_its_files(runs):
    run = runs["write"]
    (vertex,) = run.facts.vertices
    assert (vertex.kind, len(vertex.tasks), run.facts.slots_of_session) == ("write", 3, run.facts.slots)
    assert vertex.above.metrics["numFiles"] == 3
    assert vertex.above.metrics["numOutputRows"] == 3000
    assert run.views()[0].nodes[0].title == "parquet rows"
    assert sum(task.rows_out for task in vertex.tasks) == 3000


def test_a_join_has_its_broadcast_its_shuffles_and_its_rows(runs):
    run = runs["join"]
    kinds = [vertex.kind for vertex in run.facts.vertices]
    assert kinds == ["broadcast", "shuffle", "shuffle", "result"] or kinds == ["broadcast", "shuffle", "result"]
    assert (0, 1, "BROADCAST") in edges(run)
    assert (1, 2, "HASH") in edges(run)
    broadcast, joined = run.facts.vertices[:2]
    assert titles(run)[1][-3:-1] == ["BroadcastHashJoin", "Project"]
    join = joined.first(lambda one: one.kind == "BroadcastHashJoinExec")
    # 5 of 10 keys, of 3000 rows.
    assert join.metrics["numOutputRows"] == 1500
    scan = joined.first(lambda one: one.kind == "FileSourceScanExec")
    assert (scan.metrics["numFiles"], scan.metrics["format"]) == (3, "Parquet")
    assert scan.metrics["paths"][0].endswith("/rows")
    assert broadcast.above.metrics["numOutputRows"] == 5
    reads = next(one for one in joined.inputs if one.vertex_id == broadcast.id)
    assert reads.reader == join.id
    if kinds[-1] == "result" and len(kinds) == 4:
        assert (2, 3, "RANGE") in edges(run)
        # What samples before a sort has only helped.
        assert {task.role for task in run.facts.helpers} == {"helper"}


def test_a_cache_is_filled_by_its_own_stage_or_by_the_one_that_reads_it(runs):
    words = titles(runs["cache"])
    assert any("InMemoryTableScan" in one for one in words)
    scans = [one for one in words if any(word.startswith("Scan parquet") for word in one)]
    assert len(scans) == 1
    if "InMemoryTableScan" not in scans[0]:
        assert runs["cache"].facts.vertices[0].kind == "boundary"
        assert edges(runs["cache"])[0] == (0, 1, "RESCALE")


def test_a_cache_that_was_dropped_after_one_read_is_told(runs, all_told):
    (finding,) = [one for one in runs["cache"].findings() if one.rule == "unread-cache"]
    assert finding.what == "900 rows were cached, and dropped before anything else had read them"
    assert finding.operator == "InMemoryTableScan"
    for name in ("fill", "again"):
        (reads,) = runs[name].facts.reads_of_dropped_caches.values()
        assert (reads, "unread-cache" in {one.rule for one in runs[name].findings()}) == (3, False)
    assert runs["fill"].facts.caches == runs["again"].facts.caches != runs["cache"].facts.caches


def test_two_caches_that_one_stage_scans_are_not_told_apart(tmp_path):
    level = {"Use Memory": True, "Use Disk": True}
    scan = {"Scope": '{"id":"9","name":"InMemoryTableScan"}'}
    plan = {
        "nodeName": "InMemoryTableScan", "simpleString": "InMemoryTableScan", "children": [],
        "metrics": [{"name": "number of output rows", "accumulatorId": 70}],
    }  # fmt: skip
    for caches, known in (((3,), {3}), ((3, 4), set())):
        rdds = [{"RDD ID": cache, "Storage Level": level, "Parent IDs": []} for cache in caches]
        rdds += [{"RDD ID": 10 + cache, "Parent IDs": [cache], **scan} for cache in caches]
        stage = {
            "Stage ID": 0, "Stage Name": "s", "Parent IDs": [], "RDD Info": rdds,
            "Accumulables": [{"ID": 70, "Value": "5", "Metadata": "sql"}],
        }  # fmt: skip
        start = event(
            "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart",
            executionId=7, rootExecutionId=7, description="count", time=1400, sparkPlanInfo=plan,
        )  # fmt: skip
        job = event(
            "SparkListenerJobStart",
            **{
                "Job ID": 0, "Submission Time": 1500, "Stage IDs": [0], "Stage Infos": [stage],
                "Properties": {"spark.sql.execution.id": "7"},
            },
        )  # fmt: skip
        over = event("SparkListenerStageCompleted", **{"Stage Info": stage})
        (run,) = logged_runs(read(tmp_path / "log", *HEAD, start, job, task(0, 1600), task(0, 1600, 2000), over))
        assert run.facts.caches == known


def test_a_scan_tells_its_partitions_and_a_sort_who_undoes_it(runs, all_told):
    scan = runs["needless"].facts.vertices[0].first(lambda one: one.kind == "FileSourceScanExec")
    assert (scan.metrics["partitionColumns"], scan.metrics["partitions"]) == (["k"], "")
    assert scan.metrics["numPartitions"] == 10
    join = runs["join"].facts.vertices[1].first(lambda one: one.kind == "FileSourceScanExec")
    assert join.metrics["partitionColumns"] == []
    told = {one.rule for one in findings.find(runs["needless"].facts)}
    assert {"needless-sort", "unfiltered-partitions"} <= told


def test_an_operator_with_a_shuffle_of_its_own_is_in_both_stages(runs):
    run = runs["first"]
    words = titles(run)
    assert words[0][-1] == "TakeOrderedAndProject (local)"
    assert words[1][0] == "TakeOrderedAndProject"
    assert edges(run)[0] == (0, 1, "GLOBAL")
    assert run.facts.vertices[0].kind == "shuffle"
    scan = run.facts.vertices[0].operators[0]
    assert (scan.kind, scan.metrics["numOutputRows"]) == ("FileSourceScanExec", 3000)
    # Of each of two partitions the first 30.
    assert run.facts.vertices[1].rows_in == 60


def test_a_job_of_an_rdd_has_the_scopes_of_its_rdds(runs):
    run = runs["rdd"]
    assert run.executions == []
    first, second = titles(run)
    assert first[0] == "parallelize"
    assert "PairwiseRDD" in first
    assert second[0] == "partitionBy"
    assert edges(run) == [(0, 1, "CUSTOM")]
    assert [len(vertex.tasks) for vertex in run.facts.vertices] == [2, 2]


def test_a_job_that_failed_has_its_tasks_and_its_plan(runs):
    run = runs["failure"]
    (vertex,) = run.facts.vertices
    assert titles(run)[0][0] == "Range"
    assert (len(vertex.attempts), len(vertex.tasks)) == (1, 0)
    assert run.snapshot.task_counts == {"FAILED": 1}
    assert run.findings() == ()


def test_times_add_up(runs):
    for name, run in runs.items():
        path = run.critical_path()
        assert path.elapsed_s == pytest.approx(run.elapsed_ms / 1000), name
        assert 0 < path.path_s <= path.elapsed_s + 0.001, name
        if run.status == "FINISHED":
            assert abs(path.forecast.error) * path.elapsed_s <= path.driver_s + 0.2 * path.elapsed_s, name
            as_it_was = path.elapsed_s * (1 + path.forecast.error)
            assert path.least_s - 0.001 <= path.forecast.with_slots_s <= as_it_was + 0.001, name  # of twice the slots
            assert path.forecast.slots == 2 * run.facts.slots


def test_stages_that_read_each_other_in_a_circle_are_no_circle(tmp_path):
    stages = [
        {"Stage ID": number, "Stage Name": "s", "Parent IDs": [1 - number], "RDD Info": [{"RDD ID": number}]}
        for number in (0, 1)
    ]
    job = event(
        "SparkListenerJobStart",
        **{"Job ID": 0, "Submission Time": 1500, "Stage IDs": [0, 1], "Properties": {}, "Stage Infos": stages},
    )
    other = task(5, 2100, 2200).replace(b'"Stage ID":0', b'"Stage ID":1')
    (run,) = logged_runs(read(tmp_path / "log", *HEAD, job, task(0, 1600, 2000), other))
    assert edges(run) == [(0, 1, "CUSTOM")]


@pytest.mark.parametrize(
    "plan", [b"null", b"5", b'{"nodeName":"A","metrics":[{"name":1}]}', b"[" * 50_000 + b"]" * 50_000]
)
def test_a_plan_that_cannot_be_read_is_told_and_the_stages_are_shown(tmp_path, plan):
    start = event(
        "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart",
        executionId=7, rootExecutionId=8, description="count", time=1400, sparkPlanInfo={},
    )  # fmt: skip
    update = b'{"Event":"org.apache.spark.sql.execution.ui.SparkListenerSQLAdaptiveExecutionUpdate","executionId":7,'
    stage = {"Stage ID": 0, "Stage Name": "s", "Parent IDs": [], "RDD Info": [{"RDD ID": 1, "Name": "ScanRDD"}]}
    job = event(
        "SparkListenerJobStart",
        **{
            "Job ID": 0, "Submission Time": 1500, "Stage IDs": [0], "Stage Infos": [stage],
            "Properties": {"spark.sql.execution.id": "7"},
        },
    )  # fmt: skip
    log = (*HEAD, start, update + b'"sparkPlanInfo":' + plan + b"}\n", job, task(0, 1600, 2000))
    (run,) = logged_runs(read(tmp_path / "log", *log))
    assert run.notes == ["its plan could not be read, or is too large: its stages have the names of their RDDs"]
    assert (run.name, run.started_ms, titles(run)) == ("query_7", 1400.0, [["ScanRDD"]])


def test_partitions_with_absurd_numbers_cost_nothing(tmp_path):
    far = task(0, 1600, 2000).replace(b'"Partition ID":0', b'"Partition ID":2000000000')
    job = event(
        "SparkListenerJobStart",
        **{"Job ID": 0, "Submission Time": 1500, "Stage IDs": [0], "Properties": {}, "Stage Infos": []},
    )
    (run,) = logged_runs(read(tmp_path / "log", *HEAD, job, far))
    assert [len(one) for one in run.snapshot.states.values()] == [1]
    assert run.views()[0].nodes[0].parallelism == 1
