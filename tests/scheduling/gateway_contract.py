"""What every `TaskExecutorGateway` must do, as tests: a gateway's own tests derive from `TaskExecutorGatewayContract`.

A harness hides what differs: how a task is made that finishes, fails or hangs, and how time passes until news is
there. The simulated executors and Spark's are held against the same tests.
"""

from __future__ import annotations

from typing import Protocol

import pytest

from flinkmagic.graph.execution import ExecutionAttemptID
from flinkmagic.graph.execution_state import ExecutionState as S
from flinkmagic.scheduling.task_executor_gateway import (
    ResultPartitionID,
    TaskDeploymentDescriptor,
    TaskExecutionStateTransition,
    TaskExecutorGateway,
)


class GatewayHarness(Protocol):
    """Makes a gateway's tasks, and hears its news."""

    news: list[TaskExecutionStateTransition]
    """All that the gateway has reported, in the order in which it arrived on the main thread."""
    heartbeats: int
    """How many signs of life have arrived."""

    @property
    def gateway(self) -> TaskExecutorGateway:
        """The gateway under test."""
        ...

    def descriptor(self, behaviour: str) -> TaskDeploymentDescriptor:
        """A new task that will `finish`, `fail`, or `hang` until it is cancelled, with a slot to run in."""
        ...

    def call(self, gateway_call: object) -> None:
        """Call the gateway where the scheduler would: on the main thread."""
        ...

    def wait(self, attempt_id: ExecutionAttemptID, state: S) -> None:
        """Let time pass until that news is there; fail the test if it does not come."""
        ...

    def settle(self) -> None:
        """Let time pass until nothing more is to be expected."""
        ...


class TaskExecutorGatewayContract:
    """Tests for any gateway; a subclass gives the fixture `harness`."""

    @pytest.fixture
    def harness(self) -> GatewayHarness:
        raise NotImplementedError

    def told(self, harness: GatewayHarness, descriptor: TaskDeploymentDescriptor) -> list[S]:
        return [news.state for news in harness.news if news.attempt_id == descriptor.attempt_id]

    def test_a_task_comes_to_run_and_finishes(self, harness: GatewayHarness) -> None:
        task = harness.descriptor("finish")
        harness.call(lambda: harness.gateway.submit_task(task))
        harness.wait(task.attempt_id, S.FINISHED)
        harness.settle()
        assert self.told(harness, task) == [S.INITIALIZING, S.RUNNING, S.FINISHED]

    def test_a_failure_is_told_once_with_its_cause(self, harness: GatewayHarness) -> None:
        task = harness.descriptor("fail")
        harness.call(lambda: harness.gateway.submit_task(task))
        harness.wait(task.attempt_id, S.FAILED)
        harness.settle()
        assert self.told(harness, task)[-1] is S.FAILED
        assert self.told(harness, task).count(S.FAILED) == 1
        (error,) = [news.error for news in harness.news if news.state is S.FAILED]
        assert isinstance(error, Exception)
        assert str(error)

    def test_a_running_task_can_be_cancelled(self, harness: GatewayHarness) -> None:
        task = harness.descriptor("hang")
        harness.call(lambda: harness.gateway.submit_task(task))
        harness.wait(task.attempt_id, S.RUNNING)
        harness.call(lambda: harness.gateway.cancel_task(task.attempt_id))
        harness.wait(task.attempt_id, S.CANCELED)
        harness.settle()
        assert self.told(harness, task) == [S.INITIALIZING, S.RUNNING, S.CANCELED]

    def test_a_task_that_is_cancelled_immediately_does_not_run_on(self, harness: GatewayHarness) -> None:
        task = harness.descriptor("hang")

        def submit_and_cancel() -> None:
            harness.gateway.submit_task(task)
            harness.gateway.cancel_task(task.attempt_id)

        harness.call(submit_and_cancel)
        harness.wait(task.attempt_id, S.CANCELED)
        harness.settle()
        assert self.told(harness, task)[-1] is S.CANCELED

    def test_cancelling_a_task_leaves_others_alone(self, harness: GatewayHarness) -> None:
        doomed, other = harness.descriptor("hang"), harness.descriptor("finish")
        harness.call(lambda: harness.gateway.submit_task(doomed))
        harness.wait(doomed.attempt_id, S.RUNNING)
        harness.call(lambda: harness.gateway.submit_task(other))
        harness.call(lambda: harness.gateway.cancel_task(doomed.attempt_id))
        harness.wait(other.attempt_id, S.FINISHED)
        harness.wait(doomed.attempt_id, S.CANCELED)

    def test_cancelling_a_task_that_is_over_adds_no_other_end(self, harness: GatewayHarness) -> None:
        task = harness.descriptor("finish")
        harness.call(lambda: harness.gateway.submit_task(task))
        harness.wait(task.attempt_id, S.FINISHED)
        harness.call(lambda: harness.gateway.cancel_task(task.attempt_id))
        harness.settle()
        # whoever does not know the task any more says CANCELED, which the scheduler passes over
        assert self.told(harness, task)[2:] in ([S.FINISHED], [S.FINISHED, S.CANCELED])

    def test_an_unknown_task_is_answered_as_cancelled(self, harness: GatewayHarness) -> None:
        known = harness.descriptor("hang")  # for a slot, so that the executor knows the job
        unknown = known.attempt_id._replace(attempt=99)
        harness.call(lambda: harness.gateway.cancel_task(unknown))
        harness.wait(unknown, S.CANCELED)

    def test_no_call_reports_before_it_returns(self, harness: GatewayHarness) -> None:
        task = harness.descriptor("finish")
        told_within: list[int] = []

        def submit() -> None:
            before = len(harness.news)
            harness.gateway.submit_task(task)
            harness.gateway.cancel_task(task.attempt_id)
            told_within.append(len(harness.news) - before)

        harness.call(submit)
        assert told_within == [0]
        harness.settle()

    def test_partitions_that_are_not_there_are_passed_over(self, harness: GatewayHarness) -> None:
        task = harness.descriptor("finish")
        nothing = ResultPartitionID("no-such-result", 0, task.attempt_id)
        harness.call(lambda: harness.gateway.release_partitions(task.job_id, [nothing, nothing]))
        harness.call(lambda: harness.gateway.submit_task(task))
        harness.wait(task.attempt_id, S.FINISHED)

    def test_a_heartbeat_is_answered(self, harness: GatewayHarness) -> None:
        task = harness.descriptor("finish")
        before = harness.heartbeats
        harness.call(lambda: harness.gateway.heartbeat_from_job_manager(task.job_id))
        harness.settle()
        assert harness.heartbeats == before + 1

    def test_it_has_a_name(self, harness: GatewayHarness) -> None:
        assert harness.gateway.resource_id
