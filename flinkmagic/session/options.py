"""How a graph is to be compiled and run: what every way in (Python, magics, configuration) asks for alike."""

from __future__ import annotations

from dataclasses import dataclass

from flinkmagic.session.checks import check_parallelism


@dataclass(frozen=True, kw_only=True)
class JobOptions:
    """The options of a graph and of its runs, checked.

    Attributes
    ----------
    parallelism : int, optional
        How many partitions shuffles make. By default the smaller of ``spark.sql.shuffle.partitions`` and twice the
        slots.
    slots : int, optional
        How many slots the job's vertices may hold side by side. By default all of the session's cores.

    Raises
    ------
    InvalidParallelismError
        Where one of the two is no whole number of at least 1.
    """

    parallelism: int | None = None
    slots: int | None = None

    def __post_init__(self) -> None:
        for number in (self.parallelism, self.slots):
            if number is not None:
                check_parallelism(number)
