"""Gives slots to executions, shared by slot sharing group (Flink's `SlotSharingExecutionSlotAllocator`)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial

from flinkmagic.scheduling.completable_future import CompletableFuture
from flinkmagic.scheduling.slots.physical_slot_provider import (
    BulkWatcher,
    PhysicalSlot,
    PhysicalSlotProvider,
    PhysicalSlotRequest,
)
from flinkmagic.scheduling.slots.shared_slot import SharedSlot


class SlotSharingExecutionSlotAllocator:
    """Gives each execution a share of the slot of its execution slot sharing group.

    1. The group of each vertex is fixed (`groups`, made by a slot sharing strategy).
    2. A group has at most one slot at a time, asked for with the first of its vertices that is scheduled.
    3. One call of the provider requests all slots that one call needs. Together with those that were requested before
       they are a bulk, which a provider may watch.
    4. The slot is returned when no vertex holds a share of it any more.

    Parameters
    ----------
    groups : sequence of sequences of int
        The vertices of each group, ascending.
    group_names : sequence of str
        The slot sharing group that each of these groups belongs to, for messages.
    occupied_indefinitely : bool
        Whether tasks run until something stops them.
    preferred_resources : callable
        Returns executors that suit the vertices of a group, best first.
    """

    def __init__(
        self,
        slot_provider: PhysicalSlotProvider,
        groups: Sequence[Sequence[int]],
        group_names: Sequence[str],
        occupied_indefinitely: bool,
        preferred_resources: Callable[[Sequence[int]], Sequence[str]],
    ) -> None:
        self._slot_provider = slot_provider
        self._bulk_watcher = slot_provider if isinstance(slot_provider, BulkWatcher) else None
        self._groups = groups
        self._group_names = group_names
        self._occupied_indefinitely = occupied_indefinitely
        self._preferred_resources = preferred_resources
        self._group_of = {vertex: number for number, group in enumerate(groups) for vertex in group}
        self._shared_slots: dict[int, SharedSlot] = {}
        self._by_allocation: dict[str, SharedSlot] = {}
        self._request_numbers = itertools.count()

    def allocate_slots_for(self, vertices: Sequence[int]) -> list[CompletableFuture[PhysicalSlot]]:
        """Return the share of each vertex, in the order given."""
        shares: list[CompletableFuture[PhysicalSlot]] = []
        new: list[SharedSlot] = []
        bulk: dict[str, PhysicalSlotRequest] = {}
        for vertex in vertices:
            group = self._group_of[vertex]
            shared = self._shared_slots.get(group)
            if shared is None:
                shared = self._shared_slots[group] = SharedSlot(group, self._new_request(group), self._give_back)
                new.append(shared)
            bulk[shared.request.slot_request_id] = shared.request
            shares.append(shared.allocate_logical_slot(vertex))
        for shared in new:
            shared.request.slot_future.when_complete(partial(self._fulfilled, shared))
        if new:
            self._slot_provider.allocate_physical_slots([shared.request for shared in new])
        if self._bulk_watcher is not None:
            self._bulk_watcher.watch_bulk(list(bulk.values()))
        return shares

    def release(self, vertex: int, cause: BaseException | None = None) -> None:
        """Return the share that a vertex holds; that of one that awaits it fails with `cause`, if there is one."""
        shared = self._shared_slots.get(self._group_of[vertex])
        if shared is not None:
            shared.return_logical_slot(vertex, cause)

    def lose_slot(self, allocation_id: str) -> list[int]:
        """Remove a lost slot; return the vertices that shared it.

        A vertex that is scheduled again gets another slot, even while the others are still being failed.
        """
        shared = self._by_allocation.get(allocation_id)
        if shared is None:
            return []
        vertices = shared.vertices
        shared.abandon()
        self._give_back(shared)
        return vertices

    def allocations_on(self, resource_id: str) -> list[str]:
        """Return the slots on an executor."""
        return [
            allocation_id
            for allocation_id, shared in self._by_allocation.items()
            if shared.physical is not None and shared.physical.resource_id == resource_id
        ]

    def shared_slots(self) -> list[SharedSlot]:
        """Return the slots that are held or awaited, in the order in which they were requested."""
        return list(self._shared_slots.values())

    def _new_request(self, group: int) -> PhysicalSlotRequest:
        vertices = self._groups[group]
        return PhysicalSlotRequest(
            slot_request_id=f"slot-request-{next(self._request_numbers)}",
            vertices=vertices,
            slot_sharing_group=self._group_names[group],
            preferred_resource_ids=self._preferred_resources(vertices),
            slot_will_be_occupied_indefinitely=self._occupied_indefinitely,
        )

    def _fulfilled(self, shared: SharedSlot, physical: PhysicalSlot | None, error: BaseException | None) -> None:
        if self._shared_slots.get(shared.group) is not shared:
            if physical is not None:
                self._slot_provider.free_slot(physical.allocation_id)
            return
        if physical is not None:
            self._by_allocation[physical.allocation_id] = shared
        shared.fulfil(physical, error)

    def _give_back(self, shared: SharedSlot) -> None:
        del self._shared_slots[shared.group]
        if shared.physical is not None:
            del self._by_allocation[shared.physical.allocation_id]
            self._slot_provider.free_slot(shared.physical.allocation_id)
        elif not shared.request.slot_future.is_done:
            self._slot_provider.cancel_slot_request(shared.request.slot_request_id)
