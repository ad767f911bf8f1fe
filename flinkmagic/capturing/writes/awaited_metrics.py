"""Refuses to wait for metrics of observations that come with a write that has not run yet."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from flinkmagic.errors.capturing import AwaitedMetricsError

if TYPE_CHECKING:
    from flinkmagic.capturing.writes.deferred_write import DeferredWrite


class AwaitedMetrics:
    """Replaces the Java half of an observation until the graph runs whose write yields its metrics.

    Without it, a later cell that asks for them would wait forever.

    Parameters
    ----------
    write : DeferredWrite
        The first write of the program that collects its metrics.
    """

    def __init__(self, observation: Any, write: DeferredWrite, graph: str | None) -> None:
        self._observation, self._java_half = observation, observation._jo
        self.write, self._graph = write, graph

    def __getattr__(self, name: str) -> Any:
        if name.startswith("get") and not self._java_half.future().isCompleted():
            raise AwaitedMetricsError(self._java_half.name(), self.write.facts.label, self.write.location, self._graph)
        return getattr(self._java_half, name)

    def release(self) -> None:
        """Let the observation wait for its metrics: they are about to come."""
        if self._observation._jo is self:
            self._observation._jo = self._java_half


def await_metrics(
    observations: Iterable[Any], writes: Sequence[DeferredWrite], graph: str | None
) -> tuple[AwaitedMetrics, ...]:
    """Make observations name the writes of a graph that they wait for."""
    awaited = []
    for observation in observations:
        java_half = observation._jo
        if isinstance(java_half, AwaitedMetrics) or java_half.future().isCompleted():
            continue
        write = next((write for write in writes if observes(write, java_half.name())), None)
        if write is not None:
            observation._jo = AwaitedMetrics(observation, write, graph)
            awaited.append(observation._jo)
    return tuple(awaited)


def observes(write: DeferredWrite, name: str) -> bool:
    """Return whether a write's query collects metrics under a name; some commands hide their query from their tree."""
    return re.search(rf"CollectMetrics {re.escape(name)}, \[", write.command.treeString()) is not None
