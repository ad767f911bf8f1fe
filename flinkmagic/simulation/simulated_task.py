"""Simulates one task of an executor: it reads, works for a while, writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from flinkmagic.errors.scheduling import PartitionNotFoundError
from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.scheduling.main_thread import ComponentMainThreadExecutor, ScheduledCall
from flinkmagic.scheduling.task_executor_gateway import (
    ResultPartitionID,
    TaskDeploymentDescriptor,
)
from flinkmagic.simulation.shuffle_environment import PartitionState, ShuffleEnvironment
from flinkmagic.simulation.task_times import SampledTaskTimes

_S = ExecutionState


class SimulatedTask:
    """Goes through INITIALIZING and RUNNING to an end.

    1. Inputs are looked up when the task is initialised. If one is gone, the task fails.
    2. It waits for an input that is being made and must be finished before it is read: a BLOCKING one that is made in
       the task's own region. It waits for a limited time for one that may still appear.
    3. It is finished when its work is done and all its inputs are finished.
    4. If an input is lost meanwhile, the task fails.

    Parameters
    ----------
    on_change : callable
        Called with each state, and with the error if there is one.
    """

    def __init__(
        self,
        descriptor: TaskDeploymentDescriptor,
        resource_id: str,
        main_thread: ComponentMainThreadExecutor,
        shuffle: ShuffleEnvironment,
        times: SampledTaskTimes,
        on_change: Callable[[SimulatedTask, ExecutionState, BaseException | None], None],
    ) -> None:
        self.descriptor = descriptor
        self.state = _S.DEPLOYING
        self.released_inputs_read: list[ResultPartitionID] = []
        """Inputs that it found already released: too early, unless the scheduler knows that the task is over."""
        self._resource_id = resource_id
        self._main_thread = main_thread
        self._shuffle = shuffle
        self._times = times
        self._on_change = on_change
        self._next: ScheduledCall | None = None
        self._is_work_done = False
        self._n_finished_gates = 0
        """How many gates, counted from the first, are known to be finished."""
        self._n_finished_inputs = 0
        """How many partitions of the next gate are."""

    def start(self) -> None:
        """Start the task."""
        for output in self.descriptor.outputs:
            self._shuffle.begin(output, self._resource_id)
        self._change(_S.INITIALIZING)
        self._later(self._initialized, self._times.initialization_ms)

    def cancel(self) -> None:
        """Cancel the task."""
        if not self.state.is_terminal:
            self._end(_S.CANCELED, None)

    def fail(self, error: BaseException) -> None:
        """Fail the task."""
        if not self.state.is_terminal:
            self._end(_S.FAILED, error)

    def vanish(self) -> None:
        """Vanish with the executor, without reporting anything."""
        self._stop()
        self.state = _S.FAILED

    def _later(self, action: Callable[[], None], delay_ms: float) -> None:
        if delay_ms != float("inf"):
            self._next = self._main_thread.schedule(action, delay_ms)

    def _initialized(self) -> None:
        missing = self._first_missing_input()
        if missing is None:
            self._run()
            return
        state = self._shuffle.state(missing)
        if state is PartitionState.IN_PROGRESS:
            self._shuffle.when_changed(missing, self._input_came)
        elif state is None and self._times.may_come_up_later(missing.dataset_id):
            self._later(self._give_up_waiting, self._times.partition_request_timeout_ms)
            self._shuffle.when_changed(missing, self._input_came)
        else:
            self.fail(self._not_found(missing))

    def _input_came(self) -> None:
        if self.state is _S.INITIALIZING:
            self._cancel_next()
            self._initialized()

    def _give_up_waiting(self) -> None:
        missing = self._first_missing_input()
        if missing is not None:
            self.fail(self._not_found(missing))

    def _first_missing_input(self) -> ResultPartitionID | None:
        for gate in self.descriptor.inputs:
            if self._shuffle.are_finished(gate):
                continue
            for partition in gate:
                state = self._shuffle.state(partition)
                if state is PartitionState.RELEASED:
                    self.released_inputs_read.append(partition)
                if state is PartitionState.FINISHED:
                    continue
                if state is PartitionState.IN_PROGRESS and self._times.is_read_while_written(partition.dataset_id):
                    continue
                return partition
        return None

    def _not_found(self, partition: ResultPartitionID) -> PartitionNotFoundError:
        state = self._shuffle.state(partition)
        return PartitionNotFoundError(
            partition.dataset_id, partition.partition, "no task made it" if state is None else f"it is {state.value}"
        )

    def _run(self) -> None:
        self._shuffle.read(self, self.descriptor.inputs, self._input_lost)
        self._change(_S.RUNNING)
        self._later(self._work_done, self._times.work_ms(self.descriptor))

    def _input_lost(self, partition: ResultPartitionID) -> None:
        self.fail(self._not_found(partition))

    def _work_done(self) -> None:
        self._is_work_done = True
        self._finish_if_inputs_are()

    def _finish_if_inputs_are(self) -> None:
        if self.state is not _S.RUNNING or not self._is_work_done:
            return
        for gate in self.descriptor.inputs[self._n_finished_gates :]:
            if not self._shuffle.are_finished(gate) and not self._is_gate_over(gate):
                return
            self._n_finished_gates, self._n_finished_inputs = self._n_finished_gates + 1, 0
        for output in self.descriptor.outputs:
            self._shuffle.finish(output)
        self._end(_S.FINISHED, None)

    def _is_gate_over(self, gate: Sequence[ResultPartitionID]) -> bool:
        """Return whether no partition of a gate is made any more; else wait for it, or fail with it."""
        for partition in gate[self._n_finished_inputs :]:
            if self._shuffle.state(partition) is PartitionState.IN_PROGRESS:
                self._shuffle.when_changed(partition, self._finish_if_inputs_are)
                return False
            if self._shuffle.state(partition) is PartitionState.ABANDONED:
                self.fail(self._not_found(partition))
                return False
            self._n_finished_inputs += 1
        return True

    def _end(self, state: ExecutionState, error: BaseException | None) -> None:
        self._stop()
        for output in self.descriptor.outputs:
            self._shuffle.abandon(output)
        self._change(state, error)

    def _stop(self) -> None:
        self._cancel_next()
        self._shuffle.stop_reading(self)

    def _cancel_next(self) -> None:
        if self._next is not None:
            self._next.cancel()
            self._next = None

    def _change(self, state: ExecutionState, error: BaseException | None = None) -> None:
        self.state = state
        self._on_change(self, state, error)
