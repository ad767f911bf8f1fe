"""Decides which vertices are submitted to Spark, and when.

1. A request is for the execution vertices that run within one Spark task (`StageMembers`), and is fulfilled when Spark
   launches that task. "Vertex" below is the one that represents the stage.
2. A vertex goes to Spark as one stage, and only when all of its unfinished subtasks are requested: Spark would run the
   others too.
3. It goes when it is promised its first slot. Without a limit the session's slots are promised twice (at least
   `LEAST_PROMISES` of them), so that Spark always has tasks to launch next; with a limit a vertex goes only if all of
   its tasks fit beside those already there, or if it is alone (a wider one runs in waves, and Spark may exceed the
   limit).
4. Of several vertices that could go, the one with the longest remaining path goes first, then the first in program
   order. If the session is FIFO, Spark keeps this order among those that find the slots promised (`Submit.after`): what
   fits simultaneously runs simultaneously anyway.
5. A write that must run after an earlier one waits until that one is finished.
6. The vertices of a pipelined region go to Spark together, as one job, and only when all slots that they need are free:
   Spark runs them simultaneously, and no two of their tasks in one slot. What is ready waits meanwhile, unless the
   session has too few slots for the region anyway: then the region waits until there are more.
7. A request for an execution that replaces a lost one goes to the run in which Spark runs it again.
"""

from __future__ import annotations

from collections.abc import Iterator

from flinkmagic.deployment.board.messages import DecisionDue, Declare, Instruction, Later, NothingRuns, Submit
from flinkmagic.deployment.board.state import BoardState, VertexRun
from flinkmagic.deployment.board.subtask_states import SubtaskState

LEAST_PROMISES = 16
"""Tasks of a small stage take some 10 ms, and it takes some 50 ms until the stage after it is with Spark."""


def decide_soon(state: BoardState) -> Iterator[Instruction]:
    """Have a decision taken after the running call, so that all that one event sets free is compared."""
    if not state.is_decision_due:
        state.is_decision_due = True
        yield Later(DecisionDue())


def decide(state: BoardState, due: DecisionDue) -> Iterator[Instruction]:
    """Submit what can be submitted now."""
    state.is_decision_due = False
    if state.required != state.declared:
        state.declared = state.required
        state.event_log.add("slot pool", f"declare {state.required} required slots")
        yield Declare(state.required)
    state.waiting_for = ""
    available = due.session_slots if state.limit is None else min(due.session_slots, state.limit)
    ready = [state.members.region_of(index) for index in state.waiting if _is_region_ready(state, index, due)]
    for region in sorted(ready, key=lambda region: (-max(state.path[one] for one in region), region[0])):
        index = region[0]
        name, tasks = state.graph.job_vertices[index].name, sum(len(state.waiting[one]) for one in region)
        if index not in state.told_required:
            state.told_required.add(index)
            state.event_log.add("slots", f"{name} requires {tasks} slots")
        if len(region) == 1:
            if not _is_promised(state, tasks, due.session_slots):
                break
        elif state.busy + tasks > available:
            _wait_for_slots(state, name, len(region), tasks, available)
            if tasks > available:
                continue
            break
        state.told_required.discard(index)
        state.event_log.add("slots", f"{name} goes to Spark, {tasks} tasks")
        yield _submit(state, region, due.session_slots)
    if not state.active:
        yield NothingRuns()


def _is_region_ready(state: BoardState, index: int, due: DecisionDue) -> bool:
    region = state.members.region_of(index)
    return index == region[0] and all(_is_ready(state, one, due) for one in region)


def _is_ready(state: BoardState, index: int, due: DecisionDue) -> bool:
    waiting, width = state.waiting.get(index), state.graph.job_vertices[index].parallelism
    if not waiting or index in state.active or len(waiting) + due.finished[index] < width:
        return False
    earlier = [state.graph.job_vertices[one] for one in state.after.get(index, ())]
    return all(due.finished[one.index] == one.parallelism for one in earlier)


def _is_promised(state: BoardState, tasks: int, session_slots: int) -> bool:
    if not state.active:
        return True
    if state.limit is not None:
        return state.busy + tasks <= state.limit
    return state.busy < max(2 * session_slots, LEAST_PROMISES)


def _wait_for_slots(state: BoardState, name: str, vertices: int, tasks: int, available: int) -> None:
    what = f"the region of {name} ({vertices} vertices) waits for {tasks} slots, which it needs simultaneously"
    state.waiting_for = f"{what}; {max(0, available - state.busy)} of {available} are free"
    if state.waiting_for != state.told_waiting:
        state.told_waiting = state.waiting_for
        state.event_log.add("slots", state.waiting_for)


def _submit(state: BoardState, region: tuple[int, ...], session_slots: int) -> Submit:
    """Make the runs of a region, whose first vertex's handle runs it.

    Each run is prepared on its own thread, and they take different times. If slots are free, none waits for those
    ahead: that would keep them empty.
    """
    first = region[0]
    is_full = len(region) == 1 and state.busy >= session_slots
    after = [run.tag for run in state.active.values() if not run.has_launched] if is_full else []
    tag = f"{state.prefix}v{first}r{next(state.run_numbers)}"
    runs: list[VertexRun] = []
    for index in region:
        stage = state.members.stage_of(index)
        run = VertexRun(stage, tag=tag, region=runs, holds_all=state.restarts and not stage.handle.keeps_each_task)
        for subtask, request in state.waiting.pop(index).items():
            one = run.new(subtask, SubtaskState.REQUESTED)
            one.request = request
            run.put(subtask, one)
        runs.append(run)
        state.active[index] = run
    state.runs[tag] = runs[0]
    return Submit(first, tag, state.earlier.get(first), tuple(dict.fromkeys(after)))
