"""What the events of a log tell, also where some are missing, broken or made by no Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flinkmagic.errors.history import NoEventLogError
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.history.event_files import EventLog
from flinkmagic.history.event_log import Application, read_application
from flinkmagic.history.logged_run import logged_runs

SQL = "org.apache.spark.sql.execution.ui.SparkListener"


def read(path: Path, *lines: dict[str, Any] | bytes) -> Application:
    """Read a log of some events."""
    path.write_bytes(b"".join(one if isinstance(one, bytes) else json.dumps(one).encode() + b"\n" for one in lines))
    return read_application(EventLog(path.name, [path]))


def event(name: str, **fields: Any) -> bytes:
    """An event as Spark writes it, without blanks."""
    return json.dumps({"Event": name, **fields}, separators=(",", ":")).encode() + b"\n"


def task(number: int, begin: int, end: int | None = None, reason: str = "Success", **metrics: Any) -> bytes:
    """The start of a task, or its end."""
    info = {"Task ID": number, "Index": number, "Partition ID": number, "Launch Time": begin, "Executor ID": "1"}
    if end is None:
        return event("SparkListenerTaskStart", **{"Stage ID": 0, "Stage Attempt ID": 0, "Task Info": info})
    ended = {**info, "Finish Time": end, "Killed": False, "Accumulables": [{"ID": 1, "Name": ']},"x"'}]}
    return event(
        "SparkListenerTaskEnd",
        **{
            "Stage ID": 0, "Stage Attempt ID": 0, "Task End Reason": {"Reason": reason}, "Task Info": ended,
            "Task Executor Metrics": {}, "Task Metrics": metrics,
        },
    )  # fmt: skip


HEAD = (
    event("SparkListenerLogStart", **{"Spark Version": "4.0.1"}),
    event("SparkListenerApplicationStart", **{"App Name": "made", "App ID": "app-1", "Timestamp": 1000}),
    event("SparkListenerEnvironmentUpdate", **{"Spark Properties": {"spark.task.cpus": "2"}}),
    event(
        "SparkListenerExecutorAdded",
        **{"Timestamp": 1000, "Executor ID": "1", "Executor Info": {"Host": "a", "Total Cores": 8}},
    ),
)
JOB = event(
    "SparkListenerJobStart",
    **{
        "Job ID": 0, "Submission Time": 1500, "Stage IDs": [0], "Properties": {"callSite.short": "collect at a.py:3"},
        "Stage Infos": [{"Stage ID": 0, "Stage Name": "collect", "Parent IDs": [], "RDD Info": []}],
    },
)  # fmt: skip


def test_the_queries_of_a_real_log_are_read(runs):
    app = next(iter(runs.values())).app
    assert app.spark_version.split(".")[0] in ("3", "4")
    assert [run.status for run in runs.values()] == ["FINISHED"] * 9 + ["FAILED"]
    assert app.notes == ["the application had not ended when the log was last written"]
    assert "no way" in runs["failure"].snapshot.errors[0].message


def test_tasks_have_their_times_rows_and_ends(tmp_path):
    shuffled = {"Local Bytes Read": 5, "Remote Bytes Read": 6, "Total Records Read": 7, "Fetch Wait Time": 3}
    wrote = {"Shuffle Bytes Written": 70, "Shuffle Records Written": 8, "Shuffle Write Time": 4_000_000}
    measures = {
        "Executor Run Time": 400, "JVM GC Time": 20, "Memory Bytes Spilled": 9, "Disk Bytes Spilled": 2,
        "Input Metrics": {"Bytes Read": 100, "Records Read": 10}, "Shuffle Read Metrics": shuffled,
        "Shuffle Write Metrics": wrote,
    }  # fmt: skip
    app = read(
        tmp_path / "log", *HEAD, JOB,
        task(0, 1600), task(1, 1600), task(2, 1610), task(0, 1600, 2000, **measures),
        task(1, 1600, 1700, "ExceptionFailure"), task(3, 1700), task(3, 1700, 1800, "TaskKilled"),
    )  # fmt: skip
    good, bad, killed, running = app.stages[0].tasks
    assert (good.start_ms, good.end_ms, good.rows_in, good.bytes_in) == (1600.0, 2000.0, 17, 111)
    assert (good.rows_out, good.bytes_out, good.run_ms, good.gc_ms) == (8, 70, 400, 20)
    assert (good.fetch_wait_ms, good.shuffle_write_ms, good.memory_spilled_bytes) == (3, 4, 9)
    assert (bad.state, bad.reason, bad.error) == (ExecutionState.FAILED, "ExceptionFailure", "ExceptionFailure")
    assert killed.state is ExecutionState.CANCELED
    assert (running.state, running.end_ms, running.subtask) == (ExecutionState.RUNNING, None, 2)
    # Eight cores, of which a task takes two.
    assert app.slots(1500, 2000) == 4
    (run,) = logged_runs(app)
    assert (run.name, run.description, run.status, run.ended_ms) == ("job_0", "collect at a.py:3", "RUNNING", 2000.0)


def test_executors_come_and_go(tmp_path):
    def added(name: str, at: int) -> bytes:
        info = {"Host": "a", "Total Cores": 2}
        return event("SparkListenerExecutorAdded", **{"Timestamp": at, "Executor ID": name, "Executor Info": info})

    removed = event("SparkListenerExecutorRemoved", **{"Timestamp": 50, "Executor ID": "1"})
    app = read(tmp_path / "log", added("1", 10), added("2", 20), removed, added("3", 90))
    assert [app.slots(*times) for times in ((0, 5), (0, 15), (20, 60), (60, 80), (60, 99))] == [0, 2, 4, 2, 4]


def test_a_log_that_is_cut_off_is_read_as_far_as_it_goes(log, tmp_path):
    text = log.read_bytes()
    end = text.index(b'{"Event":"SparkListenerTaskEnd"', len(text) // 3)
    app = read(tmp_path / "log", text[: end + 400])
    assert app.notes == [
        "the log ends in the middle of an event",
        "the application had not ended when the log was last written",
    ]
    last = logged_runs(app)[-1]
    assert last.status == "RUNNING"
    assert ExecutionState.RUNNING in {task.state for stage in app.stages.values() for task in stage.tasks}
    assert last.views()[0].status == "RUNNING"


def test_stages_that_use_a_cache_are_counted_until_it_is_dropped(tmp_path):
    def stage(number: int, **more: Any) -> bytes:
        levels = {5: {"Use Memory": True}, 6: {"Use Disk": False}}
        rdds = [{"RDD ID": rdd, "Storage Level": level} for rdd, level in levels.items()]
        info = {"Stage ID": number, "Stage Name": "s", "Parent IDs": [], "RDD Info": rdds, **more}
        return event("SparkListenerStageCompleted", **{"Stage Info": info})

    used = (*HEAD, JOB, stage(0), stage(1, **{"Failure Reason": "lost"}), stage(2))
    drop = event("SparkListenerUnpersistRDD", **{"RDD ID": 5})
    end = event("SparkListenerApplicationEnd", Timestamp=9000)
    app = read(tmp_path / "log", *used)
    assert (app.cache_reads, app.reads_of_dropped(5)) == ({5: 2}, None)  # a later stage may read it
    assert read(tmp_path / "log", *used, drop).reads_of_dropped(5) == 2
    assert read(tmp_path / "log", *used, end).reads_of_dropped(5) == 2
    # What is missing may have been a stage that read it.
    assert read(tmp_path / "log", *used, b"no json\n", drop, end).reads_of_dropped(5) is None
    assert read(tmp_path / "events_2_app.compact", *used, drop, end).reads_of_dropped(5) is None


def test_events_that_are_not_made_as_spark_makes_them_are_counted_and_left_out(tmp_path):
    deep = b'{"Event":"SparkListenerJobStart","Job ID":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n"
    wrong = (
        b"no json\n", b"[1, 2]\n", b'"text"\n', b'{"Event":"SparkListenerTaskEnd"}\n', deep, b"\xff\xfe\n",
        event("SparkListenerJobStart", **{"Job ID": "x", "Stage IDs": None}),
        event(f"{SQL}SQLExecutionEnd", executionId=77, time=1),
        event("SparkListenerStageCompleted", **{"Stage Info": {"Stage ID": 3, "Parent IDs": 5}}),
    )  # fmt: skip
    app = read(tmp_path / "log", *HEAD, *wrong, JOB, b"\n", event("SparkListenerNobodyKnows", a=1))
    assert (app.name, list(app.jobs)) == ("made", [0])
    assert app.notes[0] == f"{len(wrong)} lines could not be read as events"


def test_a_file_without_events_is_no_log(tmp_path):
    with pytest.raises(NoEventLogError, match=r"log holds no event log of Spark"):
        read(tmp_path / "log", b"# Some page\n", b"\n")


def test_the_last_plan_of_an_execution_counts(tmp_path):
    def plan(name: str) -> dict[str, Any]:
        return {"nodeName": name, "simpleString": name, "children": [], "metrics": [], "metadata": {}}

    start = {"executionId": 4, "rootExecutionId": 4, "description": "count", "time": 1200}
    app = read(
        tmp_path / "log", *HEAD,
        event(f"{SQL}SQLExecutionStart", **start, sparkPlanInfo=plan("First")),
        event(f"{SQL}SQLAdaptiveExecutionUpdate", executionId=4, sparkPlanInfo=plan("Second")),
        event(f"{SQL}DriverAccumUpdates", executionId=4, accumUpdates=[[5, 6]]),
        event(f"{SQL}SQLExecutionEnd", executionId=4, time=1900, errorMessage="it broke"),
    )  # fmt: skip
    execution = app.executions[4]
    assert execution.plan_event()["sparkPlanInfo"]["nodeName"] == "Second"
    assert logged_runs(app) == []
    assert (execution.ended_ms, execution.error, execution.driver_metrics) == (1900.0, "it broke", {5: 6})
