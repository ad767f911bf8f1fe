"""The same job on another cluster, beside the run that happened."""

from __future__ import annotations

import pytest

from flinkmagic.graph.job_graph import JobGraph
from flinkmagic.graph.job_graph_generator import create_job_graph
from flinkmagic.graph.topology import make_environment
from flinkmagic.simulation.options import SimulationOptions, simulation_options
from flinkmagic.simulation.simulation import simulate
from flinkmagic.simulation.what_if import MeasuredRun, measured_work_ms, what_if


@pytest.fixture
def job_graph() -> JobGraph:
    document = {
        "name": "late flights",
        "runtime_mode": "BATCH",
        "transformations": [
            {"id": 1, "kind": "source", "name": "read", "inputs": [], "parallelism": 4},
            {"id": 2, "kind": "partition", "name": "hash", "inputs": [1], "partitioner": "hash"},
            {"id": 3, "kind": "sink", "name": "write", "inputs": [2], "parallelism": 2},
        ],
    }
    return create_job_graph(make_environment(document).get_stream_graph())


def test_measured_times_give_back_the_run_on_the_same_cluster(job_graph: JobGraph) -> None:
    real = simulate(job_graph, SimulationOptions(slots=2, seed=3)).info
    again = what_if(job_graph, real, SimulationOptions(slots=2, seed=99))
    assert again.simulated.timeline.makespan_ms == pytest.approx(again.real.makespan_ms, abs=20.0)
    measured = measured_work_ms(real.archived_execution_graph)
    assert sorted(measured) == list(range(6))
    assert all(700.0 < work_ms < 1_300.0 for work_ms in measured.values())


def test_more_slots_make_it_shorter_and_both_are_shown(job_graph: JobGraph) -> None:
    real = simulate(job_graph, SimulationOptions(slots=1)).info
    shown = what_if(job_graph, real, SimulationOptions(slots=4))
    assert shown.simulated.timeline.makespan_ms < shown.real.makespan_ms / 2.5
    assert len(shown.real.slots) == 1
    svg, text = shown.to_svg(), shown.to_text()
    for title in ("late flights, as it was", "late flights, simulated on 4 slots"):
        assert title in svg
        assert title in text
    assert text.count("makespan") == 2


def test_a_time_that_is_told_goes_before_the_measured_one(job_graph: JobGraph) -> None:
    real = simulate(job_graph, SimulationOptions(slots=4)).info
    options = SimulationOptions(slots=4, task_ms_by_name={"read": 10_000.0}, spread=0.0)
    spans = what_if(job_graph, real, options).simulated.timeline.spans
    lengths = {span.task_name: (span.end_ms or 0.0) - span.start_ms for span in spans}
    assert all(length > 9_000.0 for name, length in lengths.items() if "read" in name)
    assert all(length < 2_000.0 for name, length in lengths.items() if "write" in name)


def test_the_drivers_time_is_simulated_and_the_calibration_told(job_graph: JobGraph) -> None:
    real = simulate(job_graph, SimulationOptions(slots=4)).info
    vertices = job_graph.vertices_in_topological_order()
    lead_ms = {vertex.id: lead for vertex, lead in zip(vertices, (90_000.0, 500.0), strict=True)}
    measured = MeasuredRun(93_000.0, 2, dict.fromkeys(range(6), 1_000.0), lead_ms, 250.0)
    shown = what_if(job_graph, real, SimulationOptions(slots=4), measured)
    # A driver that plans for longer than a job may be stuck is not stuck.
    assert shown.simulated.timeline.makespan_ms == pytest.approx(90_000 + 1_000 + 500 + 1_000 + 250)
    assert shown.to_text().endswith("calibration: as it was, on 2 slots: 1 min 34 s, measured 1 min 33 s")
    assert measured.error(job_graph) == pytest.approx(0.75 / 93)


def test_what_fails_is_planned_again_by_a_busy_driver(job_graph: JobGraph) -> None:
    real = simulate(job_graph, SimulationOptions(slots=4)).info
    vertices = job_graph.vertices_in_topological_order()
    lead_ms = {vertex.id: lead for vertex, lead in zip(vertices, (1_000.0, 500.0), strict=True)}
    measured = MeasuredRun(3_500.0, 4, dict.fromkeys(range(6), 1_000.0), lead_ms, 0.0)
    # A task fails after half of its second, and is restarted a second later: after the driver's second lead.
    options = simulation_options(job_graph, slots=4, fail=["Source: read:1@1.5s"], restart="fixed-delay:3:1s")
    run = what_if(job_graph, real, options, measured).simulated
    assert (run.status.name, len(run.injected)) == ("FINISHED", 1)
    assert run.timeline.makespan_ms == pytest.approx(1_500 + 1_000 + 1_000 + 1_000 + 500 + 1_000, abs=5)
