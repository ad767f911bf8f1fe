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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flinkmagic.errors.actions import other_file
from flinkmagic.planning.appended_stages import AppendedShuffle
from flinkmagic.reuse.map_outputs import MapOutputs
from flinkmagic.reuse.retained_results import Appendable, Part, RetainedResult

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext

    from flinkmagic.planning.stage_handles import StageHandle
    from flinkmagic.planning.stage_results import StageResult
    from flinkmagic.reuse.result_keys import ChangedFile, Growth, ResultKey, ResultKeys

MOST_PARTS = 16
"""In so many parts a retained result may have been made."""

TOO_MANY_PARTS = f"it was brought up to date {MOST_PARTS - 1} times"


@dataclass(frozen=True)
class Refreshed:
    """A result that is brought up to date."""

    former: RetainedResult
    growth: Growth

    @property
    def there(self) -> Appendable:
        """What is there of it."""
        assert self.former.appendable is not None
        return self.former.appendable

    def bytes_with(self, added: tuple[int, ...] | None) -> tuple[int, ...] | None:
        """Return the bytes of each partition, with those that were added."""
        before = self.former.bytes_by_partition
        if before is None or added is None:
            return added or before
        return tuple(map(sum, zip(before, added, strict=True)))

    def with_added(self, exchange: JavaObject | None, states: JavaObject) -> Appendable:
        """Return all of it, with the exchange that has written what was added; None of kept rows."""
        before = self.there.parts
        parts = (*before, Part(exchange, states))
        if exchange is not None and exchange.shuffleDependency().rdd().getNumPartitions() == 0:  # all is filtered out
            parts = (*before[:-1], Part(before[-1].exchange, states))
        return Appendable(self.there.open_key, parts)


class AppendRefresh:
    """What one job brings up to date.

    Parameters
    ----------
    keys : ResultKeys
        Those that have made `key_of`.
    key_of : mapping of StageHandle to ResultKey
        The keys of the job's results.
    """

    def __init__(self, sc: SparkContext, keys: ResultKeys, key_of: Mapping[StageHandle, ResultKey]) -> None:
        self._outputs, self._keys, self._key_of = MapOutputs(sc), keys, key_of
        self.refreshed: dict[StageHandle, Refreshed] = {}
        """What is brought up to date, once that is decided."""
        self.added_files = 0
        """From how many added files that is done."""
        self.reasons: dict[str, str] = {}
        """By the name of a stage, why its rows are computed in full, although files were only added."""

    def bring_up_to_date(
        self,
        found: Mapping[StageResult, RetainedResult],
        missing: Iterable[StageResult],
        formers: Sequence[RetainedResult],
        changed_file: ChangedFile,
    ) -> None:
        """Decide what is brought up to date, and let its stages do that.

        Parameters
        ----------
        found : mapping of StageResult to RetainedResult
            What the job uses as it is. A shuffle of several parts is read as it was left.
        missing : iterable of StageResult
            What the job computes.
        formers : sequence of RetainedResult
            What earlier jobs have left to be brought up to date, last used first.
        """
        offered = {one: offer for one in missing if (offer := self._offer(one, formers, changed_file)) is not None}
        read: list[tuple[AppendedShuffle, list[JavaObject]]] = []
        for result, entry in found.items():
            if isinstance(result.appended, AppendedShuffle) and entry.appendable is not None:
                read.append((result.appended, entry.appendable.exchanges[:-1]))
                open_key = self._keys.open_of(result, self._key_of[result.handle]) if offered else None
                if open_key is not None:
                    result.appended.know(self._keys.digests(open_key, entry.appendable.states), None)
        above = dict[str, str]()
        for result, offer in offered.items():
            assert result.appended is not None
            why = result.appended.decide()
            if why:
                reasons = self.reasons if result.appended.is_notable else above
                reasons[result.handle.name] = why
                continue
            if isinstance(result.appended, AppendedShuffle):
                read.append((result.appended, offer.there.exchanges))
            else:
                result.appended.follow(offer.former.computed.rows.builder)
            result.handle.added_files = offer.growth.files
            self.refreshed[result.handle] = offer
        for shuffle, exchanges in read:
            if exchanges:
                shuffle.follow(exchanges, [self._outputs.statistics(one.shuffleDependency()) for one in exchanges])
        if self.refreshed:
            self.added_files = self._keys.count(one.growth.added for one in self.refreshed.values())
        elif not self.reasons:
            self.reasons.update(list(above.items())[:1])

    def _offer(
        self, result: StageResult, formers: Sequence[RetainedResult], changed_file: ChangedFile
    ) -> Refreshed | None:
        """Return those of the earlier rows of a stage to which the fewest files were added, and let it know them."""
        if result.appended is None or result.handle.tasks == 0 or not formers:
            return None
        key = self._key_of[result.handle]
        open_key = self._keys.open_of(result, key)
        if open_key is None:
            return None
        grown: list[Refreshed] = []
        for former in formers:
            assert former.appendable is not None
            if former.appendable.open_key != open_key.digest or not former.is_there():
                continue
            growth = self._keys.growth(open_key, former.appendable.parts[-1].states)
            if growth.files:
                grown.append(Refreshed(former, growth))
            elif growth.changed:
                self.reasons[result.handle.name] = other_file(growth.changed)
        if not grown or changed_file(key.files):
            return None
        offer = min(grown, key=lambda one: one.growth.files)
        if len(offer.there.parts) >= MOST_PARTS:
            self.reasons[result.handle.name] = TOO_MANY_PARTS
            return None
        self.reasons.pop(result.handle.name, None)
        result.appended.know(self._keys.digests(open_key, offer.there.states), offer.growth.added)
        return offer

    def appendable(self, result: StageResult, key: ResultKey, keys: ResultKeys) -> Appendable | None:
        """Return what later jobs need to bring a stage's result up to date, once it has run; None if they cannot."""
        if result.appended is None:
            return None
        open_key = keys.open_of(result, key)
        if open_key is None:
            return None
        exchange = result.computed() if isinstance(result.appended, AppendedShuffle) else None
        states, one = keys.states(open_key), self.refreshed.get(result.handle)
        if one is not None:
            return one.with_added(exchange, states)
        return Appendable(open_key.digest, (Part(exchange, states),))
