"""Numbers the DataFrames of a program, and keeps each alive only as long as something can still use it."""

from __future__ import annotations

import weakref
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class FrameRegistry:
    """Gives every DataFrame object a number.

    A frame is held weakly until it is used a second time or `keep` is called for it: a frame that nothing refers to can
    have no second consumer, so an iterative program's old frames (and the blocks that they pin) can be freed.
    """

    def __init__(self) -> None:
        self._numbers: dict[int, tuple[int, weakref.ref[Any]]] = {}
        self._aliases: dict[int, tuple[int, weakref.ref[Any]]] = {}
        self._uses: Counter[int] = Counter()
        self._next = 0
        self.kept: dict[int, DataFrame] = {}

    def number(self, df: DataFrame) -> int | None:
        """Return the number of a known frame, by identity."""
        entry = self._numbers.get(id(df)) or self._aliases.get(id(df))
        return entry[0] if entry is not None and entry[1]() is df else None

    def alias(self, df: DataFrame, number: int) -> None:
        """Register a frame under the number of another: it has the rows that the other was defined to have."""
        if self.number(df) is None:
            self._put(self._aliases, df, number)

    def aliases(self) -> list[tuple[DataFrame, int]]:
        """Return the frames that are registered under the numbers of others and are still alive."""
        found = [(ref(), number) for number, ref in list(self._aliases.values())]
        return [(df, number) for df, number in found if df is not None]

    def living(self) -> dict[int, DataFrame]:
        """Return the frames that are still alive, by their numbers."""
        found = {number: ref() for number, ref in list(self._numbers.values())}
        return {number: df for number, df in found.items() if df is not None}

    def reserve(self) -> int:
        """Return a number for a frame that is gone."""
        number, self._next = self._next, self._next + 1
        return number

    def add(self, df: DataFrame) -> int:
        """Assign a number to a frame; a known one keeps its number."""
        known = self.number(df)
        if known is not None:
            return known
        return self._put(self._numbers, df, self.reserve())

    @staticmethod
    def _put(numbers: dict[int, tuple[int, weakref.ref[Any]]], df: DataFrame, number: int) -> int:
        key = id(df)

        def forget(ref: weakref.ref[Any]) -> None:
            if numbers.get(key, (None, None))[1] is ref:
                del numbers[key]

        numbers[key] = (number, weakref.ref(df, forget))
        return number

    def use(self, df: DataFrame) -> int:
        """Note that something consumes a frame."""
        number = self.add(df)
        self._uses[number] += 1
        if self._uses[number] > 1:
            self.kept.setdefault(number, df)
        return number

    def keep(self, df: DataFrame) -> int:
        """Hold a frame as long as the registry's `kept` is held."""
        number = self.add(df)
        self.kept.setdefault(number, df)
        return number
