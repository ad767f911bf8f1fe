"""Decides which columns of text sources a line keeps for later lines, or reads as kept (`reuse.source_columns`).

1. The first action that reads a source reads it as plain Spark does; the next ones may keep of it what they read.
2. The cost is a stake, which the savings by kept columns pay back (`keeping_budget`).
3. An action that asks for a few rows keeps nothing if it may stop early; if its query is one stage, Spark runs it.
4. A write reads kept columns, and keeps none: it could not run again if it failed for that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flinkmagic.errors.actions import columns_kept, columns_read, slice_kept
from flinkmagic.reuse.source_columns import PARSED_A_SECOND, Source, SourceColumns, SourceQuery

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame

    from flinkmagic.session.actions.action_kinds import ActionKind
    from flinkmagic.session.actions.keeping_budget import KeepingBudget

LEAST_SECONDS = 0.1
"""Text that is parsed faster is not worth planning a query of one stage ourselves."""


class TextReads:
    """The text sources of one line.

    Parameters
    ----------
    kind : ActionKind or None
        Of the action; None if it is a write, or an action that only Spark carries out.
    budget : KeepingBudget
        Bounds what is kept, and learns what that saves.
    """

    def __init__(self, sc: SparkContext, kind: ActionKind | None, budget: KeepingBudget) -> None:
        self._sc, self._budget = sc, budget
        self._takes_few = kind is not None and kind.takes_few
        self._keeps = kind is not None and not kind.stops_early
        self.query: SourceQuery | None = None

    def of(self, df: DataFrame) -> SourceQuery | None:
        """Find the text sources of the line's query, anew each time that it is compiled."""
        self.query = SourceColumns.of(self._sc).query(df, self._room)
        return self.query

    def _room(self, source: Source) -> float:
        if not self._keeps or (not source.reads and not source.is_kept):
            return 0.0
        return self._budget.room(self._budget.expected(source.key))

    @property
    def pay_alone(self) -> bool:
        """Whether a query of one stage is worth planning for its text sources alone."""
        if self.query is None or self._takes_few:
            return False
        return any(
            self.query.seconds(source, PARSED_A_SECOND) > LEAST_SECONDS and (source.is_kept or source.reads)
            for source in self.query.sources
        )

    @property
    def are_columns(self) -> bool:
        """Whether kept columns are read, or columns are kept."""
        return bool(self.names)

    @property
    def names(self) -> list[str]:
        """The sources of which kept columns are read, or columns are kept."""
        if self.query is None:
            return []
        return [source.name for source in (*self.query.read(), *self.query.kept(), *self.query.sliced())]

    @property
    def note(self) -> str:
        """What to tell the user once the action has run."""
        if self.query is None:
            return ""
        read = [source for source, _ in self.query.spared()]
        told = ((read, columns_read), (self.query.has_kept(), columns_kept), (self.query.has_sliced(), slice_kept))
        return "; ".join(text(", ".join(one.name for one in sources)) for sources, text in told if sources)

    def give_up(self) -> None:
        """Neither read nor keep columns any more: the action failed with them."""
        if self.query is not None:
            self.query.give_up()
            self.query = None

    def ended(self, seconds: float) -> None:
        """Note that the action is over, after so many seconds."""
        if self.query is None:
            return
        for source, spared in self.query.spared():
            self._budget.pays(source.key, spared)
            self._budget.note(0.0, spared)
        for source in self.query.from_files(takes_few=self._takes_few):
            self._budget.expect(source.key, seconds)
        for source, cost in self.query.ended(takes_few=self._takes_few):
            self._budget.stake(source.key, cost)
