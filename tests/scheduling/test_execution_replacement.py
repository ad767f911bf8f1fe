"""Executions that run again without the scheduler's doing: each rule of `DefaultScheduler.replace_executions`."""

from __future__ import annotations

from flinkmagic.errors.scheduling import ExecutorLostError, OutputLostError
from flinkmagic.graph.execution_state import ExecutionState as S
from flinkmagic.scheduling.failover.restart_strategy import FixedDelayRestartBackoffTimeStrategy
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.scheduling.scheduler_validation import validate_scheduler

TWO_STAGES = [("map", 2, ()), ("reduce", 2, ("map:hash",))]
LOST = ExecutorLostError("tm-1", "its process was killed")


def test_a_running_execution_fails_and_the_next_one_is_asked_for_immediately(job, bench) -> None:
    b = bench(job(TWO_STAGES), auto_slots=False).start()
    for request in list(b.requests):
        b.give_slot(request)
    b.run(0, 1)
    b.take_calls()
    assert b.scheduler.replace_executions([0], LOST, 7.0)
    validate_scheduler(b.scheduler)
    assert b.states() == "SR.."
    assert b.take_calls() == [[0]]
    assert [list(request.vertices) for request in b.requests.values()] == [[0]]
    (prior,) = b.graph.execution_vertex(0).prior_executions
    assert (prior.state, prior.error, prior.timestamps[S.FAILED]) == (S.FAILED, LOST, 7.0)
    assert b.canceled == []
    assert b.statuses == [JobStatus.CREATED, JobStatus.RUNNING]


def test_no_restart_is_spent(job, bench) -> None:
    b = bench(job(TWO_STAGES), restart_strategy=FixedDelayRestartBackoffTimeStrategy(1, 0.0)).start()
    b.run(0, 1)
    for _ in range(5):
        assert b.scheduler.replace_executions([0], LOST)
        b.run(0)
    assert b.scheduler.request_job().number_of_restarts == 0
    b.fail(0)
    b.settle()
    assert b.status is JobStatus.RUNNING
    assert b.scheduler.request_job().number_of_restarts == 1


def test_one_loss_is_one_entry_of_the_history(job, bench) -> None:
    b = bench(job(TWO_STAGES)).start()
    b.run(0, 1)
    b.scheduler.replace_executions([0], LOST)
    b.scheduler.replace_executions([1], ExecutorLostError("tm-1", "the same"))
    b.run(0, 1)
    b.scheduler.replace_executions([1], ExecutorLostError("tm-2", "another one"))
    first, second = b.scheduler.request_job().exception_history
    assert [entry.task_name for entry in (first.root, *first.concurrent)] == ["Source: map (1/2)", "Source: map (2/2)"]
    assert (first.restarted, second.restarted, second.root.attempt) == ([0, 1], (1,), 1)
    assert "tm-1" in str(first.root)


def test_consumers_wait_for_what_is_made_once_more(job, bench) -> None:
    b = bench(job(TWO_STAGES)).start()
    b.finish(0)
    assert b.scheduler.replace_executions([0], OutputLostError("tm-1", "map (1/2)"))
    validate_scheduler(b.scheduler)
    b.take_calls()
    b.finish(1)
    assert b.states() == "DF.."
    b.finish(0)
    assert b.take_calls() == [[2], [3]]
    (prior,) = b.graph.execution_vertex(0).prior_executions
    assert prior.state is S.FINISHED
    b.finish(2, 3)
    assert b.status is JobStatus.FINISHED


def test_consumers_that_run_go_on_and_the_job_ends_with_the_last_of_all(job, bench) -> None:
    b = bench(job(TWO_STAGES)).start()
    b.finish(0, 1)
    b.run(2, 3)
    assert b.scheduler.replace_executions([1], OutputLostError(None, "map (2/2)"))
    assert b.states() == "FDRR"
    for vertex in (2, 3):
        b.scheduler.update_task_execution_state(b.transition(vertex, S.FINISHED))
    assert b.status is JobStatus.RUNNING
    b.finish(1)
    assert b.status is JobStatus.FINISHED
    assert b.canceled == []


def test_a_chain_is_replaced_as_a_whole(job, bench) -> None:
    b = bench(job([("read", 2, ()), ("write", 2, ("read:forward/PIPELINED",))])).start()
    b.run(0, 2)
    region = b.scheduler.topology.vertices_of(b.scheduler.topology.region_of[0])
    assert list(region) == [0, 2]
    assert b.scheduler.replace_executions(region, LOST)
    validate_scheduler(b.scheduler)
    assert b.states() == "DDDD"
    assert [b.graph.execution_vertex(vertex).current_execution.attempt for vertex in range(4)] == [1, 0, 1, 0]


def test_nothing_is_replaced_in_a_job_that_ends(job, bench) -> None:
    b = bench(job(TWO_STAGES)).start()
    b.run(0, 1)
    b.scheduler.cancel()
    assert not b.scheduler.replace_executions([0], LOST)
    assert b.states() == "CCcc"
    b.confirm_cancellations()
    assert b.status is JobStatus.CANCELED
    assert not b.scheduler.replace_executions([0], LOST)


def test_what_waits_for_its_restart_is_left_to_it(job, bench) -> None:
    b = bench(job(TWO_STAGES), restart_strategy=FixedDelayRestartBackoffTimeStrategy(1, 100.0)).start()
    b.run(0, 1)
    b.fail(0)
    assert not b.scheduler.replace_executions([0], LOST)
    b.settle(100)
    assert [b.graph.execution_vertex(0).current_execution.attempt, b.states()] == [1, "DR.."]
