"""`Observation.get` in a captured cell: it waits for a query, which may be a write that is still pending."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from flinkmagic.capturing.hooks import Args, Hook, Kwargs
from flinkmagic.capturing.pending import Cause

if TYPE_CHECKING:
    from flinkmagic.capturing.program import DeferredWrite
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


def observation_entries() -> Iterator[tuple[type, str, Callable[[str, Any], Hook]]]:
    from pyspark.sql import Observation

    yield Observation, "get", ObservationGet


def _observes(write: DeferredWrite, name: str) -> bool:
    """Whether the query of a write collects metrics under a name; some commands hide their query from its tree."""
    return re.search(rf"CollectMetrics {re.escape(name)}, \[", write.command.treeString()) is not None
