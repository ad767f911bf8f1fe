"""Makes a stage compute only the rows of added files, if earlier jobs have made the others (``AppendedRows.java``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from flinkmagic.jvm.java import java_list
from flinkmagic.planning.stage_handles import Once

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext

    from flinkmagic.planning.stage_handles import StageHandle


class AppendedStage:
    """A stage whose result can consist of rows of earlier jobs and of rows of added files.

    Parameters
    ----------
    rebuilder : py4j.java_gateway.JavaObject
        The job's ``PlanRebuilder``.
    rows : callable
        Returns the job's ``AppendedRows``.
    result : py4j.java_gateway.JavaObject
        The exchange, or the ``InMemoryRelation`` of rows that are kept, as it was planned.
    """

    def __init__(
        self,
        sc: SparkContext,
        rebuilder: JavaObject,
        rows: Callable[[], JavaObject],
        result: JavaObject,
        handle: StageHandle,
    ) -> None:
        self._jvm, self._rebuilder, self._rows, self._result, self._handle = sc._jvm, rebuilder, rows, result, handle

    def know(self, states: Sequence[JavaObject], added: JavaObject | None) -> None:
        """Tell of which files there are rows, and what was added since.

        Parameters
        ----------
        states : sequence of py4j.java_gateway.JavaObject
            By result that is there the digests of the files that it and the former ones hold, by index.
        added : py4j.java_gateway.JavaObject or None
            `Growth.added`; None if nothing was.
        """
        self._rows().know(self._result, java_list(self._jvm, states), added)

    def decide(self) -> str:
        """Let the stage compute only what was added, if that is enough; return why it is not, else an empty text."""
        return str(self._rows().decide(self._result) or "")

    @property
    def is_notable(self) -> bool:
        """Whether it costs much to compute all of it: if its stage reads added files itself, or joins."""
        return bool(self._rows().isNotable(self._result))


class AppendedShuffle(AppendedStage):
    """A stage that writes a shuffle, which gets the former rows from the exchanges that have written them."""

    def decide(self) -> str:
        why = super().decide()
        if not why:
            self._handle.merged = Once(lambda: self._rebuilder.addedTasks(self._result, self._handle.tasks))
        return why

    def follow(self, exchanges: Sequence[JavaObject], sizes: Sequence[JavaObject]) -> None:
        """Let other exchanges have the former part of the rows, partition by partition.

        Parameters
        ----------
        exchanges : sequence of py4j.java_gateway.JavaObject
            As they ran, oldest first.
        sizes : sequence of py4j.java_gateway.JavaObject
            What each has written (``MapOutputStatistics``).
        """
        self._rebuilder.follow(self._result, java_list(self._jvm, exchanges), java_list(self._jvm, sizes))


class AppendedRelation(AppendedStage):
    """A stage whose rows are kept in an ``InMemoryRelation``, together with the former ones."""

    def follow(self, former: JavaObject) -> None:
        """Let the rows of another ``CachedRDDBuilder`` be kept again, before what is added."""
        self._rebuilder.follow(self._result, former, self._handle.tasks)
