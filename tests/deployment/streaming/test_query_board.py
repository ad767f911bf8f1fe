"""What queries make of their tasks' lives, in any order of what is told of them."""

from __future__ import annotations

from fake_spark import graph_of
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkmagic.deployment.board.messages import (
    CancelRequested,
    GiveSlot,
    Later,
    NothingRuns,
    Report,
    SlotRequested,
    TaskDeployed,
)
from flinkmagic.deployment.streaming.query_board import QueryBoard, QueryEnded, QueryStarted, StartQuery, StopQuery
from flinkmagic.graph.execution import ExecutionAttemptID
from flinkmagic.graph.execution_state import ExecutionState

GRAPH = graph_of({"Source": (2, []), "Sink": (1, ["Source"])})
QUERY = 7
TORN = ValueError("the third batch is torn")


class Query:
    """A board of one query, and what it has said of each task."""

    def __init__(self):
        self.board = QueryBoard(GRAPH, {QUERY: range(3)})
        self.said, self.states, self.attempt = [], {}, 0

    def tell(self, event):
        for instruction in self.board.handle(event):
            self.said.append(instruction)
            report = instruction.what if isinstance(instruction, Later) else instruction
            if isinstance(report, Report):
                self.states.setdefault(report.attempt, []).append(report.state.name)
        self.board.validate()

    def task(self, vertex):
        job_vertex = GRAPH.job_vertex_of(vertex)
        return ExecutionAttemptID(job_vertex.id, vertex - job_vertex.first, self.attempt)

    def deploy(self, *vertices):
        for vertex in vertices:
            self.tell(TaskDeployed(self.task(vertex), f"session_{vertex}"))

    def of(self, vertex):
        return self.states.get(self.task(vertex), [])


def test_each_task_gets_a_slot_of_its_own_immediately():
    query = Query()
    for vertex in (0, 1, 0):
        query.tell(SlotRequested(f"request-{vertex}", vertex))
    assert query.said == [GiveSlot(vertex, f"session_{n}", "session") for n, vertex in enumerate((0, 1, 0))]


def test_a_query_is_started_with_its_last_task_and_all_tasks_run_and_end_with_it():
    query = Query()
    query.deploy(0, 2)
    assert (query.said, query.board.is_idle) == ([], True)
    query.deploy(1)
    assert (query.said, query.board.is_idle) == ([StartQuery(QUERY)], False)
    query.tell(QueryStarted(QUERY))
    query.tell(QueryEnded(QUERY))
    assert [query.of(vertex) for vertex in range(3)] == [["INITIALIZING", "RUNNING", "FINISHED"]] * 3
    assert query.said[-1] == NothingRuns()


def test_the_sink_is_the_first_to_fail_and_the_query_can_be_started_again():
    query = Query()
    query.deploy(0, 1, 2)
    query.tell(QueryEnded(QUERY, TORN))
    assert query.said[1:4] == [Report(query.task(vertex), ExecutionState.FAILED, TORN) for vertex in (2, 1, 0)]
    query.attempt = 1
    query.deploy(0, 1, 2)
    assert query.said[-1] == StartQuery(QUERY)


def test_a_task_of_a_query_that_was_not_started_is_cancelled_after_the_call():
    query = Query()
    query.deploy(0)
    query.tell(CancelRequested(query.task(0)))
    assert query.said == [Later(Report(query.task(0), ExecutionState.CANCELED))]
    query.deploy(1, 2)
    assert query.board.is_idle


def test_tasks_of_a_query_that_runs_are_cancelled_when_it_has_ended():
    query = Query()
    query.deploy(0, 1, 2)
    for vertex in range(3):
        query.tell(CancelRequested(query.task(vertex)))
    assert query.said == [StartQuery(QUERY), *[StopQuery(QUERY)] * 3]
    query.tell(QueryEnded(QUERY, TORN))
    assert [query.of(vertex) for vertex in range(3)] == [["CANCELED"]] * 3


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["deploy", "cancel", "started", "ended", "failed"]), st.integers(0, 2))))
def test_whatever_is_told_each_task_ends_at_most_once(moves):
    query, open_ = Query(), set()
    for move, vertex in moves:
        runs = not query.board.is_idle
        if move == "deploy" and vertex not in open_ and not runs:
            query.deploy(vertex)
            open_.add(vertex)
        elif move == "cancel" and vertex in open_:
            query.tell(CancelRequested(query.task(vertex)))
            if not runs:
                open_.discard(vertex)
                assert query.of(vertex)[-1] == "CANCELED"
                query.states.clear()
        elif move == "started" and runs:
            query.tell(QueryStarted(QUERY))
        elif move in ("ended", "failed") and runs:
            query.tell(QueryEnded(QUERY, TORN if move == "failed" else None))
            ends = [[state for state in query.of(each) if ExecutionState[state].is_terminal] for each in range(3)]
            assert [len(each) for each in ends] == [1, 1, 1]
            open_.clear()
            query.states.clear()
            query.attempt += 1
    assert query.board.is_idle == (open_ != {0, 1, 2})
