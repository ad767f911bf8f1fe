"""What Spark's status store says of the jobs of a session that has run thousands of them for other tests."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession


class StatusStore:
    """The jobs of a session's context.

    Parameters
    ----------
    spark : SparkSession
        The session. Its status store must keep all jobs.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._sc = spark.sparkContext._jsc.sc()
        self.store = self._sc.statusStore()

    def settle(self) -> None:
        """Wait until the store has been told all that has happened."""
        self._sc.listenerBus().waitUntilEmpty()

    def jobs(self) -> int:
        """How many jobs there have been since the context started."""
        self.settle()
        return int(self.store.jobsList(None).size())

    def since(self, jobs: int) -> list[Any]:
        """The jobs that there have been since there were so many: each question to the store takes time."""
        self.settle()
        newest_first = self.store.jobsList(None)
        return [newest_first.apply(place) for place in range(newest_first.size() - jobs)]
