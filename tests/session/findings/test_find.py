"""What is told of a job: what costs enough, the most expensive first, and as text and JSON."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.session.findings.critical_path import critical_path
from flinkmagic.session.findings.find import find
from flinkmagic.session.findings.rule import Rule
from flinkmagic.session.findings.rules import garbage_collection
from flinkmagic.session.findings.texts import finding_lines, findings_json, findings_text
from tests.session.findings.made_facts import found, job, operator, task, vertex


def collecting(gc_ms, took_s=1.0, **more):
    return vertex(*[task(one, 0, took_s, gc_ms=gc_ms) for one in range(2)], **more)


def failing(lost_s, took_s=1.0):
    failed = task(0, 0, lost_s, state=ExecutionState.FAILED)
    return vertex(failed, *[task(one, lost_s, took_s) for one in range(2)])


def test_what_costs_less_than_200_ms_is_not_told():
    assert found(job(failing(0.2))) == ["failed-tasks"]
    assert found(job(failing(0.199))) == []


def test_what_costs_less_than_a_fiftieth_of_the_slots_time_is_not_told():
    # 2 slots for 20 s have 40 s, of which a fiftieth are 800 ms.
    assert found(job(failing(0.8), ended_ms=20_000.0, is_first=True)) == ["failed-tasks"]
    assert found(job(failing(0.799), ended_ms=20_000.0, is_first=True)) == []


def test_a_jobs_outcome_tells_once_of_stages_with_one_cause_at_one_line():
    spilling = [[task(0, 0, took_s, disk_spilled_bytes=5 * 10**8)] for took_s in (1, 2, 2.5)]
    stages = [vertex(*tasks, id=f"v{n}", operators=(operator("SortExec"),)) for n, tasks in enumerate(spilling)]
    elsewhere = replace(stages.pop(), operators=(operator("SortExec", line=6),))
    told = [line.split(". Try: ")[0] for line in finding_lines(find(job(*stages, elsewhere)))]
    spilled = "1 task of 1 wrote 476.8 MiB of rows to disk that did not fit into memory"
    assert told == [
        f"3.0 s of slots lost, cell 3, line 5: {spilled}; 1 more stage alike",
        f"2.5 s of slots lost, cell 3, line 6: {spilled}",
    ]


def test_the_most_expensive_comes_first():
    slow = vertex(*[task(one, 0, 1) for one in range(3)], task(3, 0, 9, rows_in=9000), id="slow", reads="HASH")
    both = find(job(collecting(900, id="full"), slow, slots=6))
    assert [one.rule for one in both] == ["skewed-partition", "garbage-collection"]
    assert both[0].cost_s > both[1].cost_s


def test_a_short_job_has_nothing_to_tell():
    assert find(job(failing(0.09, took_s=0.09))) == ()


def test_text_and_json_say_the_same():
    facts = job(collecting(500, operators=(operator("SortExec", code="df.sort('x')"),)))
    findings, path = find(facts), critical_path(facts)
    text = findings_text("daily", findings, path)
    assert text.splitlines()[0].startswith("daily: of 1.0 s, 1.0 s is the critical path, 0 ms the driver")
    assert "where: cell 3, line 5: df.sort('x')" in text
    told = json.loads(findings_json("daily", findings, path))
    (one,) = told["findings"]
    assert (one["rule"], one["line"], one["cost_s"], one["certainty"]) == ("garbage-collection", 5, 1.0, "measured")
    assert told["critical_path"]["path_s"] == pytest.approx(1.0)
    assert "nothing that costs 200 ms of a slot" in findings_text("daily", (), path)


def test_a_rule_that_is_wrong_hides_no_other_finding(monkeypatch, caplog):
    def wrong(facts):
        raise ZeroDivisionError

    monkeypatch.setattr("flinkmagic.session.findings.find.RULES", (Rule("wrong", wrong), garbage_collection.RULE))
    assert found(job(collecting(500))) == ["garbage-collection"]
    assert [record.getMessage() for record in caplog.records] == ["The rule wrong of findings could not be applied"]
