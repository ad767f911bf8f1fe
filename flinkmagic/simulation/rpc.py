"""Delivers messages after a while (the simulator's replacement for Flink's RPC)."""

from __future__ import annotations

import random
from collections.abc import Callable

from flinkmagic.scheduling.main_thread import ComponentMainThreadExecutor


class Channel:
    """A one-way connection: messages arrive later, in the order in which they were sent.

    Parameters
    ----------
    latency_ms : float
        A message takes a random time between half and one and a half times that.
    """

    def __init__(
        self,
        main_thread: ComponentMainThreadExecutor,
        now_ms: Callable[[], float],
        latency_ms: float,
        random_source: random.Random,
    ) -> None:
        self._main_thread = main_thread
        self._now_ms = now_ms
        self._latency_ms = latency_ms
        self._random = random_source
        self._last_arrival_ms = 0.0
        self.is_closed = False

    def send(self, message: Callable[[], object]) -> None:
        """Call `message` at the other end; drop it if the channel is closed by then."""
        now_ms = self._now_ms()
        arrival_ms = max(now_ms + self._latency_ms * self._random.uniform(0.5, 1.5), self._last_arrival_ms)
        self._last_arrival_ms = arrival_ms
        self._main_thread.schedule(lambda: None if self.is_closed else message(), arrival_ms - now_ms)
