"""Brings results of earlier jobs up to date from files that were added since.

1. A shuffle, or kept rows, can be brought up to date if the same plan has made it under the same settings and with the
   same code, if all files of that time are still what they were, and if what its operators make of the added files can
   be put beside what is there (``AppendedRows.java``). What reads a shuffle then reads both, partition by partition.
   Kept rows are kept once more, as they are, with those that are added.
2. What is above operators that need all rows (the second half of an aggregation, a window, a sort) is computed whole,
   of inputs that were brought up to date.
3. Each refresh of a shuffle leaves one more to be read, and one of kept rows a longer lineage. After `MOST_PARTS` the
   rows are computed in full.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flinkmagic.errors.actions import other_file
from flinkmagic.planning.appended_stages import AppendedShuffle
from flinkmagic.reuse.map_outputs import MapOutputs
from flinkmagic.reuse.retained_results import Appendable, Part, RetainedResult, RetainedResults

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext

    from flinkmagic.planning.stage_handles import StageHandle
    from flinkmagic.planning.stage_results import StageResult
    from flinkmagic.reuse.result_keys import Growth, OpenKey, ResultKey, ResultKeys

MOST_PARTS = 16
"""In so many parts a retained result may have been made."""

TOO_MANY_PARTS = f"it was brought up to date {MOST_PARTS - 1} times"


@dataclass(frozen=True)
class Refreshed:
    """A result that is brought up to date."""

    former: RetainedResult
    growth: Growth
    open_key: OpenKey

    @property
    def parts(self) -> tuple[Part, ...]:
        """What is there of it."""
        assert self.former.appendable is not None
        return self.former.appendable.parts

    def bytes_with(self, added: tuple[int, ...] | None) -> tuple[int, ...] | None:
        """Return the bytes of each partition, with those that were added."""
        before = self.former.bytes_by_partition
        if before is None or added is None:
            return added or before
        return tuple(map(sum, zip(before, added, strict=True)))

    def with_added(self, exchange: JavaObject | None, states: JavaObject) -> Appendable:
        """Return all of it, with the exchange that has written what was added; None of kept rows."""
        parts = (*self.parts, Part(exchange, states))
        if exchange is not None and exchange.shuffleDependency().rdd().getNumPartitions() == 0:  # all is filtered out
            parts = (*self.parts[:-1], Part(self.parts[-1].exchange, states))
        return Appendable(self.open_key.digest, parts)


class AppendRefresh:
    """What one job brings up to date.

    Parameters
    ----------
    of_session : bool
        Whether it may use what other graphs have left for the session.
    """

    def __init__(
        self, sc: SparkContext, store: RetainedResults, keys: ResultKeys, graph: str, *, of_session: bool
    ) -> None:
        self._outputs = MapOutputs(sc)
        self._store, self._keys, self._graph, self._of_session = store, keys, graph, of_session
        self._offered: dict[StageHandle, tuple[StageResult, Refreshed]] = {}
        self._used: list[tuple[StageResult, ResultKey, Appendable]] = []
        self.refreshed: Mapping[StageHandle, Refreshed] = {}
        """What is brought up to date, once that is decided."""
        self.added_files = 0
        """From how many added files that is done."""
        self.reasons: dict[str, str] = {}
        """By the name of a stage, why its rows are computed in full, although files were only added."""

    def offer(self, result: StageResult, key: ResultKey, changed_file: Callable[[tuple[int, ...]], str]) -> None:
        """Look for earlier rows of a stage that has none with its key.

        Parameters
        ----------
        changed_file : callable
            `ResultKeys.changed_file`.
        """
        if result.appended is None or result.handle.tasks == 0 or not key.files:
            return
        known = self._store.appendable(self._graph, of_session=self._of_session)
        open_key = self._keys.open_of(result.plan, key, *result.names) if known else None
        if open_key is None:
            return
        found: list[tuple[Growth, RetainedResult]] = []
        for former in known:
            assert former.appendable is not None
            if former.appendable.open_key != open_key.digest or not former.is_there():
                continue
            growth = self._keys.growth(open_key, former.appendable.parts[-1].states)
            if growth.files:
                found.append((growth, former))
            elif growth.changed:
                self.reasons[result.handle.name] = other_file(growth.changed)
        if not found or changed_file(key.files):
            return
        growth, former = min(found, key=lambda one: one[0].files)
        assert former.appendable is not None
        if len(former.appendable.parts) >= MOST_PARTS:
            self.reasons[result.handle.name] = TOO_MANY_PARTS
            return
        self.reasons.pop(result.handle.name, None)
        self._offered[result.handle] = result, Refreshed(former, growth, open_key)
        result.appended.know(list(self._digests(open_key, former.appendable)), growth.added)

    def use(self, result: StageResult, key: ResultKey, entry: RetainedResult) -> None:
        """Let a shuffle that is not written consist of several, as it was left."""
        if isinstance(result.appended, AppendedShuffle) and entry.appendable is not None:
            self._used.append((result, key, entry.appendable))
            self._follow(result.appended, entry.appendable.parts[:-1])

    def decide(self) -> None:
        """Decide what is brought up to date."""
        if not self._offered:
            return
        for result, key, shuffle in self._used:
            open_key = self._keys.open_of(result.plan, key, *result.names)
            if open_key is not None and result.appended is not None:
                result.appended.know(list(self._digests(open_key, shuffle)), None)
        refreshed, above = {}, dict[str, str]()
        for handle, (result, one) in self._offered.items():
            assert result.appended is not None
            why = result.appended.decide()
            if not why:
                if isinstance(result.appended, AppendedShuffle):
                    self._follow(result.appended, one.parts)
                else:
                    result.appended.follow(one.former.computed.rows.builder)
                handle.added_files = one.growth.files
                refreshed[handle] = one
            else:
                reasons = self.reasons if result.appended.is_notable else above
                reasons[handle.name] = why
        if not refreshed and not self.reasons:
            self.reasons.update(list(above.items())[:1])
        self.refreshed = refreshed
        self.added_files = self._keys.count(one.growth.added for one in refreshed.values()) if refreshed else 0

    def _digests(self, open_key: OpenKey, shuffle: Appendable) -> Iterator[JavaObject]:
        return (self._keys.digests(open_key, part.states) for part in shuffle.parts)

    def _follow(self, shuffle: AppendedShuffle, parts: Sequence[Part]) -> None:
        exchanges = [part.exchange for part in parts if part.exchange is not None]
        if exchanges:
            sizes = [self._outputs.statistics(one.shuffleDependency()) for one in exchanges]
            shuffle.follow(exchanges, sizes)

    def appendable(self, result: StageResult, key: ResultKey, keys: ResultKeys) -> Appendable | None:
        """Return what later jobs need to bring a stage's result up to date, once it has run; None if they cannot."""
        if result.appended is None:
            return None
        open_key = keys.open_of(result.plan, key, *result.names)
        if open_key is None:
            return None
        exchange = result.computed() if isinstance(result.appended, AppendedShuffle) else None
        states, one = keys.states(open_key), self.refreshed.get(result.handle)
        if one is not None:
            return one.with_added(exchange, states)
        return Appendable(open_key.digest, (Part(exchange, states),))
