"""Who leads at the moment (Flink's `LeaderRetrievalService`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class LeaderRetrievalService(Generic[T]):
    """Tells listeners who leads, immediately and whenever that changes.

    Departure from Flink: an address would have to be resolved to a gateway; here all are in one process,
    and the gateway itself is told.
    """

    def __init__(self, leader: T | None = None) -> None:
        self._leader = leader
        self._listeners: list[Callable[[T | None], None]] = []

    def start(self, listener: Callable[[T | None], None]) -> None:
        """Tell `listener` who leads from now on; None means that there is no leader."""
        self._listeners.append(listener)
        listener(self._leader)

    def stop(self, listener: Callable[[T | None], None]) -> None:
        """Stop telling it."""
        if listener in self._listeners:
            self._listeners.remove(listener)

    def notify_leader(self, leader: T | None) -> None:
        """Tell listeners that another leads now, or none."""
        self._leader = leader
        for listener in list(self._listeners):
            listener(leader)
