"""The scheduler, on slots and tasks that the test holds in its own hands."""

from __future__ import annotations

import pytest

from flinkmagic.errors.scheduling import (
    IllegalStateTransitionError,
    JobSuspendedError,
    PartitionNotFoundError,
    RecoverySuppressedError,
    SlotLostError,
    SuppressRestartsError,
    TaskCanceledError,
    TaskExecutorLostError,
)
from flinkmagic.errors.usage import InvalidValueError
from flinkmagic.graph.execution import ExecutionAttemptID
from flinkmagic.graph.execution_state import ExecutionState as S
from flinkmagic.scheduling.default_scheduler import RecoveredJob
from flinkmagic.scheduling.failover.restart_strategy import FixedDelayRestartBackoffTimeStrategy
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.scheduling.task_executor_gateway import TaskExecutionStateTransition

TWO_STAGES = [("map", 2, ()), ("reduce", 3, ("map:hash",))]


def restarts(attempts: int = 10, delay_ms: float = 0.0) -> FixedDelayRestartBackoffTimeStrategy:
    return FixedDelayRestartBackoffTimeStrategy(attempts, delay_ms)


# The course of a job that nothing happens to


def test_regions_are_scheduled_as_their_inputs_are_finished_and_the_job_ends_with_the_last(job, bench) -> None:
    b = bench(job(TWO_STAGES)).start()
    assert b.take_calls() == [[0], [1]]
    b.finish(0)
    assert b.take_calls() == []
    b.finish(1)
    assert b.take_calls() == [[2], [3], [4]]
    assert b.states() == "FFDDD"
    b.finish(2, 3)
    assert b.status is JobStatus.RUNNING
    b.finish(4)
    assert b.statuses == [JobStatus.CREATED, JobStatus.RUNNING, JobStatus.FINISHED]


def test_a_pipelined_job_is_deployed_by_one_call_when_its_last_slot_comes(job, bench) -> None:
    b = bench(job([("map", 2, ()), ("sink", 2, ("map:hash",))], batch=False), auto_slots=False).start()
    assert b.take_calls() == [[0, 1, 2, 3]]
    first, second = b.requests
    assert [list(request.vertices) for request in b.requests.values()] == [[0, 2], [1, 3]]
    b.give_slot(first)
    assert b.submitted == []
    assert b.states() == "SSSS"
    b.give_slot(second)
    assert [descriptor.vertex for descriptor in b.submitted] == [0, 1, 2, 3]
    assert b.states() == "DDDD"


def test_slots_may_come_in_any_order_and_regions_do_not_wait_for_each_other(job, bench) -> None:
    b = bench(job(TWO_STAGES), auto_slots=False).start()
    first, second = b.requests
    b.give_slot(second, "tm-2")
    assert b.states() == "SD..."
    b.finish(1)
    assert b.states() == "SF..."
    b.give_slot(first)
    assert b.states() == "DF..."


def test_a_descriptor_says_what_to_read_and_to_write(job, bench) -> None:
    b = bench(job(TWO_STAGES)).start()
    b.finish(0, 1)
    writer, reader = b.submitted[1], b.submitted[3]
    assert writer.task_name == "Source: map (2/2)"
    assert writer.inputs == ()
    assert [output.partition for output in writer.outputs] == [1]
    assert reader.attempt_id == ExecutionAttemptID(b.graph.job_vertices[1].id, 1, 0)
    (gate,) = reader.inputs
    assert list(gate) == [b.submitted[0].outputs[0], writer.outputs[0]]
    assert reader.outputs == ()


def test_all_readers_of_a_group_share_one_list_of_partitions(job, bench) -> None:
    b = bench(job(TWO_STAGES)).start()
    b.finish(0, 1)
    assert b.submitted[2].inputs[0] is b.submitted[4].inputs[0]


def test_slots_are_given_back_when_the_last_subtask_in_them_is_over(job, bench) -> None:
    b = bench(job([("map", 1, ()), ("sink", 1, ("map:rebalance",))], batch=False)).start()
    b.finish(0)
    assert b.freed == []
    b.finish(1)
    assert b.freed == ["slot-of-slot-request-0"]


def test_results_are_released_with_their_last_reader(job, bench) -> None:
    b = bench(job(TWO_STAGES)).start()
    b.finish(0, 1, 2, 3)
    assert b.scheduler.tracker.tracked_partitions() == [0, 1]
    b.finish(4)
    assert [partition.partition for partition in b.released] == [0, 1]


def test_results_can_be_kept_to_the_end_of_the_job(job, bench) -> None:
    b = bench(job([*TWO_STAGES, ("sink", 1, ("reduce:hash",))]), release_partitions=False).start()
    b.finish(0, 1, 2, 3, 4)
    assert b.released == []
    b.finish(5)
    assert len(b.released) == 5


# News


def test_news_of_another_attempt_changes_nothing(job, bench) -> None:
    b = bench(job(TWO_STAGES)).start()
    job_vertex_id = b.graph.job_vertices[0].id
    for attempt_id in (
        ExecutionAttemptID(job_vertex_id, 0, 1),
        ExecutionAttemptID(job_vertex_id, 2, 0),
        ExecutionAttemptID("unknown", 0, 0),
    ):
        news = TaskExecutionStateTransition(attempt_id, S.FAILED, ValueError())
        assert not b.scheduler.update_task_execution_state(news)
    assert b.states() == "DD..."


@pytest.mark.parametrize("state", [S.RUNNING, S.CREATED, S.SCHEDULED, S.DEPLOYING, S.CANCELING])
def test_news_that_do_not_follow_from_the_state_change_nothing(job, bench, state: S) -> None:
    b = bench(job(TWO_STAGES)).start()
    assert not b.report(0, state)
    assert b.states() == "DD..."


def test_news_after_the_end_change_nothing(job, bench) -> None:
    b = bench(job(TWO_STAGES)).start()
    b.finish(0)
    assert not b.report(0, S.FAILED)
    assert b.states() == "FD..."


def test_news_may_be_dated_back(job, bench) -> None:
    b = bench(job(TWO_STAGES)).start()
    b.clock.advance_to(1_000.0)
    b.run(0)
    attempt_id = b.scheduler.executions.attempt_id(0)
    b.scheduler.update_task_execution_state(TaskExecutionStateTransition(attempt_id, S.FINISHED, at_ms=1_234.5))
    info = b.scheduler.request_job()
    assert info.archived_execution_graph.current_execution(0).timestamps[S.FINISHED] == 1_234.5


def test_a_picture_does_not_change_with_the_job(job, bench) -> None:
    b = bench(job(TWO_STAGES)).start()
    info = b.scheduler.request_job()
    b.finish(0)
    assert info.archived_execution_graph.state_of(0) is S.DEPLOYING
    assert info.job_status is JobStatus.RUNNING
    so_far = (JobStatus.INITIALIZING, JobStatus.CREATED, JobStatus.RUNNING)
    assert info.status_timestamps == dict.fromkeys(so_far, 0.0)


def test_a_job_cannot_be_started_twice(job, bench) -> None:
    b = bench(job(TWO_STAGES)).start()
    with pytest.raises(IllegalStateTransitionError, match=r"RUNNING to RUNNING.*0 ms CREATED; 0 ms RUNNING"):
        b.scheduler.start_scheduling()


# Failures


def test_without_a_restart_strategy_a_failure_ends_the_job_and_cancels_the_rest(job, bench) -> None:
    b = bench(job(TWO_STAGES)).start()
    b.run(0, 1)
    error = ValueError("broken")
    b.fail(1, error)
    assert b.status is JobStatus.FAILING
    assert b.states() == "Cxccc"
    b.confirm_cancellations()
    assert b.statuses[-3:] == [JobStatus.RUNNING, JobStatus.FAILING, JobStatus.FAILED]
    cause = b.scheduler.request_job().failure_cause
    assert isinstance(cause, RecoverySuppressedError)
    assert cause.__cause__ is error


def test_a_failed_region_restarts_alone_after_the_delay(job, bench) -> None:
    b = bench(job(TWO_STAGES), restart_strategy=restarts(1, 100.0)).start()
    b.run(0, 1)
    b.take_calls()
    b.fail(0)
    assert b.status is JobStatus.RESTARTING
    b.settle(99.0)
    assert b.states() == "xR..."
    b.settle(1.0)
    assert b.status is JobStatus.RUNNING
    assert b.take_calls() == [[0]]
    assert b.submitted[-1].attempt_id.attempt == 1
    assert [execution.state for execution in b.graph.prior_executions(0)] == [S.FAILED]


def test_a_restart_waits_until_what_it_restarts_is_cancelled(job, bench) -> None:
    b = bench(job([("map", 2, ()), ("sink", 2, ("map:hash",))], batch=False), restart_strategy=restarts()).start()
    b.run(0, 1, 2, 3)
    b.fail(0)
    assert b.states() == "xCCC"
    b.settle()
    assert b.states() == "xCCC"
    b.confirm_cancellations()
    b.settle()
    assert b.states() == "DDDD"
    assert [descriptor.attempt_id.attempt for descriptor in b.submitted[4:]] == [1, 1, 1, 1]


def test_a_failure_while_cancelling_is_a_cancellation(job, bench) -> None:
    b = bench(job([("map", 1, ()), ("sink", 1, ("map:hash",))], batch=False), restart_strategy=restarts(1)).start()
    b.run(0, 1)
    b.fail(0)
    b.fail(1, ValueError("in the wake of the first"))
    assert b.states() == "xc"
    assert len(b.scheduler.request_job().exception_history) == 1


def test_a_lost_input_pulls_its_producer_in(job, bench) -> None:
    b = bench(job(TWO_STAGES), restart_strategy=restarts()).start()
    b.finish(0, 1)
    b.run(2, 3, 4)
    b.take_calls()
    dataset_id = b.graph.results[0].id
    b.fail(3, PartitionNotFoundError(dataset_id, 1))
    b.confirm_cancellations()
    b.settle()
    assert b.states() == "FD..."
    assert [p.producer.subtask for p in b.released] == [1]
    b.finish(1)
    assert b.take_calls() == [[1], [2], [3], [4]]
    assert b.submitted[-1].inputs[0][1].producer.attempt == 1


def test_what_is_done_already_is_not_run_and_is_read_from_its_holder(job, bench) -> None:
    b = bench(job(TWO_STAGES))
    b.scheduler.recover(RecoveredJob([0, 1], b))
    b.start()
    assert b.statuses[-2:] == [JobStatus.RECONCILING, JobStatus.RUNNING]
    assert b.states() == "FFDDD"
    assert [p.producer.subtask for p in b.submitted[0].inputs[0]] == [0, 1]
    b.finish(2, 3, 4)
    assert sorted(p.producer.subtask for p in b.released) == [0, 1]
    assert b.status is JobStatus.FINISHED


def test_a_job_that_is_done_already_is_finished_when_it_starts(job, bench) -> None:
    b = bench(job(TWO_STAGES))
    b.scheduler.recover(RecoveredJob(range(5), b))
    b.start()
    assert (b.submitted, b.status) == ([], JobStatus.FINISHED)


def test_no_region_starts_on_results_that_are_about_to_be_made_again(job, bench) -> None:
    stages = [("a", 1, ()), ("b", 1, ()), ("of_a", 1, ("a:hash",)), ("of_both", 1, ("a:hash", "b:hash"))]
    b = bench(job(stages), restart_strategy=restarts(1, 1_000.0)).start()
    vertex = {jv.job_vertex.head.name: jv.first for jv in b.graph.job_vertices}
    a, other, of_a, of_both = vertex["Source: a"], vertex["Source: b"], vertex["Sink: of_a"], vertex["of_both"]
    b.finish(a)
    b.run(of_a)
    b.fail(of_a, PartitionNotFoundError(b.graph.job_vertices[a].produced_results[0].id, 0))
    b.finish(other)
    assert b.state(of_both) is S.CREATED
    b.settle(1_000.0)
    b.finish(a)
    assert b.state(of_both) is S.DEPLOYING


def test_a_second_failure_takes_over_what_the_first_one_restarts(job, bench) -> None:
    b = bench(job(TWO_STAGES), restart_strategy=restarts(10, 50.0)).start()
    b.run(0, 1)
    b.fail(0)
    b.settle(25.0)
    b.fail(1)  # the result of 0 is not there, so that 0 is restarted for this failure as well
    b.settle(25.0)
    assert b.states() == "xx..."
    assert b.status is JobStatus.RESTARTING
    b.settle(25.0)
    assert b.states() == "DD..."
    assert b.status is JobStatus.RUNNING
    assert b.graph.attempt.tolist() == [1, 1, 0, 0, 0]


def test_failures_that_have_nothing_to_do_with_each_other_restart_apart(job, bench) -> None:
    stages = [("a", 1, ()), ("b", 1, ()), ("of_a", 1, ("a:hash",)), ("of_b", 1, ("b:hash",))]
    b = bench(job(stages), restart_strategy=restarts(10, 50.0)).start()
    b.run(0, 1)
    b.fail(0)
    b.settle(25.0)
    b.fail(1)
    b.settle(25.0)
    assert b.states() == "Dx.."
    assert b.status is JobStatus.RESTARTING
    b.settle(25.0)
    assert b.states() == "DD.."
    assert b.status is JobStatus.RUNNING


def test_a_restart_that_was_overtaken_leaves_to_the_newer_one_what_that_one_took(job, bench) -> None:
    delays = iter((1_000.0, 10.0))

    class Shrinking(FixedDelayRestartBackoffTimeStrategy):
        def backoff_ms(self) -> float:
            return next(delays)

    stages = [("a", 1, ()), ("b", 1, ()), ("of_both", 1, ("a:hash", "b:hash"))]
    b = bench(job(stages), restart_strategy=Shrinking(10, 0.0)).start()
    b.finish(0, 1)
    b.run(2)
    b.fail(2, PartitionNotFoundError(b.graph.results[0].id, 0))  # a and of_both wait for 1000 ms
    assert b.status is JobStatus.RESTARTING
    b.scheduler.handle_global_failure(ValueError("everything again"))  # all three, in 10 ms
    b.settle(10.0)
    assert b.states() == "DD."
    b.finish(0, 1)
    b.run(2)
    b.settle(2_000.0)
    assert b.states() == "FFR"


def test_an_unrecoverable_failure_restarts_nothing(job, bench) -> None:
    b = bench(job(TWO_STAGES), restart_strategy=restarts()).start()
    b.fail(0, SuppressRestartsError(ValueError("no such column")))
    assert b.status is JobStatus.FAILING


def test_a_gateway_that_refuses_a_task_fails_it(job, bench) -> None:
    b = bench(job([("only", 1, ()), ("sink", 1, ("only:hash",))]), restart_strategy=restarts(1))
    b.refuse = OSError("no route to host")
    b.start()
    assert b.states() == "x."
    (entry,) = b.scheduler.request_job().exception_history
    assert str(entry.root) == "Source: only (1/1) failed on tm-1: no route to host"
    b.refuse = None
    b.settle()
    assert b.states() == "D."


def test_a_slot_that_cannot_be_had_fails_its_task(job, bench) -> None:
    job_graph = job([("only", 1, ()), ("sink", 1, ("only:hash",))])
    b = bench(job_graph, auto_slots=False, restart_strategy=restarts(1)).start()
    b.requests.popitem()[1].slot_future.complete_exceptionally(TimeoutError("no slot"))
    assert b.states() == "x."
    b.settle()
    assert b.states() == "S."
    assert list(b.requests) == ["slot-request-1"]


def test_a_global_failure_restarts_everything(job, bench) -> None:
    b = bench(job(TWO_STAGES), restart_strategy=restarts()).start()
    b.finish(0)
    b.run(1)
    b.scheduler.handle_global_failure(ValueError("the lot"))
    b.confirm_cancellations()
    b.settle()
    assert b.states() == "DD..."
    assert b.graph.attempt.tolist() == [1, 1, 1, 1, 1]
    (entry,) = b.scheduler.request_job().exception_history
    assert entry.root.is_global


def test_full_failover_restarts_what_ever_started(job, bench) -> None:
    b = bench(job(TWO_STAGES), restart_strategy=restarts(), failover_strategy="full").start()
    b.finish(0)
    b.run(1)
    b.fail(1)
    b.settle()
    assert b.states() == "DD..."
    assert b.graph.attempt.tolist() == [1, 1, 0, 0, 0]


def test_a_task_that_is_cancelled_unasked_counts_as_failed(job, bench) -> None:
    b = bench(job(TWO_STAGES), restart_strategy=restarts()).start()
    b.run(0)
    b.report(0, S.CANCELED)
    (entry,) = b.scheduler.request_job().exception_history
    assert isinstance(entry.root.error, TaskCanceledError)
    b.settle()
    assert b.states() == "DD..."


def test_the_history_names_task_attempt_and_executor(job, bench) -> None:
    b = bench(job(TWO_STAGES), restart_strategy=restarts()).start()
    b.clock.advance_to(500.0)
    b.run(1)
    b.fail(1)
    (entry,) = b.scheduler.request_job().exception_history
    root = entry.root
    assert (root.task_name, root.attempt, root.resource_id, root.at_ms) == ("Source: map (2/2)", 0, "tm-1", 500.0)
    assert entry.restarted == (1,)
    assert b.scheduler.request_job().number_of_restarts == 1


# Slots and executors that are lost


def test_a_lost_slot_fails_all_that_share_it(job, bench) -> None:
    b = bench(job([("map", 1, ()), ("sink", 1, ("map:hash",))], batch=False), restart_strategy=restarts()).start()
    b.run(0, 1)
    b.scheduler.fail_slot("slot-of-slot-request-0", SlotLostError("slot-of-slot-request-0", "tm-1", "it broke"))
    assert b.states() == "xc"
    assert b.freed == ["slot-of-slot-request-0"]
    b.settle()
    assert b.states() == "DD"
    assert b.submitted[-1].allocation_id == "slot-of-slot-request-1"


def test_a_lost_executor_takes_its_results_with_it(job, bench) -> None:
    b = bench(job(TWO_STAGES), auto_slots=False, restart_strategy=restarts()).start()
    first, second = b.requests
    b.give_slot(first, "tm-1")
    b.give_slot(second, "tm-2")
    b.finish(0, 1)
    for request in list(b.requests):
        b.give_slot(request, "tm-2")
    b.run(2, 3, 4)
    b.scheduler.task_executor_lost("tm-1", TaskExecutorLostError("tm-1", "gone"))
    # no task ran there; the loss shows when something must be restarted
    assert b.states() == "FFRRR"
    b.fail(2)
    b.confirm_cancellations()
    b.settle()
    assert b.states() == "SF..."
    assert b.released == []  # one is gone with its executor, the other is still wanted


# Ends


@pytest.mark.parametrize("when", ["created", "running", "restarting", "failing"])
def test_cancelling(job, bench, when: str) -> None:
    b = bench(job(TWO_STAGES), restart_strategy=restarts(0 if when == "failing" else 1, 1_000.0))
    if when != "created":
        b.start()
        b.run(0, 1)
    if when in ("restarting", "failing"):
        b.fail(0)
        assert b.status.name == when.upper()
    b.scheduler.cancel()
    b.confirm_cancellations()
    assert b.status is JobStatus.CANCELED
    b.settle(5_000.0)
    assert b.states() in ("ccccc", "xcccc")
    assert b.freed == ["slot-of-slot-request-0", "slot-of-slot-request-1"][: len(b.freed)]
    b.scheduler.cancel()  # again: nothing
    assert b.status is JobStatus.CANCELED


def test_cancelling_gives_requests_for_slots_up(job, bench) -> None:
    b = bench(job(TWO_STAGES), auto_slots=False).start()
    b.scheduler.cancel()
    assert b.requests == {}
    assert b.status is JobStatus.CANCELED


def test_a_slot_that_comes_too_late_goes_back(job, bench) -> None:
    b = bench(job(TWO_STAGES), auto_slots=False).start()
    late = list(b.requests.items())
    b.scheduler.cancel()
    b.requests.update(late)
    b.give_slot(late[0][0])
    assert b.freed == ["slot-of-slot-request-0"]
    assert b.submitted == []


def test_suspending_ends_the_job_here_and_leaves_finished_results(job, bench) -> None:
    b = bench(job(TWO_STAGES)).start()
    b.finish(0)
    b.run(1)
    b.scheduler.suspend(JobSuspendedError(b.graph.job_id, "it was asked to"))
    assert b.status is JobStatus.SUSPENDED
    assert b.states() == "Fcccc"
    assert [attempt.subtask for attempt in b.canceled] == [1]
    assert [partition.partition for partition in b.released] == [1]
    assert not b.status.is_globally_terminal


def test_results_of_a_failed_job_are_released(job, bench) -> None:
    b = bench(job(TWO_STAGES)).start()
    b.finish(0, 1)
    b.run(2, 3, 4)
    b.fail(2)
    b.confirm_cancellations()
    assert sorted(partition.partition for partition in b.released) == [0, 1]


def test_an_unknown_failover_strategy_is_refused(job, bench) -> None:
    with pytest.raises(InvalidValueError, match="region, full, not 'some'"):
        bench(job(TWO_STAGES), failover_strategy="some")
