"""How long a job would take on other slots, told from the times of its tasks."""

from __future__ import annotations

from typing import Any

import pytest

from flinkmagic.graph.access_execution_graph import AccessExecutionGraph
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.graph.job_graph_generator import create_job_graph
from flinkmagic.graph.topology import make_environment
from flinkmagic.session.findings.critical_path import critical_path
from flinkmagic.session.findings.forecast import Forecast, forecast, measured_run
from tests.session.findings.made_facts import job, task, vertex


def graph_of(*parallelisms: int) -> AccessExecutionGraph:
    """A chain of vertices, each behind a shuffle."""
    transformations: list[dict[str, Any]] = []
    for number, parallelism in enumerate(parallelisms):
        one = {"id": 2 * number + 1, "kind": "source", "name": f"v{number}", "inputs": [], "parallelism": parallelism}
        if number:
            hashed = {"kind": "partition", "name": "hash", "inputs": [2 * number - 1], "partitioner": "hash"}
            transformations.append({"id": 2 * number, **hashed})
            one |= {"kind": "one_input", "inputs": [2 * number]}
        transformations.append(one)
    sink = {"id": 99, "kind": "sink", "name": "sink", "inputs": [one["id"]], "parallelism": parallelism}
    transformations.append(sink)
    document = {"name": "chain", "runtime_mode": "BATCH", "transformations": transformations}
    return ExecutionGraph(create_job_graph(make_environment(document).get_stream_graph()))


@pytest.mark.parametrize(("error", "text"), [(-0.001, "+0 %"), (-0.026, "-3 %"), (0.04, "+4 %")])
def test_its_error_is_told_in_whole_percent(error: float, text: str) -> None:
    assert str(Forecast(4, 8.2, 6.1, error)).endswith(f"(simulated; as it was: {text})")


def test_waves_take_half_as_long_on_twice_the_slots():
    graph = graph_of(8)
    waves = vertex(*[task(one, one // 2, 1) for one in range(8)], id=graph.job_vertices[0].id)
    told = forecast(job(waves), graph)
    assert (told.slots, told.with_slots_s, told.without_skew_s) == (4, pytest.approx(2.0), None)
    assert told.error == pytest.approx(0.0, abs=0.001)
    assert str(told) == "with 4 slots 2.0 s (simulated; as it was: +0 %)"


def test_all_slots_of_the_session_are_tried_if_the_job_had_fewer():
    graph = graph_of(8)
    waves = vertex(*[task(one, one // 2, 1) for one in range(8)], id=graph.job_vertices[0].id)
    told = forecast(job(waves, slots_of_session=8), graph)
    assert (told.slots, told.with_slots_s) == (8, pytest.approx(1.0))


def test_the_drivers_time_stays_as_it_was():
    graph = graph_of(4, 2)
    first, second = (one.id for one in graph.job_vertices)
    reads = vertex(*[task(one, 1 + one // 2, 1) for one in range(4)], id=first)
    writes = vertex(task(0, 5, 2), task(1, 5, 2), id=second, reads="HASH", of=first)
    facts = job(reads, writes, ended_ms=8_000.0)
    measured = measured_run(facts, graph)
    assert measured.lead_ms == {first: 1_000.0, second: 2_000.0}
    assert (measured.tail_ms, measured.elapsed_ms, measured.slots) == (1_000.0, 8_000.0, 2)
    assert measured.simulated_ms(graph.job_graph, 2) == pytest.approx(8_000.0, abs=1)
    # Half of the first stage is gone; on one slot both stages take twice as long.
    assert measured.simulated_ms(graph.job_graph, 4) == pytest.approx(7_000.0, abs=1)
    assert measured.simulated_ms(graph.job_graph, 1) == pytest.approx(1_000 + 4_000 + 2_000 + 4_000 + 1_000, abs=1)
    text = str(critical_path(facts, graph))
    assert text == (
        "of 8.0 s, 4.0 s is the critical path, 4.0 s the driver; with 4 slots 7.0 s (simulated; as it was: +0 %)"
    )


def test_while_the_driver_is_busy_with_one_stage_another_one_has_the_slot():
    document = {
        "name": "branches",
        "runtime_mode": "BATCH",
        "transformations": [
            {"id": 1, "kind": "source", "name": "early", "inputs": [], "parallelism": 1},
            {"id": 2, "kind": "source", "name": "late", "inputs": [], "parallelism": 1},
        ]
        + [
            {"id": 2 + number, "kind": "sink", "name": f"sink{number}", "inputs": [number], "parallelism": 1}
            for number in (1, 2)
        ],
    }
    graph = ExecutionGraph(create_job_graph(make_environment(document).get_stream_graph()))
    early, late = (one.id for one in graph.job_vertices)
    facts = job(vertex(task(0, 0, 3), id=early), vertex(task(0, 2, 3), id=late))
    measured = measured_run(facts, graph)
    assert measured.lead_ms == {early: 0.0, late: 2_000.0}
    assert measured.simulated_ms(graph.job_graph, 1) == pytest.approx(6_000.0, abs=1)


def test_without_the_skew_all_tasks_take_the_same_time():
    graph = graph_of(4, 4)
    first, second = (one.id for one in graph.job_vertices)
    reads = vertex(*[task(one, one // 2, 1) for one in range(4)], id=first)
    tasks = [task(0, 2, 5, rows_in=9000), *[task(one, 1 + one, 1, rows_in=1000) for one in (1, 2, 3)]]
    told = forecast(job(reads, vertex(*tasks, id=second, reads="HASH", of=first)), graph)
    # 5 + 1 + 1 + 1 s, by four tasks on two slots.
    assert told.without_skew_s == pytest.approx(2.0 + 4.0, abs=0.01)
    assert "with 4 slots 6.0 s, without the skew 6.0 s" in str(told)


def test_failed_attempts_count_and_partitions_read_together_do_not():
    graph = graph_of(4)
    failed = task(0, 0, 1, state=ExecutionState.FAILED)
    tasks = [failed, task(0, 1, 2, attempt=1), task(1, 0, 2)]
    facts = job(vertex(*tasks, id=graph.job_vertices[0].id))
    assert measured_run(facts, graph).task_ms == {0: 3_000.0, 1: 2_000.0, 2: 0.0, 3: 0.0}


def test_a_job_that_failed_has_no_forecast():
    graph = graph_of(2)
    facts = job(vertex(task(0, 0, 1), id=graph.job_vertices[0].id), is_finished=False)
    assert forecast(facts, graph) is None
    assert measured_run(facts, graph).task_ms == {0: 1_000.0}


def test_a_stage_that_was_done_when_its_job_failed_has_only_the_tasks_that_it_had():
    graph = graph_of(4, 2)
    first, second = graph.job_vertices
    for subtask in first.vertices:
        graph.transition(subtask, ExecutionState.FINISHED, 9_000.0, recovering=True)
    done = vertex(task(0, 1, 2), task(1, 1, 3), id=first.id)
    failed = vertex(task(0, 4, 1), id=second.id, reads="HASH", of=first.id)
    measured = measured_run(job(done, failed, is_finished=False), graph)
    assert measured.task_ms == {0: 2_000.0, 1: 3_000.0, 2: 0.0, 3: 0.0, 4: 1_000.0}
