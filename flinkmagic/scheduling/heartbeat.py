"""Requests signs of life, and notices missed ones (Flink's `HeartbeatManagerSenderImpl`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from flinkmagic.errors.scheduling import TaskExecutorLostError
from flinkmagic.scheduling.clock import Clock
from flinkmagic.scheduling.main_thread import ComponentMainThreadExecutor


@dataclass(frozen=True)
class HeartbeatOptions:
    """Flink's `heartbeat.interval` and `heartbeat.timeout`."""

    interval_ms: float = 10_000.0
    timeout_ms: float = 50_000.0


class HeartbeatManager:
    """Asks executors for signs of life, and reports those that give none for too long.

    Parameters
    ----------
    on_timeout : callable
        Called with the name of a silent executor, which is no longer watched then, and with why it counts as lost.
    """

    def __init__(
        self,
        clock: Clock,
        main_thread: ComponentMainThreadExecutor,
        options: HeartbeatOptions | None,
        on_timeout: Callable[[str, BaseException], None],
    ) -> None:
        self._clock = clock
        self._main_thread = main_thread
        self._options = options or HeartbeatOptions()
        self._on_timeout = on_timeout
        self._targets: dict[str, Callable[[], None]] = {}
        self._heard_at_ms: dict[str, float] = {}
        self._is_due = False

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
            self._main_thread.schedule(self._tick, self._options.interval_ms)

    def _tick(self) -> None:
        self._is_due = False
        now_ms, timeout_ms = self._clock.now_ms(), self._options.timeout_ms
        for target, request in list(self._targets.items()):
            if target not in self._targets:
                continue
            if now_ms - self._heard_at_ms[target] >= timeout_ms:
                self.unmonitor(target)
                self._on_timeout(target, TaskExecutorLostError(target, f"no sign of life for {timeout_ms:g} ms"))
            else:
                request()
        self._schedule()
