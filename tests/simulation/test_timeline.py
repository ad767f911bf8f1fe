"""Timelines of runs, as text, data and pictures."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.execution_state import ExecutionState as S
from flinkmagic.graph.job_graph_generator import create_job_graph
from flinkmagic.graph.topology import make_environment
from flinkmagic.scheduling.execution_graph_info import ExecutionGraphInfo
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.simulation.gantt import gantt_svg
from flinkmagic.simulation.timeline import TaskSpan, Timeline, timeline_of, timeline_text

SVG = "{http://www.w3.org/2000/svg}"


def span(
    vertex: int, slot: int, start_ms: float, end_ms: float | None, state: str = "FINISHED", **more: Any
) -> TaskSpan:
    values = {"task_name": f"Task ({vertex}/9)", "attempt": 0, "resource_id": "tm-1", "running_ms": start_ms, **more}
    return TaskSpan(
        vertex=vertex, job_vertex=vertex, slot=slot, start_ms=start_ms, end_ms=end_ms, state=state, **values
    )


def timeline(*spans: TaskSpan, slots: int = 2) -> Timeline:
    return Timeline("job", "FINISHED", spans, tuple(("tm-1", n) for n in range(slots)), 1_000.0, 5_000.0, 1)


def test_slots_are_busy_while_anything_is_in_them() -> None:
    shared = timeline(span(0, 0, 1_000.0, 3_000.0), span(1, 0, 2_000.0, 4_000.0), span(2, 1, 4_000.0, None, "RUNNING"))
    assert shared.makespan_ms == 4_000.0
    assert shared.busy_ms == 3_000.0 + 1_000.0
    assert shared.utilisation == 0.5


def test_as_data_times_count_from_the_start() -> None:
    data = json.loads(json.dumps(timeline(span(0, 0, 1_500.0, 2_000.0)).to_json()))
    assert data["makespan_ms"] == 4_000.0
    assert data["slots"] == ["tm-1/0", "tm-1/1"]
    assert (data["tasks"][0]["start_ms"], data["tasks"][0]["end_ms"]) == (500.0, 1_000.0)


def test_as_text_each_attempt_has_its_bar() -> None:
    text = timeline_text(timeline(span(0, 0, 1_000.0, 3_000.0), span(1, 1, 3_000.0, 5_000.0, "FAILED")), width=8)
    lines = text.splitlines()
    assert lines[0] == "job: FINISHED"
    assert "|####    |" in lines[1]
    assert "|    xxxx|" in lines[2]
    assert lines[-1] == "makespan 4.000s, 2 slots used to 50.0 %, 1 restarts"


def test_a_real_run_makes_a_timeline_too() -> None:
    document = {
        "name": "real",
        "runtime_mode": "BATCH",
        "transformations": [
            {"id": 1, "kind": "source", "name": "a", "inputs": [], "parallelism": 3},
            {"id": 2, "kind": "sink", "name": "b", "inputs": [1], "parallelism": 1},
        ],
    }
    graph = ExecutionGraph(create_job_graph(make_environment(document).get_stream_graph()))
    for vertex, (start_ms, end_ms) in enumerate([(0.0, 10.0), (0.0, 30.0), (10.0, 20.0)]):
        graph.assign_resource(vertex, "executor-1", f"slot-{vertex}")
        for state, at_ms in ((S.SCHEDULED, 0.0), (S.DEPLOYING, start_ms), (S.FAILED, end_ms)):
            graph.transition(vertex, state, at_ms, ValueError("broken") if state is S.FAILED else None)
    graph.reset_for_new_execution(0, 40.0)
    job = {"job_id": "1", "job_name": "real", "job_status": JobStatus.RUNNING, "number_of_restarts": 1, "at_ms": 50.0}
    info = ExecutionGraphInfo(
        **job, status_timestamps={}, archived_execution_graph=graph.archive(), exception_history=(), failure_cause=None
    )
    found = timeline_of(info)
    # the third allocation takes the place that the first one left; what was never deployed is not there
    assert [(s.task_name, s.slot) for s in found.spans] == [
        ("Source: a (1/3)", 0), ("Source: a (2/3)", 1), ("Source: a (3/3)", 0),
    ]  # fmt: skip
    assert found.slots == (("executor-1", 0), ("executor-1", 1))
    assert (found.name, found.job_status, found.restarts) == ("real", "RUNNING", 1)
    assert found.spans[0].error == "broken"
    assert found.makespan_ms == 50.0
    assert np.isclose(found.busy_ms, 50.0)


def test_executors_are_listed_as_people_count() -> None:
    spans = [span(n, 0, 1_000.0, 2_000.0, resource_id=f"tm-{n}") for n in (10, 2, 1)]
    graph = timeline(*spans)
    svg = gantt_svg(Timeline("job", "FINISHED", graph.spans, (("tm-1", 0), ("tm-2", 0), ("tm-10", 0)), 0.0, 1.0, 0))
    assert svg.index("tm-1/0") < svg.index("tm-2/0") < svg.index("tm-10/0")


def test_a_gantt_has_a_row_for_each_slot_and_a_bar_for_each_attempt() -> None:
    svg = gantt_svg(timeline(span(0, 0, 1_000.0, 3_000.0), span(1, 0, 3_000.0, 5_000.0), span(2, 0, 2_000.0, 4_000.0)))
    root = ElementTree.fromstring(svg)
    titles = [element.text for element in root.iter(f"{SVG}title")]
    assert titles[1:] == [
        "Task (0/9)#0: FINISHED, 0.000 s to 2.000 s",
        "Task (1/9)#0: FINISHED, 2.000 s to 4.000 s",
        "Task (2/9)#0: FINISHED, 1.000 s to 3.000 s",
    ]
    bars = [group.find(f"{SVG}rect") for group in root.iter(f"{SVG}g") if group.find(f"{SVG}title") is not None]
    tops = [bar.get("y") for bar in bars if bar is not None]
    assert tops[0] == tops[1] != tops[2]  # what shares a slot is drawn below each other
    widths = [float(bar.get("width", "0")) for bar in bars if bar is not None]
    assert widths == [400.0, 400.0, 400.0]


def test_two_runs_stand_below_each_other_on_one_scale() -> None:
    short = Timeline("short", "FINISHED", (span(0, 0, 0.0, 1_000.0),), (("tm-1", 0),), 0.0, 1_000.0, 0)
    long = Timeline("long", "FINISHED", (span(0, 0, 0.0, 4_000.0),), (("tm-1", 0),), 0.0, 4_000.0, 0)
    root = ElementTree.fromstring(gantt_svg(short, long, titles=["simulated", "as it was"]))
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert {"simulated", "as it was"} <= set(texts)
    bars = [group.find(f"{SVG}rect") for group in root.iter(f"{SVG}g") if group.find(f"{SVG}title") is not None]
    widths = [float(bar.get("width", "0")) for bar in bars if bar is not None]
    assert widths == [200.0, 800.0]


@pytest.mark.parametrize("name", ['<script>alert("1")</script>', "a & b", "quote \" and ' too"])
def test_names_are_text_and_nothing_else(name: str) -> None:
    svg = gantt_svg(timeline(span(0, 0, 1_000.0, 5_000.0, task_name=f"{name} (1/1)", error=name)), titles=[name])
    root = ElementTree.fromstring(svg)
    assert "<script" not in svg
    assert any(element.text == name for element in root.iter(f"{SVG}text"))
