"""Deploys what was decided: first all slots of a call, then the tasks (Flink's `DefaultExecutionDeployer`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.scheduling.deployment_descriptors import TaskDeploymentDescriptorFactory
from flinkmagic.scheduling.execution_vertex_versioner import ExecutionVertexVersioner
from flinkmagic.scheduling.executions import Executions
from flinkmagic.scheduling.job_event_log import JobEventLog
from flinkmagic.scheduling.partition_tracker import JobMasterPartitionTracker
from flinkmagic.scheduling.slots.execution_slot_allocator import SlotSharingExecutionSlotAllocator
from flinkmagic.scheduling.slots.physical_slot_provider import PhysicalSlot


@dataclass
class _Deployment:
    """One running call of `allocate_slots_and_deploy`."""

    vertices: Sequence[int]
    versions: Sequence[int]
    waiting: int
    """How many of the vertices' slots have neither come nor failed."""


class DefaultExecutionDeployer:
    """Deploys the vertices of a call when the last of their slots has arrived.

    A slot that fails fails its execution immediately. If something else is decided about a vertex in the meantime (a
    restart, for example), its part of the call is void.

    Parameters
    ----------
    fail_execution : callable
        Fails the current execution of a vertex that could not be deployed.
    """

    def __init__(
        self,
        executions: Executions,
        allocator: SlotSharingExecutionSlotAllocator,
        versioner: ExecutionVertexVersioner,
        tracker: JobMasterPartitionTracker,
        descriptors: TaskDeploymentDescriptorFactory,
        fail_execution: Callable[[int, BaseException], None],
        event_log: JobEventLog,
    ) -> None:
        self._executions = executions
        self._allocator = allocator
        self._versioner = versioner
        self._tracker = tracker
        self._descriptors = descriptors
        self._fail_execution = fail_execution
        self._event_log = event_log

    def allocate_slots_and_deploy(self, vertices: Sequence[int]) -> None:
        """Ask for the vertices' slots, and deploy them all when all of these are there."""
        deployment = _Deployment(vertices, self._versioner.record_modifications(vertices), len(vertices))
        self._executions.transition_all(vertices, ExecutionState.SCHEDULED)
        shares = self._allocator.allocate_slots_for(vertices)
        for vertex, version, share in zip(vertices, deployment.versions, shares, strict=True):
            share.when_complete(partial(self._assigned, deployment, vertex, version))

    def _assigned(
        self,
        deployment: _Deployment,
        vertex: int,
        version: int,
        slot: PhysicalSlot | None,
        error: BaseException | None,
    ) -> None:
        if not self._versioner.is_modified(vertex, version):
            if slot is not None:
                self._executions.assign(vertex, slot)
            elif error is not None:
                self._fail_execution(vertex, error)
        deployment.waiting -= 1
        if deployment.waiting == 0:
            self._deploy_all(deployment)

    def _deploy_all(self, deployment: _Deployment) -> None:
        for vertex, version in zip(deployment.vertices, deployment.versions, strict=True):
            if not self._versioner.is_modified(vertex, version):
                self._deploy(vertex)

    def _deploy(self, vertex: int) -> None:
        slot = self._executions.slots[vertex]
        self._executions.transition(vertex, ExecutionState.DEPLOYING)
        descriptor = self._descriptors.create(vertex, slot)
        for partition, output in zip(
            self._executions.graph.produced_partitions(vertex), descriptor.outputs, strict=True
        ):
            self._tracker.start_tracking(partition, output, slot.resource_id, slot.gateway)
        self._event_log.add("scheduler", f"deploy {descriptor.task_name} in {slot.allocation_id} on {slot.resource_id}")
        try:
            slot.gateway.submit_task(descriptor)
        except Exception as error:  # noqa: BLE001 - what a gateway raises fails the task, not the scheduler
            self._fail_execution(vertex, error)
