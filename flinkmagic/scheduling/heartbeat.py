"""Requests signs of life, and notices missed ones (Flink's `HeartbeatManagerSenderImpl`)."""

from __future__ import annotations

from collections.abc import Callable

from flinkmagic.scheduling.clock import Clock
from flinkmagic.scheduling.main_thread import ComponentMainThreadExecutor


class HeartbeatManager:
    """Asks its targets for signs of life, and reports those that give none for too long.

    Parameters
    ----------
    interval_ms, timeout_ms : float
        Flink's `heartbeat.interval` and `heartbeat.timeout`.
    on_timeout : callable
        Called with the name of a silent target, which is no longer watched then.
    """

    def __init__(
        self,
        clock: Clock,
        main_thread: ComponentMainThreadExecutor,
        interval_ms: float,
        timeout_ms: float,
        on_timeout: Callable[[str], None],
    ) -> None:
        self._clock = clock
        self._main_thread = main_thread
        self._interval_ms = interval_ms
        self._timeout_ms = timeout_ms
        self._on_timeout = on_timeout
        self._targets: dict[str, Callable[[], None]] = {}
        self._heard_at_ms: dict[str, float] = {}
        self._is_due = False

    @property
    def timeout_ms(self) -> float:
        """How long a target may be silent."""
        return self._timeout_ms

    def monitor(self, target: str, request: Callable[[], None]) -> None:
        """Watch a target; `request` asks it for a sign of life."""
        self._targets[target] = request
        self._heard_at_ms[target] = self._clock.now_ms()
        self._schedule()

    def unmonitor(self, target: str) -> None:
        """Stop watching a target."""
        self._targets.pop(target, None)
        self._heard_at_ms.pop(target, None)

    def heard_from(self, target: str) -> None:
        """Record a sign of life."""
        if target in self._targets:
            self._heard_at_ms[target] = self._clock.now_ms()

    def stop(self) -> None:
        """Stop watching all targets."""
        self._targets.clear()
        self._heard_at_ms.clear()

    def _schedule(self) -> None:
        if not self._is_due and self._targets:
            self._is_due = True
            self._main_thread.schedule(self._tick, self._interval_ms)

    def _tick(self) -> None:
        self._is_due = False
        now_ms = self._clock.now_ms()
        for target, request in list(self._targets.items()):
            if target not in self._targets:
                continue
            if now_ms - self._heard_at_ms[target] >= self._timeout_ms:
                self.unmonitor(target)
                self._on_timeout(target)
            else:
                request()
        self._schedule()
