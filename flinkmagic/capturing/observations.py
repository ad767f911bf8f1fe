"""`Observation.get`, in a captured cell and in later ones: it waits for a query, maybe for a write that is pending."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from flinkmagic.capturing.hooks import Args, Hook, Kwargs, Transformation
from flinkmagic.capturing.pending import Cause
from flinkmagic.errors import AwaitedMetricsError

if TYPE_CHECKING:
    from flinkmagic.capturing.program import DeferredWrite, Program
    from flinkmagic.capturing.recorder import Recorder


class ObservationGet(Hook):
    """The metrics of a pending write are asked for: it is deployed first, or the line is refused."""

    def before(self, recorder: Recorder, args: Args, kwargs: Kwargs) -> None:
        observation = args[0]._jo
        if not recorder.pending or observation is None or observation.future().isCompleted():
            return
        name, touches = observation.name(), "waits for what is observed in the write to"
        with recorder.pending.lock:
            write = next((write for write in recorder.pending.writes if _observes(write, name)), None)
            if write is not None:
                recorder.pending.deploy(recorder.location(), Cause.SPARK, touches, write)


class Observe(Transformation):
    """`DataFrame.observe`: the observation is remembered, if it is given one."""

    def after(self, recorder: Recorder, args: Args, kwargs: Kwargs, result: Any) -> Any:
        observation = args[1] if len(args) > 1 else kwargs.get("observation")
        if getattr(observation, "_jo", None) is not None:
            recorder.observations.append(observation)
        return super().after(recorder, args, kwargs, result)


class AwaitedMetrics:
    """Takes the place of the Java half of an observation until the graph runs with whose write its metrics come.

    Whoever asks for them in a later cell would wait for ever.

    Parameters
    ----------
    observation : pyspark.sql.Observation
        The user's.
    write : DeferredWrite
        The first write of the program that collects its metrics.
    graph : str, optional
        The graph's name.
    """

    def __init__(self, observation: Any, write: DeferredWrite, graph: str | None) -> None:
        self._observation, self._java_half = observation, observation._jo
        self._write, self._graph = write, graph

    def __getattr__(self, name: str) -> Any:
        if name.startswith("get") and not self._java_half.future().isCompleted():
            raise AwaitedMetricsError(self._java_half.name(), self._write.path, self._write.location, self._graph)
        return getattr(self._java_half, name)

    def release(self) -> None:
        """Let the observation wait for its metrics: they are about to come."""
        if self._observation._jo is self:
            self._observation._jo = self._java_half


def await_metrics(observations: Iterable[Any], program: Program) -> tuple[AwaitedMetrics, ...]:
    """Have observations say which of the program's writes they wait for."""
    awaited = []
    for observation in observations:
        java_half = observation._jo
        if isinstance(java_half, AwaitedMetrics) or java_half.future().isCompleted():
            continue
        write = next((write for write in program.writes if _observes(write, java_half.name())), None)
        if write is not None:
            observation._jo = AwaitedMetrics(observation, write, program.name)
            awaited.append(observation._jo)
    return tuple(awaited)


def release_metrics(program: Program) -> None:
    """Let observations wait for the metrics of a program that has begun to run."""
    for part in (program, *program.parts):
        for metrics in part.awaited_metrics:
            metrics.release()


def observation_entries() -> Iterator[tuple[type, str, Callable[[str, Any], Hook]]]:
    """Class, attribute, and what makes its hook."""
    from pyspark.sql import Observation

    yield Observation, "get", ObservationGet


def _observes(write: DeferredWrite, name: str) -> bool:
    """Whether the query of a write collects metrics under a name; some commands hide their query from its tree."""
    return re.search(rf"CollectMetrics {re.escape(name)}, \[", write.command.treeString()) is not None
