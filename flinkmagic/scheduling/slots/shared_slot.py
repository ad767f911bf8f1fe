"""Shares a physical slot between several subtasks (Flink's `SharedSlot`)."""

from __future__ import annotations

from collections.abc import Callable

from flinkmagic.scheduling.completable_future import CompletableFuture
from flinkmagic.scheduling.slots.physical_slot_provider import PhysicalSlot, PhysicalSlotRequest


class SharedSlot:
    """The slot of one execution slot sharing group; a subtask's share (Flink's `LogicalSlot`) is the physical slot.

    It lives as long as one of the group's subtasks holds or awaits a share.

    Parameters
    ----------
    on_empty : callable
        Called when the last share is gone; returns the physical slot, or cancels its request.
    """

    def __init__(self, group: int, request: PhysicalSlotRequest, on_empty: Callable[[SharedSlot], None]) -> None:
        self.group = group
        self.request = request
        self.physical: PhysicalSlot | None = None
        self._on_empty = on_empty
        self._shares: dict[int, CompletableFuture[PhysicalSlot]] = {}
        self._is_released = False

    @property
    def vertices(self) -> list[int]:
        """The subtasks that hold or await a share."""
        return list(self._shares)

    def allocate_logical_slot(self, vertex: int) -> CompletableFuture[PhysicalSlot]:
        """Return the share of a subtask, now or when the physical slot is there."""
        share = self._shares.get(vertex)
        if share is None:
            share = self._shares[vertex] = CompletableFuture()
            if self.physical is not None:
                share.complete(self.physical)
        return share

    def fulfil(self, physical: PhysicalSlot | None, error: BaseException | None) -> None:
        """Process the outcome of the request; with an error all shares end, as the slot will not come."""
        if error is not None:
            shares, self._shares = self._shares, {}
            self._end_if_empty()
            for share in shares.values():
                share.complete_exceptionally(error)
            return
        if physical is None or self._is_released:
            return
        self.physical = physical
        for vertex, share in list(self._shares.items()):
            if self._shares.get(vertex) is share:
                share.complete(physical)

    def return_logical_slot(self, vertex: int, cause: BaseException | None = None) -> None:
        """Return a share, or cancel it; with the last one the slot itself."""
        share = self._shares.pop(vertex, None)
        if share is None:
            return
        if cause is not None:
            share.complete_exceptionally(cause)
        self._end_if_empty()

    def abandon(self) -> None:
        """End all shares silently: the slot is lost, and their holders are notified in another way."""
        self._shares.clear()
        self._is_released = True

    def _end_if_empty(self) -> None:
        if not self._shares and not self._is_released:
            self._is_released = True
            self._on_empty(self)
