"""A log of Spark 3.5, written by an application that knows nothing of flinkmagic.

It writes 600,000 orders, ranks them by customer, of whom one has 94 of 100, and writes them; joins them with names by a
broadcast; and counts with an RDD.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from flinkmagic.history.event_files import find_logs
from flinkmagic.history.event_log import read_application
from flinkmagic.history.logged_run import LoggedRun, logged_runs

LOG = Path(__file__).parent / "logs" / "spark-3.5.zstd"


@pytest.fixture(scope="module")
def old() -> dict[str, LoggedRun]:
    (log,) = find_logs(LOG)
    return {run.name: run for run in logged_runs(read_application(log))}


def test_its_jobs_are_its_writes_its_action_and_its_rdd(old):
    app = old["query_0"].app
    assert (app.name, app.spark_version, app.is_over, app.notes) == ("orders by customer", "3.5.9", True, [])
    assert [(run.name, run.n_tasks, round(run.elapsed_ms)) for run in old.values()] == [
        ("query_0", 4, 8576), ("job_1", 1, 127), ("query_1", 6, 9377), ("query_2", 7, 2102), ("job_7", 6, 3489),
    ]  # fmt: skip
    assert {run.facts.slots for run in old.values()} == {2}
    assert [run.facts.is_first for run in old.values()] == [True, False, False, False, False]
    assert old["query_2"].description == "collect at orders.py:17"


def test_the_ranking_has_its_skew_and_what_it_would_take_without(old):
    run = old["query_1"]
    assert [vertex.kind for vertex in run.facts.vertices] == ["shuffle", "write"]
    first, ranked = run.facts.vertices
    assert (sum(task.rows_out for task in first.tasks), ranked.rows_in) == (600_000, 600_000)
    assert [one.kind for one in ranked.operators][:3] == ["SortExec", "WindowExec", "FilterExec"]
    assert [one.partitioner for one in ranked.inputs] == ["HASH"]
    window = ranked.first(lambda one: one.kind == "WindowExec")
    assert window.inputs == (ranked.operators[0].id,)
    (finding,) = run.findings()
    assert (finding.rule, finding.operator, round(finding.cost_s, 1)) == ("skewed-partition", "Window", 4.2)
    assert finding.what.startswith("partition 4 of 4 has 96.0 times as much as the others")
    forecast = run.critical_path().forecast
    assert abs(forecast.error) < 0.02
    assert forecast.without_skew_s < forecast.with_slots_s < 9.376


def test_the_join_reads_a_broadcast(old):
    broadcast, joined, result = old["query_2"].facts.vertices
    assert [one.kind for one in (broadcast, joined, result)] == ["broadcast", "shuffle", "result"]
    join = joined.first(lambda one: one.kind == "BroadcastHashJoinExec")
    assert join.metrics["numOutputRows"] == 600_000
    assert broadcast.above.metrics["numOutputRows"] == 50
    assert {(one.vertex_id, one.partitioner, one.reader) for one in joined.inputs} == {
        (broadcast.id, "BROADCAST", join.id)
    }
    # As of live jobs: what is broadcast has bytes, as its tasks send them; what is collected has none.
    assert sum(task.bytes_out for task in broadcast.tasks) == 2163
    assert {(task.rows_out, task.bytes_out) for task in result.tasks} == {(None, None)}
    assert old["query_2"].snapshot.task_counts == {"FINISHED": 7}


def test_the_line_is_that_of_the_call_that_made_the_stage(old):
    def lines(run: str) -> list[set[tuple[str, str, int]]]:
        vertices = old[run].facts.vertices
        return [{(one.code, one.cell, one.line) for one in vertex.operators} for vertex in vertices]

    assert lines("job_7") == [{("reduceByKey", "orders.py", 18)}, {("collect", "orders.py", 18)}]
    assert lines("query_2") == 3 * [{("collect", "orders.py", 17)}]
    # The call of a write comes from Spark's gateway to Python, whose file is of no use.
    assert lines("query_1") == 2 * [{("", "", 0)}]
    (finding,) = old["query_1"].findings()
    assert finding.where == finding.vertex
