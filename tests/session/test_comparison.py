"""Two runs side by side: of runs that are made up, and of runs of a graph."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from IPython.core.formatters import DisplayFormatter
from pyspark.sql import functions as F

import flinkmagic
from flinkmagic.display.costs import VertexCost
from flinkmagic.display.page import escaped
from flinkmagic.display.snapshot import GraphView, JobSnapshot, NodeView, OperatorLine, TaskView
from flinkmagic.errors.usage import NoSuchRunError, NothingToCompareError
from flinkmagic.scheduling.dispatcher import JobDetails
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.session.comparison import compare_numbered, compare_runs
from flinkmagic.session.recorded_run import RecordedRun


def node(id: str, call: str, line: int, *operators: str) -> NodeView:
    lines = tuple(OperatorLine(call, operator, f"line {line}") for operator in operators)
    return NodeView(id, "operator", id, lines, 2, id)


SCAN, JOIN, SORT = (
    node("v1", "read()", 1, "Scan"),
    node("v2", "join(x)", 2, "Join"),
    node("v3", "orderBy(y)", 3, "Sort"),
)


def run(number: int, times: dict[str, float], *nodes: NodeView, **more: object) -> RecordedRun:
    """A run whose vertices took so many seconds, with a hundred rows out for each of them."""
    costs = {
        id: VertexCost(1000 * seconds, 1000, int(100 * seconds), 4096, int(1024 * seconds))
        for id, seconds in times.items()
    }
    tasks = [TaskView(id, subtask, slot=f"1_{subtask}", state="FINISHED") for id in times for subtask in (0, 1)]
    took = 1000 * sum(times.values())
    snapshot = JobSnapshot("daily", "FINISHED", took, slots_total=2, tasks=tasks, costs=costs)
    details = JobDetails(f"job{number}", "daily", JobStatus.FINISHED, float(number), took, len(tasks), len(tasks))
    return RecordedRun(
        number, "", details, (GraphView("job", "daily", nodes),), replace(snapshot, **more) if more else snapshot
    )


def test_the_largest_difference_comes_first() -> None:
    both = compare_runs(
        run(1, {"v1": 1.0, "v2": 9.0, "v3": 2.0}, SCAN, JOIN, SORT),
        run(2, {"v1": 1.5, "v2": 2.0, "v3": 4.0}, SCAN, JOIN, SORT),
    )
    assert [(one.vertex, one.line, one.difference_s) for one in both.vertices] == [
        ("join(x)", "line 2", -7.0), ("orderBy(y)", "line 3", 2.0), ("read()", "line 1", 0.5)
    ]  # fmt: skip
    assert (both.first.elapsed_s, both.second.elapsed_s, both.second.tasks, both.second.slots) == (12.0, 7.5, 6, 2)
    first, second = both.vertices[0].first, both.vertices[0].second
    assert (first.rows_out, second.rows_out, second.tasks, second.slots, second.plan) == (900, 200, 2, 2, "Join")
    lines = str(both).splitlines()
    assert lines[0] == (
        "daily: run 1 (FINISHED, 12.0 s, 6 of 6 tasks ran, 2 slots) → "
        "run 2 (FINISHED, 7.5 s, 6 of 6 tasks ran, 2 slots): −4.5 s"
    )
    assert [part.strip() for part in lines[3].split("  ") if part.strip()][:7] == [
        "join(x)", "line 2", "−7.0 s", "9.0 s → 2.0 s", "2", "2", "1,000"
    ]  # fmt: skip
    assert "900 → 200" in lines[3]


def test_vertices_of_another_plan_belong_together_by_what_they_show() -> None:
    other = replace(
        JOIN, id="w2", vertex_id="w2", operators=(replace(JOIN.operators[0], operator="BroadcastHashJoin"),)
    )
    moved = replace(SORT, id="w3", vertex_id="w3", operators=(replace(SORT.operators[0], where="line 9"),))
    both = compare_runs(
        run(1, {"v2": 9.0, "v3": 2.0, "v1": 1.0}, SCAN, JOIN, SORT), run(2, {"w2": 2.0, "w3": 2.0}, other, moved)
    )
    assert [(one.vertex, one.line) for one in both.vertices] == [
        ("join(x)", "line 2"), ("read()", "line 1"), ("orderBy(y)", "line 9")
    ]  # fmt: skip
    told = str(both)
    assert "    plan: Join\n       →  BroadcastHashJoin\n" in told
    assert "    only in the first run: Scan\n" in told
    assert both.vertices[1].second is None


def test_the_value_of_a_cell_shows_the_table() -> None:
    bad = replace(SORT, operators=(replace(SORT.operators[0], call="</td><script>alert(1)</script>"),))
    other = replace(bad, operators=(replace(bad.operators[0], operator="TakeOrdered"),))
    both = compare_runs(run(1, {"v2": 9.0, "v3": 2.0}, JOIN, bad), run(2, {"v2": 2.0, "v3": 3.0}, JOIN, other))
    shown, _ = DisplayFormatter().format(both)
    assert shown["text/plain"] == str(both)
    lines = str(both).splitlines()
    columns = re.findall("<th [^>]*>([^<]*)</th>", shown["text/html"])
    assert columns == re.split("  +", lines[2])
    assert f"<div>{escaped(lines[0])}</div>" in shown["text/html"]
    cells = re.findall("<td [^>]*>([^<]*)</td>", shown["text/html"])
    assert cells[:4] == ["join(x)", "line 2", "−7.0 s", "9.0 s → 2.0 s"]
    assert cells[10:12] == ["&lt;/td&gt;&lt;script&gt;alert(1)&lt;/script&gt;", "line 3"]
    assert cells[20:] == ["plan: Sort\n   →  TakeOrdered"]
    assert "color" not in shown["text/html"], "it has those of the theme"


def test_what_was_reused_took_no_time() -> None:
    both = compare_runs(
        run(1, {"v1": 3.0, "v2": 1.0}, SCAN, JOIN), run(2, {"v2": 1.0}, SCAN, JOIN, reused=frozenset({"v1"}))
    )
    scan = both.vertices[0]
    assert (scan.vertex, scan.difference_s, scan.first.is_reused, scan.second.is_reused) == (
        "read()",
        -3.0,
        False,
        True,
    )
    assert scan.second.time_s is None
    assert "    reuse: computed → reused\n" in f"{both}\n"
    assert ", 1 reused): −3.0 s" in str(both).splitlines()[0]


def test_runs_are_named_by_their_numbers() -> None:
    runs = [run(number, {"v1": float(number)}, SCAN) for number in (3, 4, 6)]

    def compared(a: int | None = None, b: int | None = None) -> tuple[int, int]:
        both = compare_numbered("daily", runs, a, b)
        return both.first.run, both.second.run

    assert [compared(), compared(3), compared(3, 4), compared(None, 4), compared(6, 3), compared(None, 3)] == [
        (4, 6), (3, 6), (3, 4), (3, 4), (6, 3), (6, 3)
    ]  # fmt: skip
    with pytest.raises(NoSuchRunError, match=r"daily has no run 5: its runs are 3, 4, 6 \(%flinkjobs daily\)"):
        compared(5)
    with pytest.raises(NothingToCompareError, match="daily has run only once"):
        compare_numbered("daily", runs[:1], None, None)


def test_a_graph_compares_its_runs(spark, tmp_path) -> None:
    with flinkmagic.capture(spark, name="twice") as program:
        rows = spark.range(0, 1000, 1, 2).withColumn("last", F.col("id") % 10)
        rows.groupBy("last").count().write.mode("overwrite").json(str(tmp_path / "out"))
    graph = flinkmagic.compile(program, parallelism=2)
    with pytest.raises(NothingToCompareError, match="twice has not run"):
        graph.compare()
    graph.run()
    graph.run()
    told = json.loads(graph.compare().to_json())
    assert (told["name"], told["first"]["run"], told["second"]["run"]) == ("twice", 1, 2)
    assert told["second"]["reused"] == 1
    assert [(run["tasks"], run["tasks_of_graph"]) for run in (told["first"], told["second"])] == [(4, 4), (2, 4)]
    assert ", 2 of 4 tasks ran, 2 slots, 1 reused)" in str(graph.compare()).splitlines()[0]
    assert {(run.details.finished_tasks, run.details.tasks) for run in graph.runs()} == {(4, 4)}, "as in %flinkjobs"
    by_plan = {one["second"]["plan"].split(" ")[0]: one for one in told["vertices"]}
    mapped, written = by_plan["Range"], by_plan["HashAggregate"]
    assert (mapped["first"]["is_reused"], mapped["second"]["is_reused"], mapped["second"]["tasks"]) == (False, True, 0)
    assert (mapped["first"]["rows_out"], written["first"]["rows_out"]) == (20, 10)
    assert written["second"]["rows_in"] == 20
    assert mapped["difference_s"] == pytest.approx(-mapped["first"]["time_s"], abs=0.001)
    assert [run.number for run in graph.runs()] == [1, 2]
