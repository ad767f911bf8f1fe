"""Keeps the rows of a superstep without the lineage that made them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flinkmagic.jvm.java import items, simple_name
from flinkmagic.planning.user_caches import dataset_id_of

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame

    from flinkmagic.session.job import Job


_held: list[tuple[JavaObject, list[SuperstepRows]]] = []
"""The rows that results of loops read, each with a weak reference to the plan on which every use is built."""


class SuperstepRows:
    """The kept rows of one superstep.

    Until `cut` is called, Spark computes lost blocks again from the rows of the superstep before, which must be held so
    long. After it the RDDs of the superstep can be garbage-collected, and no later one walks through them.
    """

    def __init__(self, job: Job, name: str) -> None:
        self._job = job
        self.frame: DataFrame = job.result(name)

    def cut(self) -> None:
        """Cut the lineage; missing blocks are computed now.

        ``RDD.localCheckpoint`` does this when a job ends, but has to be requested before the first job.
        """
        rows = self._buffers()
        rows.localCheckpoint()
        rows.checkpointData().get().checkpoint()

    def release(self) -> None:
        """Release the rows."""
        self._job.release()

    def dataset_id(self) -> str:
        """Return the id of the rows as a persistent result in a graph."""
        return dataset_id_of(self.frame.sparkSession, self._builder())

    def _buffers(self) -> Any:
        return self._builder().cachedColumnBuffers()

    def _builder(self) -> Any:
        leaves = items(self.frame._jdf.queryExecution().withCachedData().collectLeaves())
        [relation] = [leaf for leaf in leaves if simple_name(leaf) == "InMemoryRelation"]
        return relation.cacheBuilder()


def hold(result: DataFrame, rows: list[SuperstepRows]) -> None:
    """Hold rows as long as something in the JVM is made from a DataFrame; release those whose DataFrames are gone."""
    release_unused()
    jvm = result.sparkSession._jvm
    assert jvm is not None
    weak = jvm.java.lang.ref.WeakReference
    _held.append((weak(result._jdf.queryExecution().analyzed()), rows))


def release_unused() -> None:
    """Release the rows of results that are gone."""
    for one in _held[:]:
        plan, rows = one
        is_stopped = rows[0].frame.sparkSession.sparkContext._jsc is None if rows else True
        if is_stopped or plan.get() is None:
            _held.remove(one)
            for each in rows:
                each.release()
