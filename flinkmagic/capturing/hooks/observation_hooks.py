"""Hooks `Observation.get`, which waits for a query, maybe for a pending write, of this cell or an earlier one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from flinkmagic.capturing.call_arguments import Args, Kwargs, argument
from flinkmagic.capturing.hooks.call_hooks import Entry, Hook, LazyCall
from flinkmagic.capturing.writes.awaited_metrics import observes
from flinkmagic.capturing.writes.pending import Cause

if TYPE_CHECKING:
    from flinkmagic.capturing.recorder import Recorder


class ObservationGet(Hook):
    """A request for the metrics of a pending write: the write is deployed first, or the line is refused."""

    def before(self, recorder: Recorder, args: Args, kwargs: Kwargs) -> None:
        observation = args[0]._jo
        if not recorder.pending or observation is None or observation.future().isCompleted():
            return
        name, touches = observation.name(), "waits for what is observed in the write to"
        with recorder.pending.lock:
            write = next((write for write in recorder.pending.writes if observes(write, name)), None)
            if write is not None:
                recorder.pending.deploy(recorder.location(), Cause.SPARK, touches, write)


class Observe(LazyCall):
    """`DataFrame.observe`: remembers the observation, if it is given one."""

    def after(self, recorder: Recorder, args: Args, kwargs: Kwargs, result: Any) -> Any:
        observation = argument(args, kwargs, 1, "observation")
        if getattr(observation, "_jo", None) is not None:
            recorder.observations.append(observation)
        return super().after(recorder, args, kwargs, result)


def observation_entries() -> Iterator[Entry]:
    """Yield the method and its hook factory."""
    from pyspark.sql import Observation

    yield Observation, "get", ObservationGet
