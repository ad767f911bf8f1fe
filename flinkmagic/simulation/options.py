"""The options of a simulation, and how to read them from the words of `flinkmagic simulate` and `%flinksim`."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flinkmagic.errors.usage import UnknownNameError
from flinkmagic.graph.execution_config import InputDependencyConstraint
from flinkmagic.graph.job_graph import JobGraph
from flinkmagic.scheduling.failover.restart_strategy import RestartStrategyFactory, parse_restart_strategy
from flinkmagic.simulation.arguments import RESTART_STRATEGY
from flinkmagic.simulation.faults import (
    Fault,
    parse_duration,
    parse_task_failure,
    parse_task_manager_loss,
    random_faults,
)

DEFAULT_TASK_MS = 1_000.0
_THREE_TIMES = parse_restart_strategy(RESTART_STRATEGY)


@dataclass(frozen=True)
class SimulationOptions:
    """The cluster, the job's behaviour, and the faults."""

    task_managers: int = 1
    slots: int = 4
    seed: int = 0
    task_ms: float = DEFAULT_TASK_MS
    """How long a task works, approximately."""
    task_ms_by_name: Mapping[str, float] = field(default_factory=dict)
    """The same for single vertices or operators."""
    measured_ms: Mapping[int, float] | None = None
    """The same for single execution vertices, exactly."""
    lead_ms: Mapping[str, float] = field(default_factory=dict)
    """By the id of a job vertex how long the driver needs before the first task, once the inputs are there."""
    tail_ms: float = 0.0
    """How long the driver needs after the last task."""
    spread: float = 0.2
    """The largest random change of a time, as a fraction of it."""
    endless: frozenset[int] = frozenset()
    """The ids of operators without an end."""
    run_for_ms: float = 60_000.0
    """After this time a job with such operators is cancelled."""
    initialization_ms: float = 20.0
    latency_ms: float = 1.0
    """How long messages take, approximately."""
    evenly_spread: bool = False
    restart_strategy: RestartStrategyFactory = _THREE_TIMES
    failover_strategy: str = "region"
    input_dependency: InputDependencyConstraint = InputDependencyConstraint.ALL
    faults: Sequence[Fault] = ()
    slot_timeout_ms: float = 10_000.0
    """How long a job waits for slots, and the resource manager for executors before it rejects requirements."""
    heartbeat_interval_ms: float = 1_000.0
    heartbeat_timeout_ms: float = 5_000.0


def simulation_options(
    job_graph: JobGraph,
    *,
    task_managers: int = 1,
    slots: int = 4,
    seed: int = 0,
    task_seconds: Sequence[str] = (),
    fail: Sequence[str] = (),
    lose_task_manager: Sequence[str] = (),
    faults: int = 0,
    restart: str = RESTART_STRATEGY,
    **others: Any,
) -> SimulationOptions:
    """Return the options of a simulation.

    Parameters
    ----------
    task_seconds : sequence of str
        ``"2"`` for all tasks, ``"Map=2"`` for those of a vertex or operator.
    fail : sequence of str
        Failures, such as ``"Map:2@1.5s"``.
    lose_task_manager : sequence of str
        Losses, such as ``"tm-1@2s"``, or ``"tm-1@2s+5s"`` for one that is replaced.
    faults : int
        How many random faults occur besides.
    restart : str
        When failed tasks are restarted: ``none``, ``fixed-delay:3:1s``, ...
    **others
        Further fields of `SimulationOptions`.

    Raises
    ------
    InvalidValueError
        If a text cannot be read.
    UnknownNameError
        If it names something that the job does not have.
    """
    task_ms, by_name = _task_times(task_seconds, job_graph)
    told: list[Fault] = [parse_task_failure(text) for text in fail]
    told += [parse_task_manager_loss(text) for text in lose_task_manager]
    told += _by_chance(faults, seed, job_graph, [(f"tm-{n}", slots) for n in range(1, task_managers + 1)], task_ms)
    return SimulationOptions(
        task_managers=task_managers,
        slots=slots,
        seed=seed,
        task_ms=task_ms,
        task_ms_by_name=by_name,
        restart_strategy=parse_restart_strategy(restart),
        faults=told,
        **others,
    )


def _by_chance(
    number: int, seed: int, job_graph: JobGraph, task_managers: list[tuple[str, int]], task_ms: float
) -> list[Fault]:
    vertices = job_graph.vertices_in_topological_order()
    return random_faults(
        random.Random(f"faults/{seed}"),
        number,
        vertices=[(vertex.name, max(vertex.parallelism, 1)) for vertex in vertices],
        task_managers=task_managers,
        horizon_ms=task_ms * len(vertices),
        back_after_ms=5 * task_ms,
    )


def _task_times(given: Sequence[str], job_graph: JobGraph) -> tuple[float, dict[str, float]]:
    names = {name for vertex in job_graph.vertices.values() for name in vertex.names}
    default_ms, by_name = DEFAULT_TASK_MS, {}
    for text in given:
        name, is_named, seconds = text.rpartition("=")
        if not is_named:
            default_ms = parse_duration(seconds)
        elif name in names:
            by_name[name] = parse_duration(seconds)
        else:
            raise UnknownNameError("vertex", name, sorted(names))
    return default_ms, by_name
