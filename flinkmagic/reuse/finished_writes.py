"""Finds which writes that a failed run had finished are still there, and need not run again (rule 5 of `retention`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from flinkmagic.planning.planner import PlannedJob
from flinkmagic.planning.stage_handles import StageHandle
from flinkmagic.planning.stage_results import StageResult
from flinkmagic.reuse.result_keys import ChangedFile, ResultKey, ResultKeys

WITHOUT_KEY = ""
"""The key of a write that has none: no later run finds it again."""


@dataclass(frozen=True)
class FinishedWrite:
    """A write that a failed run had finished."""

    files: list[str] | None
    """What its target held after that run (`ResultKeys.listing`)."""
    replaced_by: tuple[str, ...] = ()
    """The keys of later writes of that run that overwrote its target: they were meant to replace its rows."""


class JobWrites:
    """The writes of one job: which need not run again, and what the next run has to know of them.

    Parameters
    ----------
    planned : PlannedJob, optional
        The job; none has no writes.
    keys : mapping of StageHandle to ResultKey
        Of the rows that they write.
    stages : collection of StageHandle
        Those that are part of the job, which may be a run of some of the sinks.
    """

    def __init__(
        self,
        planned: PlannedJob | None = None,
        keys: Mapping[StageHandle, ResultKey] = MappingProxyType({}),
        stages: Container[StageHandle | None] = (),
    ) -> None:
        results = [one for one in planned.results if one.sink >= 0] if planned is not None else []
        left_out = {one.sink for one in results if one.handle not in stages}
        self._results = {one.sink: one for one in results if one.target}
        self._control_edges = planned.control_edges if planned is not None else {}
        sinks = planned.sinks if planned is not None else ()
        self._facts = {sink.index: sink.write.facts for sink in sinks if sink.write is not None}
        self.keys = _keys_of_writes(results, keys)
        """By sink, the keys of those that have one."""
        self.left_out = {key.digest for sink, key in self.keys.items() if sink in left_out}
        """The keys of those that are no part of the job."""
        self.are_some = bool(left_out)
        """Whether the job is a run of some of the sinks."""

    def overwrites(self, sink: int) -> bool:
        """Return whether a sink replaces what its target holds."""
        return sink in self._facts and self._facts[sink].overwrites

    def still_there(
        self, finished: Mapping[str, FinishedWrite], keys: ResultKeys, changed_file: ChangedFile
    ) -> list[StageHandle]:
        """Return the stages of those that need not run.

        Parameters
        ----------
        finished : mapping of str to FinishedWrite
            By key, what the failed run had finished.
        """
        there: dict[int, FinishedWrite] = {}
        for sink, key in self.keys.items():
            write, result = finished.get(key.digest), self._results.get(sink)
            if write is None or result is None or keys.listing(result.target) != write.files:
                continue
            if not changed_file(key.files):
                there[sink] = write
        while True:
            known = {self.keys[sink].digest for sink in there}
            gone = [
                sink
                for sink, write in there.items()
                if not known.issuperset(write.replaced_by) or not there.keys() >= {*self._control_edges.get(sink, ())}
            ]
            if not gone:
                return [self._results[sink].handle for sink in there]
            for sink in gone:
                del there[sink]

    def to_remember(self, files: Mapping[int, list[str] | None], finished: Iterable[int]) -> dict[str, FinishedWrite]:
        """Return, by their keys, the writes that the run after the correction may find.

        Parameters
        ----------
        files : mapping of int to list of str or None
            By sink, what the target of each such write holds.
        finished : iterable of int
            All sinks that are finished.
        """
        replaced_by: dict[int, list[str]] = {sink: [] for sink in files}
        for later in finished:
            for earlier in self._overwritten(later):
                if earlier in replaced_by:
                    replaced_by[earlier].append(self.keys[later].digest if later in files else WITHOUT_KEY)
        return {self.keys[sink].digest: FinishedWrite(held, tuple(replaced_by[sink])) for sink, held in files.items()}

    def _overwritten(self, sink: int) -> Iterator[int]:
        """Yield the earlier sinks whose targets' data are gone when a sink is done."""
        if self.overwrites(sink):
            for earlier in self._control_edges.get(sink, ()):
                if earlier in self._facts and self._facts[earlier].target.overlaps(self._facts[sink].target):
                    yield earlier


def _keys_of_writes(results: Sequence[StageResult], keys: Mapping[StageHandle, ResultKey]) -> dict[int, ResultKey]:
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
