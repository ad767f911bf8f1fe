"""How a graph is to be compiled and run: what every way in (Python, magics, configuration) asks for alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from flinkmagic.errors import RestartStrategyError
from flinkmagic.planning.sinks import DEFAULT_STORAGE_LEVEL
from flinkmagic.scheduling.scheduler_factory import check_scheduler, parse_restart_strategy
from flinkmagic.session.checks import (
    check_parallelism,
    check_retention,
    check_sharing,
    check_storage_level,
)

if TYPE_CHECKING:
    from flinkmagic.planning.sinks import Sharing

NO_RESTART = "none"
NO_RETENTION = "none"


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
    share : {"auto", "always", "never"}
        What several sinks share: what is worth keeping (the default), every DataFrame that is not a bare scan, or
        nothing.
    storage_level : str
        Where the rows of shared DataFrames are kept: the name of one of PySpark's storage levels, by default that of
        `DataFrame.persist`.
    restart : str
        What happens when a task has failed for good: ``none``, ``fixed-delay:ATTEMPTS:DELAY``,
        ``failure-rate:FAILURES:INTERVAL:DELAY`` or ``exponential-delay`` (Flink's `restart-strategy`). By default
        nothing is restarted, as in Flink without checkpoints.
    scheduler : {"default"}
        Which of Flink's schedulers decides (`jobmanager.scheduler`).
    retain : {"none", "job", "session"}
        For whom the results of finished stages are retained: nobody, later runs under the same name (the default),
        all later graphs of the session.
    retain_bytes : int, optional
        How many bytes of results are retained at most, over all graphs of the session; what was not used for the
        longest time goes first. By default the bound stays as it is (8 GiB at first).
    checkpoint_dir : str, optional
        A folder in which is recorded how far a run came, so that another process can take it up.

    Raises
    ------
    InvalidParallelismError
        Where one of the two is no whole number of at least 1.
    InvalidSharingError
        Where `share` is none of its words.
    InvalidStorageLevelError
        Where `storage_level` names none.
    RestartStrategyError
        Where `restart` names no strategy.
    UnknownSchedulerError
        Where `scheduler` names none.
    InvalidRetentionError
        Where `retain` is none of its words, or `retain_bytes` no number of bytes.
    """

    parallelism: int | None = None
    slots: int | None = None
    share: Sharing = "auto"
    storage_level: str = DEFAULT_STORAGE_LEVEL
    restart: str = NO_RESTART
    scheduler: str = "default"
    retain: str = "job"
    retain_bytes: int | None = None
    checkpoint_dir: str | None = None

    def __post_init__(self) -> None:
        for number in (self.parallelism, self.slots):
            if number is not None:
                check_parallelism(number)
        check_sharing(self.share)
        check_storage_level(self.storage_level)
        if not isinstance(self.restart, str):
            raise RestartStrategyError(self.restart)
        parse_restart_strategy(self.restart)
        check_scheduler(self.scheduler)
        check_retention(self.retain, self.retain_bytes)
