"""Random jobs under random faults: do they end as they may, and is everything in order after each event?

Each run draws a program, a cluster, a restart strategy and faults. What ends are allowed follows from what
was injected, not from what the scheduler says about it.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from flinkmagic.errors.scheduling import NoResourceAvailableError
from flinkmagic.graph.exchange_mode import RuntimeExecutionMode
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.job_graph import JobGraph
from flinkmagic.graph.slot_sharing import local_input_preferred
from flinkmagic.scheduling.failover.restart_strategy import parse_restart_strategy
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.scheduling.scheduling_topology import SchedulingTopology
from flinkmagic.simulation.faults import CancelJob, FailJob, FailTask, Fault, SuspendJob, random_faults
from flinkmagic.simulation.options import SimulationOptions
from flinkmagic.simulation.simulation import Simulation, SimulationResult
from tests.benchmarks._random_topologies import random_job
from tests.simulation.invariants import ClusterInvariants
from tests.simulation.trace import TraceRecorder

_STRATEGIES = ("none", "fixed-delay:2:500ms", "fixed-delay:20:0s", "exponential-delay", "exponential-delay")
_BACK_AFTER_MS = 3_000.0
REPEAT_EVERY = 5
"""So many runs are one that is run a second time, to compare the traces byte for byte."""
MAX_EVENTS = 50_000
"""A run that goes on for longer does not end."""


@dataclass(frozen=True)
class Case:
    """One run's drawing. `is_short` is that there are too few slots for the job, whatever happens."""

    job_graph: JobGraph
    options: SimulationOptions
    strategy: str
    is_short: bool


def draw(seed: int, number: int) -> Case:
    """The drawing of a run."""
    source = random.Random(f"case/{seed}/{number}")
    job_graph = random_job(source, f"{source.getrandbits(128):032x}")
    graph = ExecutionGraph(job_graph)
    groups = local_input_preferred(graph).group_of.tolist()
    widest = widest_region(graph, groups)
    is_short = widest > 1 and source.random() < 0.05
    if is_short:
        managers, slots = 1, source.randint(1, widest - 1)
    else:
        total = (len(set(groups)) if holds_all_slots(graph) else widest) + source.randint(0, 4)
        managers = source.randint(1, min(total, 3))
        slots = -(-total // managers)
    # without slots an unbounded number of restarts would go on for ever
    strategy = source.choice(_STRATEGIES[:2] if is_short else _STRATEGIES)
    count = source.choices((0, 1, 2, 5, 10), weights=(1, 4, 4, 2, 1))[0]
    horizon_ms = 1_500.0 * len(graph.job_vertices)
    faults: list[Fault] = random_faults(
        source,
        count,
        vertices=[(vertex.name, vertex.parallelism) for vertex in graph.job_vertices],
        task_managers=[(f"tm-{n}", slots) for n in range(1, managers + 1)],
        horizon_ms=horizon_ms,
        back_after_ms=_BACK_AFTER_MS,
    )
    if source.random() < 0.1:
        end = source.choice((CancelJob, SuspendJob))
        faults.append(end(round(source.uniform(0.0, horizon_ms), 3)))
    options = SimulationOptions(
        task_managers=managers,
        slots=slots,
        seed=source.randrange(1 << 30),
        faults=tuple(faults),
        restart_strategy=parse_restart_strategy(strategy),
        failover_strategy=source.choices(("region", "full"), weights=(4, 1))[0],
        evenly_spread=source.random() < 0.5,
        slot_timeout_ms=30_000.0,
    )
    return Case(job_graph, options, strategy, is_short)


def widest_region(graph: ExecutionGraph, groups: Sequence[int]) -> int:
    """How many slots the widest region needs: without so many simultaneously the job cannot end."""
    topology = SchedulingTopology(graph)
    regions = range(topology.n_regions)
    return max(len({groups[vertex] for vertex in topology.vertices_of(region)}) for region in regions)


def holds_all_slots(graph: ExecutionGraph) -> bool:
    """Whether regions may hold slots side by side, so that only slots for all of them are enough for sure.

    So it is in unbounded mode, and with HYBRID results, whose consumers wait in their slots. A task also waits in its
    slot for one of its region that is in another slot sharing group: two such regions may hold what each other needs,
    and Flink, too, then waits for ever, as either of them would fit.
    """
    is_streaming = graph.job_graph.job_type is RuntimeExecutionMode.STREAMING
    waits_in_slot = any(
        result.result_type.must_be_pipelined_consumed
        and result.producer.job_vertex.slot_sharing_group is not edge.consumer.job_vertex.slot_sharing_group
        for result in graph.results
        for edge in result.consumers
    )
    return is_streaming or waits_in_slot or any(result.result_type.is_hybrid for result in graph.results)


def allowed_ends(case: Case, result: SimulationResult, can_finish: bool) -> set[JobStatus]:
    """The ends that the faults allow; RUNNING means a job that is stuck, as it is without faults too."""
    hits = [fault for fault, _ in result.injected]
    if any(isinstance(fault, CancelJob) for fault in hits):
        return {JobStatus.CANCELED}
    if any(isinstance(fault, SuspendJob) for fault in hits):
        return {JobStatus.SUSPENDED}
    end = JobStatus.FINISHED if can_finish else JobStatus.RUNNING
    if case.is_short:
        return {JobStatus.FAILED} if can_finish else {JobStatus.FAILED, JobStatus.RUNNING}
    if not hits or case.strategy.startswith("exponential"):
        return {end}
    attempts = 0 if case.strategy == "none" else int(case.strategy.split(":")[1])
    is_counted = all(isinstance(fault, (FailTask, FailJob)) for fault in hits)
    if is_counted and len(hits) <= attempts:
        return {end}
    if is_counted and len(hits) == 1:
        return {JobStatus.FAILED}
    return {end, JobStatus.FAILED}


@dataclass
class Outcome:
    """What a run showed."""

    result: SimulationResult | None
    trace: str
    events: int
    violation: str | None


def run_case(case: Case) -> Outcome:
    """Run with all invariants checked after every event."""
    recorder = TraceRecorder()
    simulation = Simulation(case.job_graph, case.options, listeners=(recorder,))
    invariants = ClusterInvariants(simulation)
    events = 0

    def after_event() -> None:
        nonlocal events
        events += 1
        if events > MAX_EVENTS:
            raise RuntimeError(f"the job is {simulation.scheduler.job_status} after {MAX_EVENTS} events")
        invariants.check()

    result, violation = None, None
    try:
        result = simulation.run(after_event)
        if not result.is_stuck:
            invariants.check_end(after_event)
    except Exception as error:  # noqa: BLE001 - whatever is raised is what is looked for
        violation = f"{type(error).__name__}: {error}"
    return Outcome(result, recorder.text(simulation.cluster.event_log.events()), events, violation)


def can_finish_without_faults(case: Case) -> bool:
    """Whether the job comes to its end on a big cluster where nothing goes wrong."""
    slots = sum(max(vertex.parallelism, 1) for vertex in case.job_graph.vertices.values())
    options = replace(case.options, task_managers=1, slots=slots, faults=())
    return Simulation(case.job_graph, options).run().status is JobStatus.FINISHED


def main(arguments: Sequence[str]) -> dict[str, float | int | str]:
    """Run the cases of a seed."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks faults")
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, help="one run of the seed, with its story")
    parsed = parser.parse_args(list(arguments))
    numbers = range(parsed.runs) if parsed.only is None else [parsed.only]
    violations = unexpected = mismatches = events = hits = 0
    ends: dict[str, int] = {}
    digest = hashlib.sha256()
    for number in numbers:
        case = draw(parsed.seed, number)
        outcome = run_case(case)
        events += outcome.events
        digest.update(outcome.trace.encode())
        if number % REPEAT_EVERY == 0 and outcome.trace != run_case(draw(parsed.seed, number)).trace:
            mismatches += 1
            print(f"run {number}: another trace the second time", file=sys.stderr)
        if outcome.violation is not None or outcome.result is None:
            violations += 1
            print(f"run {number}: {outcome.violation}", file=sys.stderr)
            continue
        hits += len(outcome.result.injected)
        status = outcome.result.status
        ends[status.name] = ends.get(status.name, 0) + 1
        allowed = allowed_ends(case, outcome.result, can_finish_without_faults(case))
        if status not in allowed or (case.is_short and status is JobStatus.FAILED and not _is_short_of_slots(outcome)):
            unexpected += 1
            names = sorted(end.name for end in allowed)
            print(f"run {number}: {status}, allowed {names}; {outcome.result.info.failure_cause}", file=sys.stderr)
        if parsed.only is not None:
            print(outcome.trace)
    return {
        "runs": len(numbers),
        "violations": violations,
        "unexpected_ends": unexpected,
        "trace_mismatches": mismatches,
        "events": events,
        "faults_that_hit": hits,
        **{f"ended_{name.lower()}": count for name, count in sorted(ends.items())},
        "trace_sha256": digest.hexdigest()[:16],
    }


def _is_short_of_slots(outcome: Outcome) -> bool:
    assert outcome.result is not None
    if outcome.result.injected:
        return True
    error = outcome.result.info.failure_cause
    while error is not None and not isinstance(error, NoResourceAvailableError):
        error = error.__cause__
    return error is not None
