"""Counts how many tasks the session's executors run simultaneously."""

from __future__ import annotations

from typing import TYPE_CHECKING

from py4j.protocol import Py4JError

from flinkmagic.deployment.watching.task_events import ExecutorAdded, ExecutorRemoved
from flinkmagic.jvm.contexts import jvm_context
from flinkmagic.jvm.java import items

if TYPE_CHECKING:
    from pyspark import SparkContext


class SessionSlots:
    """The slots of each executor: its cores by ``spark.task.cpus``; kept up to date by the events of running jobs."""

    UNKNOWN = 1_000_000
    """The slots of an executor that is not known yet: no limit."""

    def __init__(self, sc: SparkContext) -> None:
        self._sc = sc
        self._cpus_per_task = int(sc._conf.get("spark.task.cpus", "1") or 1)
        self._is_local = bool(jvm_context(sc).isLocal())
        self._of: dict[str, int] = {}
        self.refresh()

    def refresh(self) -> None:
        """Read the slots again: no events arrive while no job runs. Those of local mode never change."""
        if self._is_local and self._of:
            return
        summaries = items(jvm_context(self._sc).statusStore().executorList(True))
        self._of = {summary.id(): int(summary.maxTasks()) for summary in summaries}

    @property
    def total(self) -> int:
        """All slots, at least one: the first executor may be on its way."""
        return max(1, sum(self._of.values()))

    def of(self, executor: str) -> int:
        """Return the slots of one executor."""
        return self._of.get(executor, self.UNKNOWN)

    def is_active(self, executor: str) -> bool:
        """Return whether Spark still has an executor, by its status store; False also if Spark is gone."""
        try:
            return bool(jvm_context(self._sc).statusStore().executorSummary(executor).isActive())
        except (Py4JError, OSError, AttributeError):
            return False

    def take(self, event: ExecutorAdded | ExecutorRemoved) -> None:
        """Record an executor that came or went."""
        if isinstance(event, ExecutorAdded):
            self._of[event.executor] = event.cores // self._cpus_per_task
        else:
            self._of.pop(event.executor, None)
