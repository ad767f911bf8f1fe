"""Checks a scheduler's state against its invariants. For tests: it looks at everything."""

from __future__ import annotations

from collections import Counter

import numpy as np

from flinkmagic.errors.base import InvariantViolatedError
from flinkmagic.graph.execution_config import InputDependencyConstraint
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.scheduling.default_scheduler import DefaultScheduler
from flinkmagic.scheduling.execution_operations import ON_EXECUTOR

_S = ExecutionState
_DEPLOYED = tuple(state.value for state in (*ON_EXECUTOR, _S.FINISHED))
_NOT_DEPLOYED = (_S.CREATED.value, _S.SCHEDULED.value)
_HOLDING = frozenset({_S.SCHEDULED, _S.CANCELING, *ON_EXECUTOR})


def validate_scheduler(scheduler: DefaultScheduler) -> None:
    """Raise `InvariantViolatedError` for the first rule that does not hold.

    1. Counts agree with what they count.
    2. An execution on an executor has a slot; one that is over or not scheduled has no share of any.
    3. A slot is shared by subtasks of its group only, at most one of each job vertex.
    4. Co-located subtasks that have slots have the same one.
    5. A region is deployed as a whole.
    6. What consumes a blocking result runs only while all of it is finished (if all inputs are needed).
    7. What is tracked has a holder and is being made or finished.
    8. The strategy's counters agree with the states.
    """
    if scheduler.job_status.is_terminal:
        _check_counts(scheduler)
        return
    for check in (_check_counts, _check_slots, _check_co_location, _check_regions, _check_inputs, _check_partitions):
        check(scheduler)
    scheduler.strategy.validate(scheduler.execution_graph.state)


def _require(condition: bool, rule: str) -> None:
    if not condition:
        raise InvariantViolatedError(rule)


def _check_counts(scheduler: DefaultScheduler) -> None:
    states = scheduler.execution_graph.state
    finished = int(np.count_nonzero(states == _S.FINISHED.value))
    terminal = int(np.count_nonzero(np.isin(states, [s.value for s in _S if s.is_terminal])))
    _require(scheduler.executions.n_finished == finished, f"{finished} executions are FINISHED")
    _require(scheduler.executions.n_terminal == terminal, f"{terminal} executions are terminal")


def _check_slots(scheduler: DefaultScheduler) -> None:
    executions, topology = scheduler.executions, scheduler.topology
    for vertex in range(topology.n_vertices):
        state = executions.state(vertex)
        if state in ON_EXECUTOR:
            _require(vertex in executions.slots, f"{executions.task_name(vertex)} is {state.name} and has a slot")
        elif state not in _HOLDING:
            _require(vertex not in executions.slots, f"{executions.task_name(vertex)} is {state.name}, without a slot")
    holders: Counter[int] = Counter()
    for shared in scheduler.allocator.shared_slots():
        members = set(shared.request.vertices)
        job_vertices = Counter(topology.job_vertex_of[vertex] for vertex in shared.vertices)
        _require(members.issuperset(shared.vertices), f"{shared.request.slot_request_id} is its group's alone")
        _require(max(job_vertices.values(), default=0) <= 1, "a slot holds at most one subtask of a job vertex")
        _require(bool(shared.vertices), f"{shared.request.slot_request_id} is held by some execution")
        holders.update(shared.vertices)
        for vertex in shared.vertices:
            slot = executions.slots.get(vertex)
            _require(slot is None or slot is shared.physical, "a vertex is in the slot of its group")
    for vertex in holders:
        state = executions.state(vertex)
        _require(state in _HOLDING, f"{executions.task_name(vertex)} is {state.name} and holds no share of a slot")
    _require(max(holders.values(), default=0) <= 1, "a vertex holds a share of one slot at most")


def _check_co_location(scheduler: DefaultScheduler) -> None:
    graph, slots = scheduler.execution_graph, scheduler.executions.slots
    for group in graph.job_graph.co_location_groups:
        members = [graph.job_vertex_by_id(vertex.id) for vertex in group.vertices]
        for subtask in range(max(member.parallelism for member in members)):
            vertices = [member.first + subtask for member in members if subtask < member.parallelism]
            allocations = {slots[vertex].allocation_id for vertex in vertices if vertex in slots}
            _require(len(allocations) <= 1, f"subtasks {subtask} of co-location group {group.name!r} share a slot")


def _check_regions(scheduler: DefaultScheduler) -> None:
    topology = scheduler.topology
    states = scheduler.execution_graph.state
    regions = np.asarray(topology.region_of)
    deployed = set(regions[np.isin(states, _DEPLOYED)].tolist())
    waiting = set(regions[np.isin(states, _NOT_DEPLOYED)].tolist())
    _require(deployed.isdisjoint(waiting), f"regions {sorted(deployed & waiting)} are deployed whole")


def _check_inputs(scheduler: DefaultScheduler) -> None:
    if scheduler.input_dependency is not InputDependencyConstraint.ALL:
        return
    topology, states = scheduler.topology, scheduler.execution_graph.state
    running = np.isin(states, [state.value for state in ON_EXECUTOR])
    for group in range(topology.n_groups):
        if not topology.type_of_group(group).is_blocking:
            continue
        start, end = topology.consumer_start[group], topology.consumer_end[group]
        readers = np.flatnonzero(running[start:end]) + start
        if readers.size == 0:
            continue
        region = topology.region_of[int(readers[0])]
        for partition in range(topology.partition_start[group], topology.partition_end[group]):
            producer = topology.producer_of[partition]
            if topology.region_of[producer] != region:
                _require(
                    states[producer] == _S.FINISHED.value,
                    f"{scheduler.executions.task_name(int(readers[0]))} reads what "
                    f"{scheduler.executions.task_name(producer)} has finished",
                )


def _check_partitions(scheduler: DefaultScheduler) -> None:
    for partition in scheduler.tracker.tracked_partitions():
        producer = scheduler.topology.producer_of[partition]
        state = scheduler.executions.state(producer)
        _require(
            state in (*ON_EXECUTOR, _S.CANCELING, _S.FINISHED),
            f"a tracked partition of {scheduler.executions.task_name(producer)} is there, which is {state.name}",
        )
