"""What a run has found out, as its report and its view tell it."""

from __future__ import annotations

import re

from pyspark.sql import functions as F

import flinkmagic
from flinkmagic.display import TaskView, widget_data
from flinkmagic.display.costs import VertexCost
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.session.run_facts import costs


def test_a_run_tells_sizes_and_what_was_run_otherwise_than_planned(spark):
    # Spark carries the filter over to the other side, too, which has one column only: 200 rows of 16 bytes.
    large = spark.range(0, 20_000, 1, 2).selectExpr("id", "id % 100 AS m")
    few = large.where("cast(cast(m AS string) AS int) = 7").selectExpr("id", "m AS seven")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "10000")
    try:
        job = flinkmagic.compile({"rows": large.join(few, "id").groupBy("seven").count()}, "facts").run()
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    snapshot = job.snapshot()
    join = next(v for v in job.execution_graph.job_vertices if "SortMergeJoin" in v.name)
    written, joined, tasks = snapshot.facts[join.id]
    assert written[0] == "shuffle written"
    assert re.fullmatch(r"[\d.]+ K?i?B in 4 partitions; the widest, \d, has [\d.]+ K?i?B", written[1])
    assert joined == ("join", "SortMergeJoin run as ShuffledHashJoin: its left side has only 3.1 KiB")
    assert tasks == ("tasks", "1, for 4 partitions that turned out small")
    report = job.report()
    assert f"  {join.name}: {joined[1]}" in report
    assert "  small partitions read together: 2 stages, 6 tasks fewer" in report
    log = [line.split("s  ", 1)[1] for line in job.log() if "  stages " in line]
    assert [line.split()[0] for line in log] == ["stages"] * 3
    sent = widget_data.frame(snapshot, (), can_run=True, can_cancel=False)
    assert sent["facts"][join.id] == [list(written), list(joined), list(tasks)]
    assert [tuple(row) for row in job.result("rows").collect()] == [(7, 200)]


def test_a_job_that_ran_as_planned_tells_sizes_only(spark):
    counts = spark.range(0, 100, 1, 2).selectExpr("id % 7 AS k").groupBy("k").count()
    job = flinkmagic.compile({"rows": counts}, "as_planned", parallelism=1).run()
    assert [[name for name, _ in facts] for facts in job.snapshot().facts.values()] == [["shuffle written"]]
    assert not [line for line in job.report() if "read together" in line or "run as" in line]


def test_a_report_tells_what_failed_from_what_ended_with_its_stage(spark, tmp_path):
    def check(value: int, folder: str = str(tmp_path)) -> int:
        import time
        from pathlib import Path

        Path(folder, f"begun-{value}").touch()
        while not all(Path(folder, f"begun-{one}").exists() for one in (0, 1)):
            time.sleep(0.02)
        if value == 0:
            raise ValueError("too much")
        time.sleep(30)  # until Spark ends it
        return value

    rows = spark.range(0, 2, 1, 2).select(F.udf(check, "long")("id").alias("id"))
    job = flinkmagic.compile({"rows": rows}, "halves").run()
    assert job.status is JobStatus.FAILED
    assert job.report()[0].endswith(" (2 FAILED; Spark ended 1 of these with the stage of the failed one)")
    assert any("  hold 1 task until the rest of the job is over" in line for line in job.log())


def test_tasks_are_added_up_and_unknown_amounts_stay_unknown():
    tasks = [
        TaskView("a", 0, state="FINISHED", start_ms=100.0, end_ms=400.0, rows_in=10, rows_out=5, bytes_out=7),
        TaskView("a", 1, state="FINISHED", start_ms=50.0, end_ms=200.0, rows_in=1, bytes_out=3),
        TaskView("a", 2, state="FAILED", start_ms=10.0, end_ms=900.0, rows_in=9),
        TaskView("b", 0, state="FINISHED", start_ms=10.0, rows_in=9, rows_out=9, bytes_in=9, bytes_out=9),
    ]
    assert costs(tasks) == {"a": VertexCost(350.0, 11, 5, None, 10)}
