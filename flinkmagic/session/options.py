"""How a graph is to be compiled and run: what every way in (Python, magics, configuration) asks for alike."""

from __future__ import annotations

from dataclasses import dataclass

from flinkmagic.errors import RestartStrategyError
from flinkmagic.scheduling.scheduler_factory import parse_restart_strategy
from flinkmagic.session.checks import check_parallelism

NO_RESTART = "none"


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
    restart : str
        What happens when a task has failed for good: ``none``, ``fixed-delay:ATTEMPTS:DELAY``,
        ``failure-rate:FAILURES:INTERVAL:DELAY`` or ``exponential-delay`` (Flink's `restart-strategy`). By default
        nothing is restarted, as in Flink without checkpoints.

    Raises
    ------
    InvalidParallelismError
        Where one of the two is no whole number of at least 1.
    RestartStrategyError
        Where `restart` names no strategy.
    """

    parallelism: int | None = None
    slots: int | None = None
    restart: str = NO_RESTART

    def __post_init__(self) -> None:
        for number in (self.parallelism, self.slots):
            if number is not None:
                check_parallelism(number)
        if not isinstance(self.restart, str):
            raise RestartStrategyError(self.restart)
        parse_restart_strategy(self.restart)
