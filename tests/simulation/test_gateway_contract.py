"""The simulated executor keeps what every gateway must keep."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import pytest

from flinkmagic.graph.execution import ExecutionAttemptID
from flinkmagic.graph.execution_state import ExecutionState as S
from flinkmagic.scheduling.clock import ManualClock
from flinkmagic.scheduling.main_thread import ManualMainThreadExecutor
from flinkmagic.scheduling.slots.resource_gateways import SlotOffer
from flinkmagic.scheduling.task_executor_gateway import TaskDeploymentDescriptor, TaskExecutionStateTransition
from flinkmagic.simulation.faults import SimulatedError
from flinkmagic.simulation.rpc import Channel
from flinkmagic.simulation.shuffle_environment import ShuffleEnvironment
from flinkmagic.simulation.simulated_task_executor import SimulatedTaskExecutor
from tests.virtual_time import run_until


def _contract() -> ModuleType:
    """Test folders are no packages: the contract is loaded by its path."""
    path = Path(__file__).parents[1] / "scheduling" / "gateway_contract.py"
    specification = importlib.util.spec_from_file_location("gateway_contract", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


TaskExecutorGatewayContract = _contract().TaskExecutorGatewayContract


class Harness:
    """An executor with nine slots, a master that accepts all of them, and times by behaviour."""

    partition_request_timeout_ms = 1_000.0
    initialization_ms = 20.0

    def __init__(self) -> None:
        self.news: list[TaskExecutionStateTransition] = []
        self.heartbeats = 0
        self.job_id = "job"
        clock = ManualClock()
        self.main_thread = ManualMainThreadExecutor(clock)
        chance = random.Random(0)
        self._behaviours: list[str] = []
        self.executor = SimulatedTaskExecutor(
            "tm-1",
            9,
            main_thread=self.main_thread,
            channel=lambda: Channel(self.main_thread, clock.now_ms, 1.0, chance),
            shuffle=ShuffleEnvironment(),
            times=self,  # type: ignore[arg-type]
            find_job_master=lambda _job_id: self,  # type: ignore[arg-type, return-value]
            resource_manager=self,  # type: ignore[arg-type]
            slot_of_allocation={},
        )

    @property
    def gateway(self) -> SimulatedTaskExecutor:
        return self.executor

    # The master.

    def register_task_manager(self, resource_id: str, gateway: object) -> None: ...

    def offer_slots(self, resource_id: str, offers: Sequence[SlotOffer]) -> list[SlotOffer]:
        return list(offers)

    def update_task_execution_state(self, transition: TaskExecutionStateTransition) -> bool:
        self.news.append(transition)
        return True

    def heartbeat_from_task_manager(self, resource_id: str) -> None:
        assert resource_id == "tm-1"
        self.heartbeats += 1

    # The times: a task's subtask number is the number of its behaviour.

    def work_ms(self, descriptor: TaskDeploymentDescriptor) -> float:
        return float("inf") if self._behaviours[descriptor.attempt_id.subtask] == "hang" else 100.0

    def is_read_while_written(self, dataset_id: str) -> bool:
        return False

    def may_come_up_later(self, dataset_id: str) -> bool:
        return False

    # The harness.

    def descriptor(self, behaviour: str) -> TaskDeploymentDescriptor:
        number = len(self._behaviours)
        self._behaviours.append(behaviour)
        allocation_id = f"allocation-{number}"
        self.executor.request_slot(number, self.job_id, allocation_id)
        run_until(self.main_thread, self.main_thread.clock.now_ms() + 10.0)
        attempt_id = ExecutionAttemptID("vertex", number, 0)
        return TaskDeploymentDescriptor(self.job_id, attempt_id, number, f"Task {number}", allocation_id)

    def call(self, gateway_call: Callable[[], None]) -> None:
        self.main_thread.execute(gateway_call)
        self.main_thread.run_ready()

    def wait(self, attempt_id: ExecutionAttemptID, state: S) -> None:
        for _ in range(1_000):
            if any(news.attempt_id == attempt_id and news.state is state for news in self.news):
                return
            task = self.executor.tasks.get(attempt_id)
            if task is not None and task.state is S.RUNNING and self._behaviours[attempt_id.subtask] == "fail":
                task.fail(SimulatedError("broken", 0.0))
            run_until(self.main_thread, self.main_thread.clock.now_ms() + 1.0)
        raise AssertionError(f"{attempt_id} never told of {state.name}: {self.news}")

    def settle(self) -> None:
        run_until(self.main_thread, self.main_thread.clock.now_ms() + 1_000.0)


class TestSimulatedTaskExecutor(TaskExecutorGatewayContract):
    @pytest.fixture
    def harness(self) -> Harness:
        return Harness()
