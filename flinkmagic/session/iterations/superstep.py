"""A superstep of a loop: its graph, its rows, and how it went."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from flinkmagic.jvm.contexts import jvm_context
from flinkmagic.jvm.java import execution_of, items, simple_name
from flinkmagic.options import DEFAULT_STORAGE_LEVEL, JobOptions
from flinkmagic.planning.run_origin import RunOrigin
from flinkmagic.planning.user_caches import dataset_id_of
from flinkmagic.reuse.result_keys import NoKey, ResultKey, ResultKeys
from flinkmagic.session.compiled_graph import CompiledGraph

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext
    from pyspark.sql import DataFrame

    from flinkmagic.capturing.program import Program
    from flinkmagic.planning.clones import KeptClones
    from flinkmagic.session.job import Job


STATE = "state"
"""What the result of a superstep is called."""

MOST_ROWS, MOST_BYTES = 1000, 2**16
"""Of a state that the driver holds for the next superstep: a task gets its part of the rows with its code."""


class SuperstepGraph(CompiledGraph):
    """A compiled superstep; its only result is the input of the next one."""

    def __init__(self, program: Program, name: str, options: JobOptions, clones: KeptClones) -> None:
        began = time.monotonic()
        level = _result_level(program.spark.sparkContext, options)
        super().__init__(program, name, options, RunOrigin(is_line=True, result_level=level, clones=clones))
        self.planning_seconds = time.monotonic() - began

    @property
    def partitions(self) -> int:
        """How many partitions its rows are planned to have."""
        return self._vertex_of(self.sinks[0]).parallelism

    def key(self) -> ResultKey | NoKey:
        """Return the key of its rows. Ask before it runs."""
        planned = self._unused_plan
        assert planned is not None
        [result] = [one for one in planned.results if one.kind == "result"]
        return ResultKeys(self.spark.sparkContext, planned.relations).of_result(result)


def _result_level(sc: SparkContext, options: JobOptions) -> str:
    """Choose a level with a second copy if executors may be lost: the superstep before the last has no lineage."""
    if options.storage_level != DEFAULT_STORAGE_LEVEL or jvm_context(sc).isLocal():
        return options.storage_level
    return "MEMORY_AND_DISK_2"


_held: list[tuple[JavaObject, list[SuperstepRows]]] = []
"""The rows that results of loops read, each with a weak reference to the plan on which every use is built."""


class SuperstepRows:
    """The kept rows of one superstep.

    Until `cut` is called, Spark computes lost blocks again from the rows of the superstep before, which must be held so
    long. After it the RDDs of the superstep can be garbage-collected, and no later one walks through them.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        local = job.local_result(STATE, MOST_ROWS, MOST_BYTES)
        self.is_local = local is not None
        """Whether `state` reads a copy that the driver holds."""
        self.state: DataFrame = self.frame if local is None else local
        """What the next superstep reads."""

    @property
    def frame(self) -> DataFrame:
        """A DataFrame over them."""
        return self._job.result(STATE)

    def cut(self) -> None:
        """Cut the lineage; missing blocks are computed now.

        ``RDD.localCheckpoint`` does this when a job ends, but has to be requested before the first job.
        """
        rows = self._builder().cachedColumnBuffers()
        rows.localCheckpoint()
        rows.checkpointData().get().checkpoint()

    def release(self) -> None:
        """Release the rows."""
        self._job.release()

    def dataset_id(self) -> str:
        """Return the id of the rows as a persistent result in a graph."""
        return dataset_id_of(self.frame.sparkSession, self._builder())

    def _builder(self) -> Any:
        leaves = items(execution_of(self.frame).withCachedData().collectLeaves())
        [relation] = [leaf for leaf in leaves if simple_name(leaf) == "InMemoryRelation"]
        return relation.cacheBuilder()


def hold(result: DataFrame, rows: list[SuperstepRows]) -> None:
    """Hold rows as long as something in the JVM is made from a DataFrame; release those whose DataFrames are gone."""
    release_unused()
    jvm = result.sparkSession._jvm
    assert jvm is not None
    weak = jvm.java.lang.ref.WeakReference
    _held.append((weak(execution_of(result).analyzed()), rows))


def release_unused() -> None:
    """Release the rows of results that are gone."""
    for one in _held[:]:
        plan, rows = one
        is_stopped = rows[0].frame.sparkSession.sparkContext._jsc is None if rows else True
        if is_stopped or plan.get() is None:
            _held.remove(one)
            for each in rows:
                each.release()


@dataclass(frozen=True)
class Superstep:
    """How one superstep went."""

    number: int
    """From 1."""
    seconds: float
    """From the call of the step to the end of `until`."""
    planning_seconds: float
    """The part of `seconds` in which it was compiled."""
    tasks: int
    measures: Mapping[str, Any] = field(default_factory=dict)
    """What `until` has returned, column by column."""
