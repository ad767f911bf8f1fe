"""Declares what resource manager, job master and task executors tell each other (Flink's gateways of these names)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from flinkmagic.scheduling.job_event_log import JobEventLog
from flinkmagic.scheduling.task_executor_gateway import TaskExecutionStateTransition, TaskExecutorGateway


class SlotOffer(NamedTuple):
    """A slot that an executor offers to a job master (Flink's `SlotOffer`).

    Departure from Flink: `vertex` names the execution vertex that the slot is for, if an executor has launched its task
    already. Spark offers slots in this way.
    """

    allocation_id: str
    vertex: int | None = None


class ManagedTaskExecutorGateway(TaskExecutorGateway, Protocol):
    """A task executor whose slots a resource manager hands out (the rest of Flink's `TaskExecutorGateway`)."""

    def request_slot(self, slot_index: int, job_id: str, allocation_id: str) -> None:
        """Reserve a slot for a job, and offer it to the job's master."""

    def heartbeat_from_resource_manager(self) -> None:
        """Ask for a sign of life; answered through `ResourceManager.heartbeat_from_task_manager`."""


class JobMasterGateway(Protocol):
    """A job's master, as executors and the resource manager see it (Flink's `JobMasterGateway`)."""

    @property
    def job_id(self) -> str:
        """The job."""

    @property
    def event_log(self) -> JobEventLog:
        """The job's event log."""

    def register_task_manager(self, resource_id: str, gateway: TaskExecutorGateway) -> None:
        """Record that an executor has slots for this job."""

    def offer_slots(self, resource_id: str, offers: Sequence[SlotOffer]) -> list[SlotOffer]:
        """Take the offered slots that are needed; the others stay with the executor."""

    def update_task_execution_state(self, transition: TaskExecutionStateTransition) -> bool:
        """Handle the news of an attempt."""

    def heartbeat_from_task_manager(self, resource_id: str) -> None:
        """Record an executor's sign of life."""

    def fail_slot(self, resource_id: str, allocation_id: str, cause: BaseException) -> None:
        """Handle the loss of a slot that an executor reports."""

    def disconnect_task_manager(self, resource_id: str, cause: BaseException) -> None:
        """Handle the loss of an executor."""

    def notify_not_enough_resources(self, acquired: int) -> None:
        """Handle the news that the resource manager has no more than `acquired` slots for this job."""


class ResourceManagerGateway(Protocol):
    """The resource manager, as job masters see it (Flink's `ResourceManagerGateway`)."""

    def register_job_master(self, job_master: JobMasterGateway) -> None:
        """Register a job's master."""

    def declare_required_resources(self, job_id: str, slots: int) -> None:
        """Record how many slots a job needs in all."""

    def disconnect_job_master(self, job_id: str) -> None:
        """Forget a job: it needs nothing any more."""
