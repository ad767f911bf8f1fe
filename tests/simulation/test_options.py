"""The words of `flinkmagic simulate` and `%flinksim`."""

from __future__ import annotations

import random

import pytest

from flinkmagic.errors.usage import InvalidValueError, UnknownNameError
from flinkmagic.graph.job_graph import JobGraph
from flinkmagic.graph.job_graph_generator import create_job_graph
from flinkmagic.graph.topology import make_environment
from flinkmagic.scheduling.clock import ManualClock
from flinkmagic.simulation.faults import FailTask, LoseTaskManager
from flinkmagic.simulation.options import simulation_options


@pytest.fixture
def job_graph() -> JobGraph:
    document = {
        "name": "one",
        "transformations": [
            {"id": 1, "kind": "source", "name": "read", "inputs": [], "parallelism": 2},
            {"id": 2, "kind": "sink", "name": "write", "inputs": [1], "parallelism": 2},
        ],
    }
    return create_job_graph(make_environment(document).get_stream_graph())


def test_words_become_options(job_graph: JobGraph) -> None:
    options = simulation_options(
        job_graph,
        task_managers=2,
        slots=3,
        task_seconds=["2", "read=500ms"],
        fail=["write:1@1.5s"],
        lose_task_manager=["tm-1@2s+5s"],
        restart="fixed-delay:7:10ms",
        evenly_spread=True,
    )
    assert (options.task_managers, options.slots, options.evenly_spread) == (2, 3, True)
    assert (options.task_ms, options.task_ms_by_name) == (2_000.0, {"read": 500.0})
    assert options.faults == [FailTask("write", 1, 1_500.0), LoseTaskManager("tm-1", 2_000.0, 5_000.0)]
    assert options.restart_strategy(ManualClock(), random.Random(0)).backoff_ms() == 10.0


def test_faults_by_chance_follow_the_seed(job_graph: JobGraph) -> None:
    drawn = [simulation_options(job_graph, faults=5, seed=seed).faults for seed in (1, 1, 2)]
    assert len(drawn[0]) == 5
    assert drawn[0] == drawn[1]
    assert drawn[0] != drawn[2]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ({"task_seconds": ["nobody=2"]}, UnknownNameError),
        ({"task_seconds": ["soon"]}, InvalidValueError),
        ({"fail": ["write@1s"]}, InvalidValueError),
        ({"restart": "maybe"}, InvalidValueError),
    ],
)
def test_what_cannot_be_read_is_refused(job_graph: JobGraph, words: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error):
        simulation_options(job_graph, **words)  # type: ignore[arg-type]
