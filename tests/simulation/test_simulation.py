"""Jobs on virtual clusters: when what runs where, and what faults make of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from flinkmagic.errors.usage import UnknownNameError
from flinkmagic.graph.execution_config import InputDependencyConstraint
from flinkmagic.graph.job_graph import JobGraph
from flinkmagic.graph.job_graph_generator import create_job_graph
from flinkmagic.graph.topology import make_environment, read_topology
from flinkmagic.scheduling.failover.restart_strategy import parse_restart_strategy
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.simulation.faults import (
    CancelJob,
    FailJob,
    FailTask,
    LosePartition,
    LoseSlot,
    LoseTaskManager,
    SilenceTaskManager,
    SuspendJob,
)
from flinkmagic.simulation.options import SimulationOptions
from flinkmagic.simulation.simulation import Simulation, SimulationResult, simulate
from flinkmagic.simulation.timeline import TaskSpan
from tests.simulation.invariants import ClusterInvariants

CASES = Path(__file__).parents[1] / "conformance" / "cases"
JOB_ID = "00000000000000000000000000000001"


def job(stages: int = 2, parallelism: int = 2, *, batch: bool = True) -> JobGraph:
    """A chain of stages with a hash exchange before each."""
    transformations: list[dict[str, Any]] = []
    for stage in range(stages):
        inputs = []
        if stage:
            number = len(transformations)
            transformations.append(
                {"id": number + 1, "kind": "partition", "name": "hash", "inputs": [number], "partitioner": "hash"}
            )
            inputs = [number + 1]
        kind = "source" if stage == 0 else "sink" if stage == stages - 1 else "one_input"
        name = "ABCDE"[stage]
        number = len(transformations) + 1
        transformations.append({"id": number, "kind": kind, "name": name, "inputs": inputs, "parallelism": parallelism})
    mode = "BATCH" if batch else "STREAMING"
    document = {"name": "job", "runtime_mode": mode, "transformations": transformations}
    return create_job_graph(make_environment(document).get_stream_graph(), JOB_ID)


def case(name: str) -> JobGraph:
    return create_job_graph(read_topology((CASES / f"{name}.json").read_text()).get_stream_graph(), JOB_ID)


def checked(job_graph: JobGraph, **options: Any) -> SimulationResult:
    """Simulate with all invariants checked after every event, and nothing left behind."""
    settings: Mapping[str, Any] = {"spread": 0.0, "latency_ms": 0.001, "initialization_ms": 0.0, **options}
    simulation = Simulation(job_graph, SimulationOptions(**settings))
    invariants = ClusterInvariants(simulation)
    result = simulation.run(invariants.check)
    if not result.is_stuck:
        invariants.check_end(invariants.check)
    return result


def names(result: SimulationResult) -> list[str]:
    return [f"{span.task_name}#{span.attempt}" for span in result.timeline.spans]


def span(result: SimulationResult, name: str) -> TaskSpan:
    (found,) = [s for s in result.timeline.spans if f"{s.task_name}#{s.attempt}" == name]
    return found


def test_stages_run_one_after_the_other_on_enough_slots() -> None:
    result = checked(job(3, 2), slots=2)
    assert result.status is JobStatus.FINISHED
    assert result.timeline.makespan_ms == pytest.approx(3_000.0, abs=1.0)
    assert result.timeline.utilisation == pytest.approx(1.0, abs=0.001)
    assert result.timeline.restarts == 0


def test_a_stage_that_is_wider_than_the_slots_runs_in_waves() -> None:
    result = checked(job(2, 5), slots=2)
    assert result.timeline.makespan_ms == pytest.approx(6_000.0, abs=1.0)
    assert {(s.resource_id, s.slot) for s in result.timeline.spans} == {("tm-1", 0), ("tm-1", 1)}


def test_a_pipelined_job_ends_with_its_slowest_task() -> None:
    result = checked(job(2, 2, batch=False), slots=2, task_ms_by_name={"Source: A": 5_000.0, "Sink: B": 10.0})
    assert result.timeline.makespan_ms == pytest.approx(5_000.0, abs=1.0)
    assert len(result.timeline.slots) == 2


def test_the_documentations_job_on_two_task_managers_of_three_slots() -> None:
    result = checked(case("docs_two_by_three_slots"), task_managers=2, slots=3)
    assert result.status is JobStatus.FINISHED
    by_slot: dict[tuple[str, int], list[str]] = {}
    for s in result.timeline.spans:
        by_slot.setdefault((s.resource_id, s.slot), []).append(s.task_name.split(" (")[0])
    assert len(by_slot) == 6
    assert sorted(map(len, by_slot.values())) == [1, 1, 2, 2, 2, 2]
    assert all(len(set(held)) == len(held) for held in by_slot.values())


def test_spreading_evenly() -> None:
    def used(evenly: bool) -> int:
        result = checked(job(2, 2), task_managers=2, slots=2, evenly_spread=evenly)
        return len({s.resource_id for s in result.timeline.spans if s.job_vertex == 0})

    assert (used(False), used(True)) == (1, 2)


def test_times_measured_on_a_real_run_are_taken_as_they_are() -> None:
    result = checked(job(2, 1), measured_ms={0: 123.0, 1: 77.0})
    assert result.timeline.makespan_ms == pytest.approx(200.0, abs=0.1)


def test_any_input_starts_a_join_before_the_other_is_there() -> None:
    document = {
        "name": "join",
        "runtime_mode": "BATCH",
        "transformations": [
            {"id": 1, "kind": "source", "name": "quick", "inputs": []},
            {"id": 2, "kind": "source", "name": "slow", "inputs": []},
            {"id": 3, "kind": "two_input", "name": "join", "inputs": [1, 2]},
        ],
    }
    job_graph = create_job_graph(make_environment(document).get_stream_graph(), JOB_ID)
    times = {"Source: quick": 100.0, "Source: slow": 1_000.0}
    needs_all = checked(job_graph, task_ms_by_name=times)
    needs_any = checked(job_graph, task_ms_by_name=times, input_dependency=InputDependencyConstraint.ANY)
    assert span(needs_all, "join (1/1)#0").start_ms == pytest.approx(1_000.0, abs=1.0)
    assert span(needs_any, "join (1/1)#0").start_ms == pytest.approx(100.0, abs=1.0)
    assert needs_any.status is JobStatus.FINISHED


def test_a_job_without_an_end_runs_until_it_is_cancelled() -> None:
    result = checked(job(2, 1, batch=False), endless=frozenset({1}), run_for_ms=5_000.0)
    assert result.status is JobStatus.CANCELED
    assert result.timeline.makespan_ms == pytest.approx(5_000.0, abs=1.0)


def test_a_job_whose_regions_wait_for_each_other_is_stuck_as_in_flink() -> None:
    result = checked(case("cycle_of_logical_regions_deadlock"), slots=20)
    assert result.is_stuck
    assert result.status is JobStatus.RUNNING
    assert sum(s.state == "FINISHED" for s in result.timeline.spans) == 2


# Faults


@pytest.mark.parametrize("vertex", ["B", "2"])
def test_a_failed_task_runs_again_and_its_finished_neighbours_do_not(vertex: str) -> None:
    result = checked(job(2, 2), slots=2, faults=[FailTask(vertex, 1, 1_500.0)], task_ms=1_000.0)
    assert result.status is JobStatus.FINISHED
    assert span(result, "Sink: B (2/2)#0").state == "FAILED"
    assert span(result, "Sink: B (2/2)#1").state == "FINISHED"
    assert not [name for name in names(result) if name.startswith("Source") and name.endswith("#1")]
    assert result.timeline.restarts == 1
    assert result.to_json()["faults"] == ["FailTask: Sink: B (2/2)#0"]


def test_a_failure_that_comes_before_its_task_waits_for_it() -> None:
    result = checked(job(2, 1), faults=[FailTask("B", 0, 1.0)])
    assert span(result, "Sink: B (1/1)#0").state == "FAILED"
    assert span(result, "Sink: B (1/1)#0").start_ms > 999.0


def test_a_lost_executor_takes_its_results_with_it() -> None:
    lose = LoseTaskManager("tm-1", 1_500.0)
    result = checked(job(2, 2), task_managers=2, slots=1, faults=[lose])
    assert result.status is JobStatus.FINISHED
    again = {s.task_name for s in result.timeline.spans if s.attempt > 0}
    lost_source = next(s for s in result.timeline.spans if s.job_vertex == 0 and s.resource_id == "tm-1")
    assert lost_source.task_name in again
    assert not [s for s in result.timeline.spans if s.resource_id == "tm-1" and s.start_ms > 1_500.0]


def test_an_executor_that_comes_back_is_used_again() -> None:
    result = checked(job(3, 2), slots=2, faults=[LoseTaskManager("tm-1", 1_500.0, 500.0)])
    assert result.status is JobStatus.FINISHED
    assert [event.text for event in result.events].count("tm-1 registers 2 slots") == 2


def test_a_silent_executor_is_noticed_by_its_silence() -> None:
    silence = SilenceTaskManager("tm-1", 500.0, 20_000.0)
    result = checked(job(2, 2), slots=2, faults=[silence], heartbeat_interval_ms=100.0, heartbeat_timeout_ms=1_000.0)
    first_failure = min(s.end_ms for s in result.timeline.spans if s.state == "FAILED" and s.end_ms is not None)
    assert 1_000.0 < first_failure < 1_800.0


def test_a_lost_slot_and_a_lost_partition_cost_what_they_must() -> None:
    slot = checked(job(2, 2), slots=2, faults=[LoseSlot("tm-1", 1, 500.0)])
    assert slot.status is JobStatus.FINISHED
    assert [s.state for s in slot.timeline.spans if s.attempt == 0 and s.job_vertex == 0].count("FAILED") == 1
    partition = checked(job(2, 2), slots=2, faults=[LosePartition(0.0, 1_500.0)])
    assert partition.status is JobStatus.FINISHED
    assert "Source: A (1/2)#1" in names(partition)
    assert "Source: A (2/2)#1" not in names(partition)


def test_ends_that_are_asked_for() -> None:
    assert checked(job(), faults=[CancelJob(500.0)]).status is JobStatus.CANCELED
    assert checked(job(), faults=[SuspendJob(500.0)]).status is JobStatus.SUSPENDED
    restarted = checked(job(), faults=[FailJob(1_500.0)])
    assert restarted.status is JobStatus.FINISHED
    assert "Source: A (1/2)#1" in names(restarted)


@pytest.mark.parametrize(("strategy", "end"), [("none", "FAILED"), ("fixed-delay:1:10ms", "FINISHED")])
def test_the_restart_strategy_decides(strategy: str, end: str) -> None:
    result = checked(job(), faults=[FailTask("A", 0, 500.0)], restart_strategy=parse_restart_strategy(strategy))
    assert result.status.name == end


def test_full_failover_runs_everything_again() -> None:
    result = checked(job(2, 2), slots=2, faults=[FailTask("B", 0, 1_500.0)], failover_strategy="full")
    assert sum(s.attempt == 1 for s in result.timeline.spans) == 4


@pytest.mark.parametrize("batch", [True, False])
def test_a_region_that_can_never_get_its_slots_fails_with_what_it_needs(batch: bool) -> None:
    job_graph = case("batch_all_exchanges_pipelined") if batch else job(2, 4, batch=False)
    result = checked(job_graph, slots=2, restart_strategy=parse_restart_strategy("none"))
    assert result.status is JobStatus.FAILED
    assert "slots together, and 2 became available" in result.to_json()["failure"]
    assert "It requests: default" in result.to_json()["failure"]


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (FailTask("Z", 0, 1.0), "no vertex named 'Z'. There are: Source: A, Sink: B."),
        (FailTask("A", 7, 1.0), "no subtask named 'A:7'. There are: A:0, A:1."),
        (LoseTaskManager("tm-9", 1.0), "no task manager named 'tm-9'. There are: tm-1."),
    ],
)
def test_faults_that_name_what_there_is_not_are_refused(fault: Any, message: str) -> None:
    with pytest.raises(UnknownNameError, match=message):
        simulate(job(), SimulationOptions(faults=[fault]))


# Determinism

_TRACE = """
from tests.benchmarks import faults
for number in range(6):
    print(faults.run_case(faults.draw(11, number)).trace)
"""


def test_the_same_seed_gives_the_same_trace_in_every_process() -> None:
    from tests.benchmarks import faults

    here = "".join(f"{faults.run_case(faults.draw(11, number)).trace}\n" for number in range(6))
    environment = {**os.environ, "PYTHONHASHSEED": "1"}  # hashes here are of a random seed
    elsewhere = subprocess.run(
        [sys.executable, "-c", _TRACE],
        cwd=Path(__file__).parents[2],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert len(here) > 10_000
    assert here == elsewhere


def test_another_seed_gives_another_run() -> None:
    runs = [simulate(job(2, 3), SimulationOptions(seed=seed)).timeline.makespan_ms for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


def test_random_jobs_under_random_faults_end_as_they_may() -> None:
    from tests.benchmarks import faults

    figures = faults.main(["--runs", "25", "--seed", "17"])
    assert (figures["violations"], figures["unexpected_ends"], figures["trace_mismatches"]) == (0, 0, 0)
    assert figures["faults_that_hit"] > 10
