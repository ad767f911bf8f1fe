"""Finds which writes that a failed run had finished are still there, and need not run again (rule 5 of `retention`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from flinkmagic.planning.planner import PlannedJob
from flinkmagic.planning.stage_handles import StageHandle
from flinkmagic.planning.stage_results import StageResult
from flinkmagic.reuse.result_keys import ResultKey

WITHOUT_KEY = ""
"""The key of a write that has none: no later run finds it again."""


@dataclass(frozen=True)
class FinishedWrite:
    """A write that a failed run had finished."""

    files: list[str] | None
    """What its target held after that run (`ResultKeys.listing`)."""
    replaced_by: tuple[str, ...] = ()
    """The keys of later writes of that run that overwrote its target: they were meant to replace its rows."""


def keys_of_writes(results: Sequence[StageResult], keys: Mapping[StageHandle, ResultKey]) -> dict[int, ResultKey]:
    """Return the keys of writes by sink, given those of their rows.

    The second, third, ... of equal writes have keys of their own: what one of them wrote, it alone wrote.
    """
    seen: Counter[str] = Counter()
    named = {}
    for result in sorted(results, key=lambda one: one.sink):
        key = keys.get(result.handle)
        if result.handle.is_committed and key is not None:
            named[result.sink] = replace(key, digest=f"{key.digest}/{seen[key.digest]}")
            seen[key.digest] += 1
    return named


def to_remember(
    planned: PlannedJob,
    keys: Mapping[int, ResultKey],
    files: Mapping[int, list[str] | None],
    finished: Iterable[int],
) -> dict[str, FinishedWrite]:
    """Return, by their keys, the writes that the run after the correction may find.

    Parameters
    ----------
    keys : mapping of int to ResultKey
        By sink.
    files : mapping of int to list of str or None
        By sink, what the target of each such write holds.
    finished : iterable of int
        All sinks that are finished.
    """
    replaced_by: dict[int, list[str]] = {sink: [] for sink in files}
    for later in finished:
        for earlier in _overwritten(planned, later):
            if earlier in replaced_by:
                replaced_by[earlier].append(keys[later].digest if later in files else WITHOUT_KEY)
    return {keys[sink].digest: FinishedWrite(held, tuple(replaced_by[sink])) for sink, held in files.items()}


def _overwritten(planned: PlannedJob, sink: int) -> Iterator[int]:
    """Yield the earlier sinks whose targets' data are gone when a sink is done."""
    write = planned.sinks[sink].write
    if write is None or not write.facts.overwrites:
        return
    for earlier in planned.control_edges.get(sink, ()):
        other = planned.sinks[earlier].write
        if other is not None and other.facts.target.overlaps(write.facts.target):
            yield earlier


def still_there(
    planned: PlannedJob,
    keys: Mapping[int, ResultKey],
    finished: Mapping[str, FinishedWrite],
    is_unchanged: Callable[[int, FinishedWrite], bool],
) -> set[int]:
    """Return the sinks that need not run.

    Parameters
    ----------
    keys : mapping of int to ResultKey
        By sink.
    finished : mapping of str to FinishedWrite
        By key, what the failed run had finished.
    is_unchanged : callable
        Whether a sink's target, and the inputs of its rows, are what they were then.
    """
    there = {
        sink: finished[key.digest]
        for sink, key in keys.items()
        if key.digest in finished and is_unchanged(sink, finished[key.digest])
    }
    while True:
        known = {keys[sink].digest for sink in there}
        gone = [
            sink
            for sink, write in there.items()
            if not known.issuperset(write.replaced_by) or not there.keys() >= {*planned.control_edges.get(sink, ())}
        ]
        if not gone:
            return set(there)
        for sink in gone:
            del there[sink]
