"""The scheduler's strategies on wide jobs: N sources, N sinks, connected all-to-all or pointwise.

What Flink's own scheduler benchmarks measure: making the strategy, starting, finishing all sources one by
one, and finding what to restart after the failure of one source. CPU time, the best of several repetitions.
"""

from __future__ import annotations

import argparse
import gc
import time
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from flinkmagic.graph.environment import StreamExecutionEnvironment
from flinkmagic.graph.exchange_mode import RuntimeExecutionMode
from flinkmagic.graph.execution import ExecutionAttemptID
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.graph.job_graph import JobGraph
from flinkmagic.graph.job_graph_generator import create_job_graph
from flinkmagic.graph.partitioner import PartitionerKind
from flinkmagic.graph.transformations import PartitionTransformation, SinkTransformation, SourceTransformation
from flinkmagic.scheduling.clock import ManualClock
from flinkmagic.scheduling.default_scheduler import DefaultScheduler
from flinkmagic.scheduling.failover.failover_strategy import RestartPipelinedRegionFailoverStrategy
from flinkmagic.scheduling.main_thread import ManualMainThreadExecutor
from flinkmagic.scheduling.pipelined_region_scheduling_strategy import PipelinedRegionSchedulingStrategy
from flinkmagic.scheduling.scheduling_topology import SchedulingTopology
from flinkmagic.scheduling.slots.physical_slot_provider import PhysicalSlot, PhysicalSlotRequest

_S = ExecutionState
_TO_RUNNING = (_S.SCHEDULED, _S.DEPLOYING, _S.INITIALIZING, _S.RUNNING)


class _Operations:
    """Takes decisions and counts them."""

    def __init__(self) -> None:
        self.calls = self.vertices = 0

    def allocate_slots_and_deploy(self, vertices: Sequence[int]) -> None:
        self.calls += 1
        self.vertices += len(vertices)


class _AllAvailable:
    def unavailable_partitions(self, start: int, end: int) -> Sequence[int]:
        return ()


class _Cluster:
    """Gives slots immediately and takes every task."""

    resource_id = "tm"

    def __init__(self) -> None:
        self.submitted = 0

    def allocate_physical_slots(self, requests: Sequence[PhysicalSlotRequest]) -> None:
        for request in requests:
            request.slot_future.complete(PhysicalSlot(request.slot_request_id, self.resource_id, self))

    def cancel_slot_request(self, slot_request_id: str) -> None: ...

    def free_slot(self, allocation_id: str) -> None: ...

    def submit_task(self, descriptor: Any) -> None:
        self.submitted += 1

    def cancel_task(self, attempt_id: ExecutionAttemptID) -> None: ...

    def release_partitions(self, job_id: str, partition_ids: Sequence[Any]) -> None: ...

    def heartbeat_from_job_manager(self, job_id: str) -> None: ...


def make_job(parallelism: int, all_to_all: bool, blocking: bool) -> JobGraph:
    """Sources and sinks of that parallelism."""
    environment = StreamExecutionEnvironment(
        "wide",
        RuntimeExecutionMode.BATCH if blocking else RuntimeExecutionMode.STREAMING,
        parallelism,
        max_parallelism=32_768,
        chaining=False,
    )
    source = SourceTransformation("source", parallelism=parallelism)
    kind = PartitionerKind.HASH if all_to_all else PartitionerKind.RESCALE
    environment.add_operator(SinkTransformation(PartitionTransformation(source, kind), "sink", parallelism=parallelism))
    return create_job_graph(environment.get_stream_graph())


def running_graph(job_graph: JobGraph, finished: int = 0) -> ExecutionGraph:
    """An execution graph with every task RUNNING, but the first so many FINISHED."""
    graph = ExecutionGraph(job_graph)
    for state in _TO_RUNNING:
        graph.transition(np.arange(graph.n_vertices), state, 0.0)
    if finished:
        graph.transition(np.arange(finished), _S.FINISHED, 0.0)
    return graph


def cpu_ms(action: Callable[[], object]) -> float:
    """CPU time of a call."""
    gc.collect()
    gc.disable()
    started = time.process_time()
    action()
    spent = time.process_time() - started
    gc.enable()
    return spent * 1000.0


def measure(parallelism: int, all_to_all: bool, blocking: bool, repetitions: int) -> dict[str, float]:
    """All figures of one kind of job."""
    job_graph = make_job(parallelism, all_to_all, blocking)
    found: dict[str, list[float]] = {}
    for _ in range(repetitions):
        for name, figure in _once(job_graph, parallelism, all_to_all, blocking).items():
            found.setdefault(name, []).append(figure)
    return {name: min(figures) for name, figures in found.items()}


def _once(job_graph: JobGraph, parallelism: int, all_to_all: bool, blocking: bool) -> dict[str, float]:
    figures: dict[str, float] = {}
    graph = ExecutionGraph(job_graph)
    made: list[Any] = []
    figures["topology_ms"] = cpu_ms(lambda: made.append(SchedulingTopology(graph)))
    topology: SchedulingTopology = made[0]
    operations = _Operations()
    figures["init_ms"] = cpu_ms(lambda: made.append(PipelinedRegionSchedulingStrategy(operations, topology)))
    strategy: PipelinedRegionSchedulingStrategy = made[1]
    figures["start_ms"] = cpu_ms(strategy.start_scheduling)
    regions = topology.n_regions - (parallelism if blocking else 0)
    assert operations.calls == regions, (operations.calls, regions)
    if blocking:

        def finish_all() -> None:
            for vertex in range(parallelism):
                strategy.on_execution_finished(vertex)

        figures["finish_ms"] = cpu_ms(finish_all)
        assert operations.calls == topology.n_regions
    assert operations.vertices == topology.n_vertices
    running = running_graph(job_graph, parallelism if blocking else 0)
    failover = RestartPipelinedRegionFailoverStrategy(SchedulingTopology(running), running.state, _AllAvailable())
    error = RuntimeError("failed")
    repeat = 1 if all_to_all else 100  # a pointwise one is over before a clock ticks
    restart: list[list[int]] = []

    def fail() -> None:
        for _ in range(repeat):
            restart.append(failover.tasks_needing_restart(0, error))

    figures["failover_ms"] = cpu_ms(fail) / repeat
    expected = 2 if not all_to_all else parallelism + 1 if blocking else 2 * parallelism
    assert len(restart[0]) == expected, (len(restart[0]), expected)
    return figures


def memory_mb(parallelism: int, all_to_all: bool, blocking: bool) -> float:
    """What topology and strategy take, without the execution graph."""
    graph = ExecutionGraph(make_job(parallelism, all_to_all, blocking))
    gc.collect()
    tracemalloc.start()
    kept = PipelinedRegionSchedulingStrategy(_Operations(), SchedulingTopology(graph))
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del kept
    return taken / 1e6


def whole_start_ms(parallelism: int, all_to_all: bool, blocking: bool) -> float:
    """The whole scheduler's start, down to the last task handed to an executor; slots are there immediately."""
    clock, cluster = ManualClock(), _Cluster()
    scheduler = DefaultScheduler(
        ExecutionGraph(make_job(parallelism, all_to_all, blocking)),
        main_thread=ManualMainThreadExecutor(clock),
        clock=clock,
        slot_provider=cluster,
    )
    spent = cpu_ms(scheduler.start_scheduling)
    assert cluster.submitted == parallelism * (1 if blocking else 2)
    return spent


def main(arguments: Sequence[str]) -> dict[str, float | int | str]:
    """Measure at each size; figures of the largest have no suffix."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks scheduler")
    parser.add_argument("--sizes", type=int, nargs="+", default=[4_000, 16_000])
    parser.add_argument("--repetitions", type=int, default=5)
    parsed = parser.parse_args(list(arguments))
    figures: dict[str, float | int | str] = {"parallelism": max(parsed.sizes)}
    for size in sorted(parsed.sizes):
        suffix = "" if size == max(parsed.sizes) else f"_{size}"
        for all_to_all in (True, False):
            for blocking in (False, True):
                name = f"{'a2a' if all_to_all else 'pointwise'}_{'blocking' if blocking else 'pipelined'}"
                for figure, value in measure(size, all_to_all, blocking, parsed.repetitions).items():
                    figures[f"{name}_{figure}{suffix}"] = round(value, 3)
                figures[f"{name}_mb{suffix}"] = round(memory_mb(size, all_to_all, blocking), 2)
                figures[f"{name}_whole_start_ms{suffix}"] = round(whole_start_ms(size, all_to_all, blocking), 1)
    return figures
