"""What is submitted when: slots, priority, and the order of overlapping writes."""

from __future__ import annotations

import random

import pytest
from fake_spark import FakeSpark, ManualClock, graph_of

from flinkmagic.deployment.board.messages import DecisionDue, Later, RequestCanceled, SlotRequested, Submit
from flinkmagic.deployment.board.rules import StageBoard
from flinkmagic.deployment.board.state import BoardState
from flinkmagic.scheduling.failover.restart_strategy import FixedDelayRestartBackoffTimeStrategy
from flinkmagic.scheduling.job_event_log import JobEventLog
from flinkmagic.scheduling.job_status import JobStatus

TWO_WRITES = {"A": (1, []), "First": (1, ["A"]), "B": (1, []), "Second": (1, ["B"])}


def test_all_that_can_start_starts_longest_remaining_path_first():
    spark = FakeSpark({"A": (1, []), "W": (1, ["A"]), "B": (1, []), "C": (1, ["B"]), "D": (1, ["C"])})
    assert spark.by_name["A"].index < spark.by_name["B"].index
    assert spark.running() == ["B", "A"]


def test_of_equal_paths_the_first_in_program_order_goes_first():
    spark = FakeSpark({"A": (1, []), "WA": (1, ["A"]), "B": (1, []), "WB": (1, ["B"])})
    assert spark.running() == ["A", "B"]


def test_who_finds_the_slots_promised_waits_for_those_ahead():
    """Spark ranks jobs by the order in which it gets them, and each is prepared on a thread of its own."""
    four = {name: (1, []) for name in "ABCD"} | {f"W{name}": (1, [name]) for name in "ABCD"}
    spark = FakeSpark(four, session_slots=2)
    assert spark.running() == ["A", "B", "C", "D"]
    assert [spark.stage(name).waits for name in "ABCD"] == [False, False, True, True]


@pytest.mark.parametrize("has_tasks", [True, False])
def test_no_vertex_waits_for_one_that_has_tasks_already(has_tasks):
    vertices = {"A": (2, []), "WA": (1, ["A"]), "B": (1, []), "C": (1, ["B"]), "WC": (1, ["C"])}
    spark = FakeSpark(vertices, session_slots=2)
    assert spark.running() == ["B", "A"]
    if has_tasks:
        spark.job_started("A")
        spark.launch("A", 0)
    spark.run("B")
    assert spark.running() == ["A", "C"]
    assert spark.stage("C").waits is not has_tasks


def submitted(board, finished=0):
    """Which subtasks go to Spark when a decision is due."""
    board.state.validate()
    for instruction in board.handle(DecisionDue(session_slots=4, finished={0: finished})):
        if isinstance(instruction, Submit):
            yield instruction.index, sorted(board.state.active[instruction.index].subtasks)
    board.state.validate()


def told(board, *events):
    """Tell a board of events that are followed by a decision."""
    first, *more = [instruction for event in events for instruction in board.handle(event)]
    assert (first, more) == (Later(DecisionDue()), [])


def board_of(vertices):
    return StageBoard(BoardState(graph_of(vertices), "t-", JobEventLog(ManualClock())))


def test_a_vertex_goes_when_all_its_subtasks_are_asked_for():
    """Spark would run the others too."""
    board = board_of({"A": (3, []), "W": (1, ["A"])})
    told(board, SlotRequested("request-0", 0), SlotRequested("request-1", 1))
    assert list(submitted(board)) == []
    told(board, SlotRequested("request-2", 2))
    assert list(submitted(board)) == [(0, [0, 1, 2])]


def test_finished_subtasks_need_not_be_asked_for():
    board = board_of({"A": (2, []), "W": (1, ["A"])})
    told(board, SlotRequested("request", 1), RequestCanceled("request"))
    assert list(submitted(board, finished=1)) == []
    told(board, SlotRequested("again", 1))
    assert list(submitted(board, finished=1)) == [(0, [1])]


def test_slots_limit_what_runs_side_by_side():
    spark = FakeSpark({"A": (2, []), "WA": (1, ["A"]), "B": (2, []), "WB": (1, ["B"])}, slots=3)
    assert spark.running() == ["A"]
    spark.job_started("A")
    tasks = [spark.launch("A", partition) for partition in range(2)]
    spark.end(tasks[0])
    assert spark.running() == ["A", "B"]  # one slot is free of A, and B's two tasks fit into the two left


def test_a_vertex_wider_than_the_slots_runs_alone():
    spark = FakeSpark({"A": (5, []), "WA": (1, ["A"]), "B": (1, []), "WB": (1, ["B"])}, slots=2)
    assert spark.running() == ["A"]
    spark.run("A")
    assert spark.running() == ["B", "WA"]


def side_by_side(tasks: int, jobs: int) -> dict[str, tuple[int, list[str]]]:
    """Independent pairs of a wide vertex and a write of one task."""
    wide: dict[str, tuple[int, list[str]]] = {f"M{number}": (tasks, []) for number in range(jobs)}
    return wide | {f"W{number}": (1, [f"M{number}"]) for number in range(jobs)}


def test_without_a_limit_the_sessions_slots_are_promised_twice():
    spark = FakeSpark(side_by_side(tasks=9, jobs=4), session_slots=9)
    assert spark.running() == ["M0", "M1"]
    spark.job_started("M0")
    spark.end(spark.launch("M0", 0))
    assert spark.running() == ["M0", "M1", "M2"]


def test_a_small_session_is_promised_enough_short_tasks_to_be_busy_while_the_next_stage_is_prepared():
    spark = FakeSpark(side_by_side(tasks=4, jobs=5), session_slots=2)
    assert spark.running() == ["M0", "M1", "M2", "M3"]
    spark.job_started("M0")
    spark.end(spark.launch("M0", 0))
    assert spark.running() == ["M0", "M1", "M2", "M3", "M4"]


def test_an_overlapping_write_waits_for_the_earlier_one():
    spark = FakeSpark(TWO_WRITES, after={"Second": ["First"]})
    spark.run("B")
    assert spark.running() == ["A"]
    spark.run("A")
    assert spark.running() == ["First"]
    spark.run("First")
    assert spark.running() == ["Second"]
    spark.run("Second")
    assert spark.scheduler.job_status is JobStatus.FINISHED


def test_a_write_whose_forerunner_failed_never_starts():
    spark = FakeSpark(TWO_WRITES, after={"Second": ["First"]})
    spark.run("A")
    spark.run("B")
    spark.conclude("First", RuntimeError("no"))
    assert spark.scheduler.job_status is JobStatus.FAILED
    assert "Second" not in [stage.handle.name for stage in spark.stages]


@pytest.mark.parametrize("seed", range(150))
def test_whatever_spark_does_the_job_ends_and_nothing_is_left(seed):
    """Tasks launch, succeed, fail and are killed in any order; stages fail; the job is cancelled, or not."""
    chance = random.Random(seed)
    names = {"A": (3, []), "B": (2, []), "C": (2, ["A", "B"]), "W1": (2, ["C"]), "W2": (1, ["B"])}
    restarts = chance.choice([None, FixedDelayRestartBackoffTimeStrategy(chance.randint(0, 4), 20.0)])
    spark = FakeSpark(names, slots=chance.choice([None, 1, 4]), session_slots=4, restart_strategy=restarts)
    tasks = {}
    cancel_at = chance.choice([None, chance.randint(1, 60)])
    for step in range(2000):
        if step == cancel_at:
            spark.main_thread.execute(spark.scheduler.cancel)
            spark.settle()
        live = [stage for stage in spark.stages if stage.started and not stage.over]
        running = [task for stage in live for task in tasks.get(stage.tag, {}).get("running", [])]
        late = [task for known in tasks.values() for task in known["running"] if task not in running]
        if late and chance.random() < 0.5:
            task = chance.choice(late)
            next(known for known in tasks.values() if task in known["running"])["running"].remove(task)
            spark.end(task, chance.choice(["KILLED", "SUCCESS"]))
        elif live:
            play(spark, chance, chance.choice(live), tasks)
        else:
            spark.pass_time(10)
        if spark.scheduler.job_status.is_terminal and not spark.active_runs():
            break
    status = spark.scheduler.job_status
    assert status.is_terminal, (seed, spark.scheduler.event_log.events()[-5:])
    assert spark.overs == 1
    assert spark.active_runs() == []
    every = [state for name in names for state in spark.state(name)]
    if status is JobStatus.FINISHED:
        assert set(every) == {"FINISHED"}
    assert set(every) <= {"FINISHED", "FAILED", "CANCELED"}
    if cancel_at is None and restarts is None and status is JobStatus.FINISHED:
        own = [task for task in spark.drive.state.log.records() if task.role == "task"]
        assert len(own) >= sum(width for width, _ in names.values())


def play(spark, chance, stage, tasks):
    """One step in the life of a stage."""
    name = stage.handle.name
    if stage.job_id is None:
        if stage.is_cancelled and chance.random() < 0.5:
            spark.conclude(name, RuntimeError("cancelled before it began"))
        else:
            spark.job_started(name)
            wanted = [p for p, state in enumerate(spark.state(name)) if state not in ("FINISHED",)]
            tasks[stage.tag] = {"todo": wanted, "running": [], "failed": False}
        return
    mine = tasks[stage.tag]
    if stage.is_cancelled or mine["failed"] or (not mine["todo"] and not mine["running"]):
        error = RuntimeError("aborted") if stage.is_cancelled or mine["failed"] else None
        error = error or (RuntimeError("commit") if chance.random() < 0.05 else None)
        spark.conclude(name, error)
        return
    if mine["todo"] and (not mine["running"] or chance.random() < 0.6):
        mine["running"].append(spark.launch(name, mine["todo"].pop(0)))
        return
    task = mine["running"].pop(chance.randrange(len(mine["running"])))
    fate = chance.random()
    if fate < 0.85:
        spark.end(task)
    elif fate < 0.93:
        spark.end(task, "FAILED")
        mine["todo"].append(task.partition)
    else:
        spark.end(task, "FAILED")
        mine["failed"] = True
