"""Lets a shuffle consist of what earlier jobs have written of it, and of what is added to that (``AppendedRows.java``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from flinkmagic.jvm.java import java_list
from flinkmagic.planning.stage_handles import Once

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext

    from flinkmagic.planning.stage_handles import StageHandle


class AppendedShuffle:
    """A shuffle of a planned job.

    Parameters
    ----------
    rebuilder : py4j.java_gateway.JavaObject
        The job's ``PlanRebuilder``.
    rows : callable
        Returns the job's ``AppendedRows``.
    plan : py4j.java_gateway.JavaObject
        The exchange as it was planned.
    handle : StageHandle
        That of the stage below it.
    """

    def __init__(
        self,
        sc: SparkContext,
        rebuilder: JavaObject,
        rows: Callable[[], JavaObject],
        plan: JavaObject,
        handle: StageHandle,
    ) -> None:
        self._jvm, self._rebuilder, self._rows, self._plan, self._handle = sc._jvm, rebuilder, rows, plan, handle

    def follow(self, exchanges: Sequence[JavaObject], sizes: Sequence[JavaObject]) -> None:
        """Let other exchanges have the former part of the rows, partition by partition.

        Parameters
        ----------
        exchanges : sequence of py4j.java_gateway.JavaObject
            As they ran, oldest first.
        sizes : sequence of py4j.java_gateway.JavaObject
            What each has written (``MapOutputStatistics``).
        """
        self._rebuilder.follow(self._plan, java_list(self._jvm, exchanges), java_list(self._jvm, sizes))

    def know(self, states: Sequence[JavaObject], added: JavaObject | None) -> None:
        """Tell from which files the rows of these exchanges are, and what was added since.

        Parameters
        ----------
        states : sequence of py4j.java_gateway.JavaObject
            By exchange that was written the digests of the files that it and the former ones hold, by index.
        added : py4j.java_gateway.JavaObject or None
            `Growth.added`; None if nothing was.
        """
        self._rows().former(self._plan, java_list(self._jvm, states), added)

    def decide(self) -> str:
        """Let the stage compute only what was added, if that is enough; return why it is not, else an empty text."""
        why = self._rows().decide(self._plan)
        if why is not None:
            return str(why)
        self._handle.merged = Once(lambda: self._rebuilder.addedTasks(self._plan, self._handle.tasks))
        return ""

    @property
    def is_notable(self) -> bool:
        """Whether it costs much to compute all of it: if its stage reads added files itself, or joins."""
        return bool(self._rows().isNotable(self._plan))
