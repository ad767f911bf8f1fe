"""Defines stage handles: what deployment needs to run one vertex of a planned job as one Spark stage.

A handle is the ``operator_factory`` of its stage's last operator. The JVM objects behind it are made on first use
(``exchange``, ``plan``, ...), because some can be made only after the stages below have run, and because a plan that is
compiled and never run should cost nothing. Once made, they stay the same objects: a shuffle exchange that is submitted
again keeps its shuffle id, so that Spark runs only what is missing. **A handle holds references to its objects; Spark's
context cleaner can remove the shuffle files only once the handle (and the PlannedJob) is released.**

Common rules for code that runs a stage:

- Use its own thread, with its job group, tags and pool set on it *before* any property that starts jobs is read.
  `StageHandle.starts_jobs_early` says whether reading it does so: the range exchange samples its child when its
  dependency is made, and that sampling belongs to the vertex.
- Run a stage only after the stages that its vertex consumes: reading ``shuffle_dependency`` or executing a plan waits
  for broadcasts and subqueries below, and would start those that have not run.
- ``tasks == 0``: Spark runs no task for this stage (its input has no partitions; Flink has no parallelism 0, so the
  vertex has one subtask). Do not submit a map stage then (Spark refuses one without partitions): it is finished
  immediately. A broadcast, subquery, write or result without tasks is still run, for its effect on the driver.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from flinkmagic.errors.base import InvariantViolatedError
from flinkmagic.planning.adaptive_stages import AS_PLANNED, StageAdaptation

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

    from flinkmagic.planning.user_writes import UserWrite

__all__ = [
    "BoundaryStageHandle",
    "BroadcastStageHandle",
    "CacheStageHandle",
    "ObservedQuery",
    "PipelinedStageHandle",
    "QueryStageHandle",
    "ResultStageHandle",
    "ShuffleMapStageHandle",
    "StageHandle",
    "SubqueryStageHandle",
    "WriteStageHandle",
]


class Once:
    """A JVM object that is made once, when it is first asked for.

    Parameters
    ----------
    make : callable
        Makes it. If it raises, nothing is kept and the next call tries again.
    """

    __slots__ = ("_lock", "_made", "_make")

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make: Callable[[], Any] | None = make
        self._made: Any = None
        self._lock = threading.RLock()

    @classmethod
    def of(cls, value: Any) -> Once:
        """Wrap an object that exists already."""
        return cls(lambda: value)

    def __call__(self) -> Any:
        with self._lock:
            if self._make is not None:
                self._made = self._make()
                self._make = None
            return self._made

    @property
    def is_made(self) -> bool:
        """Whether the object exists."""
        return self._make is None

    def let_go(self) -> None:
        """Release the object for good: it will not be asked for again."""
        with self._lock:
            self._make, self._made = _gone, None


def _gone() -> Any:
    raise InvariantViolatedError("the objects of a stage are asked for before they are released, when its job is over")


class Renewable(Once):
    """A JVM object that can be made again.

    Parameters
    ----------
    renew : callable
        Makes the next `make` return a new object, if it does not do so by itself.
    """

    __slots__ = ("_remake", "_renew")

    def __init__(self, make: Callable[[], Any], renew: Callable[[], None] = lambda: None) -> None:
        super().__init__(make)
        self._remake = make
        self._renew = renew

    def renew(self) -> None:
        with self._lock:
            self._renew()
            self.forget()

    def forget(self) -> None:
        """Make the next call return what is made then; what it is made of was renewed."""
        with self._lock:
            self._make, self._made = self._remake, None

    def let_go(self) -> None:
        with self._lock:
            super().let_go()
            self._remake, self._renew = _gone, _gone


@dataclass(frozen=True, eq=False)
class ObservedQuery:
    """A query of the user's that observes something (`DataFrame.observe`)."""

    query: JavaObject = field(repr=False)
    """Its analysed plan, with Spark's ``CollectMetrics`` in it."""
    metrics: JavaObject = field(repr=False)
    """A Scala function that returns the metrics by name, as far as their operators have run."""


@dataclass(eq=False, kw_only=True)
class StageHandle:
    """One Spark stage, not yet run."""

    is_map_stage: ClassVar[bool] = False
    """Whether Spark runs it as a map stage, the last one of its job."""
    keeps_each_task: ClassVar[bool] = False
    """Whether what a task made stays if another one fails: only those that are missing run again."""
    counts_output: ClassVar[bool] = False
    """Whether Spark counts the rows and bytes that its tasks write."""
    returns_output: ClassVar[bool] = False
    """Whether its rows go to the driver as its tasks' results."""

    name: str
    """Short and readable, such as ``Exchange hashpartitioning(hour)``."""
    tasks: int
    """How many Spark will start for the whole stage; 0 if it will start none."""
    exact: bool = True
    """False if Spark decides the number only when it runs (dynamic partition pruning, a cached plan that runs
    adaptively): then ``tasks`` is what it would be if nothing were pruned or merged."""
    starts_jobs_early: bool = False
    """Whether making the handle's JVM object starts Spark jobs itself."""
    calls_python: bool = False
    """Whether its tasks may wait for Python workers."""
    collected: Callable[[], None] | None = field(repr=False, default=None)
    """For a stage that observes something: call it when the stage is done, whatever runs again of it later."""
    joins: Once = field(repr=False, default_factory=lambda: Once.of(()))
    """A tuple of JoinChoice, for `adaptation`."""
    merged: Once = field(repr=False, default_factory=lambda: Once.of(-1))
    """The number of tasks, for `adaptation`; -1 if it is as planned."""
    row_metrics: Renewable = field(repr=False, default_factory=lambda: Renewable(str))
    """For a stage that reads kept rows, the ids of Spark's metrics by which its sources count rows, separated by
    commas: a task's own metrics count the batches of kept rows. Ask only once the JVM's object is made."""
    upstream: tuple[PipelinedStageHandle, ...] = field(repr=False, default=())
    """The other stages of its pipelined region, which run in the Spark job of this one; set when all exchanges are
    known."""

    @property
    def adaptation(self) -> StageAdaptation:
        """How the stage's run differs from its plan. Ask only once the JVM's object is made."""
        tasks = self.merged()
        return StageAdaptation(self.joins(), None if tasks < 0 else tasks)

    @property
    def known_adaptation(self) -> StageAdaptation:
        """The same if it was asked for before; otherwise as planned."""
        return self.adaptation if self.joins.is_made and self.merged.is_made else AS_PLANNED

    @property
    def session(self) -> JavaObject | None:
        """The Java session on which it was planned; None if any of the job's will do."""
        return None

    def make(self) -> JavaObject:
        """Make the JVM's object, on the thread that runs the stage; if it exists, return it."""
        raise NotImplementedError

    def renew(self) -> None:
        """Prepare another run: what keeps a failure, or what was read, is made anew. No stage above it may have run."""

    def let_go(self) -> None:
        """Release the JVM's objects: the stage will not run again, and what it made is held elsewhere, or gone."""
        self.joins, self.merged, self.collected = Once.of(()), Once.of(-1), None
        self.row_metrics.let_go()


@dataclass(eq=False, kw_only=True)
class ShuffleMapStageHandle(StageHandle):
    """A stage that writes a shuffle.

    Run it: ``sc._jsc.sc().submitMapStage(handle.shuffle_dependency)``. The answer is a ``SimpleFutureAction`` of
    ``MapOutputStatistics``; ``handle.shuffle_dependency.shuffleId()`` names the shuffle, and Spark's stage info carries
    the same id.
    """

    is_map_stage = keeps_each_task = counts_output = True

    output_partitions: int = 1
    """How many partitions the shuffle makes, which is the parallelism of its consumers."""
    written: Callable[[JavaObject], None] | None = field(repr=False, default=None)
    """Takes the ``MapOutputStatistics`` when the shuffle is written: its real size decides how later stages join its
    rows, and with how many tasks they read it."""
    dependency: Once = field(repr=False)

    @property
    def shuffle_dependency(self) -> JavaObject:
        """Spark's ``ShuffleDependency``, always the same object."""
        return self.dependency()

    def make(self) -> JavaObject:
        return self.dependency()

    def let_go(self) -> None:
        super().let_go()
        self.written = None
        self.dependency.let_go()


@dataclass(eq=False, kw_only=True)
class PipelinedStageHandle(StageHandle):
    """A stage whose rows its consumer reads while it writes them: both are stages of one Spark job.

    It is not run by itself, but by the one stage of its pipelined region that has it as `upstream`. Ask for the
    dependency before that stage is run, on the thread that runs it; Spark's stage info carries `shuffle_id`.

    Spark runs a pipelined shuffle once: call `renew_region` before the region is run again.
    """

    counts_output = True

    dependency: Renewable = field(repr=False)

    @property
    def shuffle_dependency(self) -> JavaObject:
        """Spark's ``PipelinedShuffleDependency``, the same object until the region is renewed."""
        return self.dependency()

    def make(self) -> JavaObject:
        return self.dependency()

    def let_go(self) -> None:
        super().let_go()
        self.dependency.let_go()

    @property
    def shuffle_id(self) -> int | None:
        """The number of the shuffle; None if it is not made."""
        return int(self.dependency().shuffleId()) if self.dependency.is_made else None


@dataclass(eq=False, kw_only=True)
class _ReturningStageHandle(StageHandle):
    """A stage whose rows are collected to the driver. Once failed, it would report that failure to every caller."""

    returns_output = True

    made: Renewable = field(repr=False)

    def make(self) -> JavaObject:
        return self.made()

    def renew(self) -> None:
        self.made.renew()

    def let_go(self) -> None:
        super().let_go()
        self.made.let_go()


@dataclass(eq=False, kw_only=True)
class BroadcastStageHandle(_ReturningStageHandle):
    """A stage that is collected to the driver and broadcast.

    Run it: ``future = handle.exchange.relationFuture()``, a ``java.util.concurrent.Future`` that starts immediately on
    Spark's own broadcast threads and inherits the job group, tags and properties of the calling thread; ``get()``
    waits and raises what went wrong. ``handle.exchange.jobTag()`` (4.x; 3.5 uses ``runId()`` as the job group) is the
    tag under which Spark runs it.

    A broadcast that failed stays failed in its exchange: call `renew` before it is run again.
    """

    @property
    def exchange(self) -> JavaObject:
        """Spark's ``BroadcastExchangeExec``, the same object until it is renewed."""
        return self.made()


@dataclass(eq=False, kw_only=True)
class SubqueryStageHandle(_ReturningStageHandle):
    """A stage whose rows are collected to the driver as the value of a subquery.

    Run it: ``handle.subquery.executeCollect()`` blocks until its rows are there (it starts them on Spark's subquery
    threads, which inherit the calling thread's job group). The operator that uses the value fetches it by itself.

    A subquery that failed stays failed: call `renew` before it is run again.
    """

    @property
    def subquery(self) -> JavaObject:
        """Spark's ``SubqueryExec``, the same object until it is renewed."""
        return self.made()


@dataclass(eq=False, kw_only=True)
class QueryStageHandle(StageHandle):
    """A stage that runs as a query, or for one."""

    query_execution: JavaObject = field(repr=False)
    """Planned on the job's clone of the session; for the SQL tab and listeners."""
    made: Renewable = field(repr=False)
    observed: ObservedQuery | None = field(repr=False, default=None)
    """Set if the query of a sink observes something."""

    @property
    def session(self) -> JavaObject:
        return self.query_execution.sparkSession()

    def make(self) -> JavaObject:
        return self.made()

    def let_go(self) -> None:
        super().let_go()
        self.query_execution = self.observed = None
        self.made.let_go()


@dataclass(eq=False, kw_only=True)
class WriteStageHandle(QueryStageHandle):
    """The stage that writes: the write's own command as Spark planned it, or that command over this job's last stage.

    Run it: ``handle.plan.executeCollect()`` inside ``SQLExecution.withNewExecutionId(handle.query_execution, ...)``,
    and call ``handle.user_write.refresh()`` when that has ended, successfully or not. Spark finds earlier stages
    finished and skips them. The command decides about commit, overwrite and success files.
    """

    counts_output = True

    user_write: UserWrite | None = field(repr=False, default=None)

    @property
    def plan(self) -> JavaObject:
        """The physical plan with the command on top, the same object until it is renewed."""
        return self.made()

    def renew(self) -> None:
        """Make the next `plan` read what is kept by then: rows that it read may have been computed again."""
        self.made.renew()
        self.row_metrics.forget()

    def let_go(self) -> None:
        super().let_go()
        self.user_write = None


@dataclass(eq=False, kw_only=True)
class ResultStageHandle(QueryStageHandle):
    """The stage whose rows stay in the session as a DataFrame.

    Run it: ``handle.plan.execute()`` inside ``SQLExecution.withNewExecutionId(...)`` is an ``RDD[InternalRow]`` that
    starts no job of its own; a DataFrame over it (`LogicalRDD`, or ``internalCreateDataFrame(rdd, schema, false)``)
    reads the finished shuffles below.
    """

    keeps_each_task = True

    schema_json: str = ""
    """The user's schema, as ``StructType.fromJson`` reads it."""
    columns: JavaObject | None = field(default=None, repr=False)
    """The attributes of the user's DataFrame; kept when the rest is released."""

    @property
    def plan(self) -> JavaObject:
        """The physical plan of the query, always the same object."""
        return self.made()


@dataclass(eq=False, kw_only=True)
class BoundaryStageHandle(QueryStageHandle):
    """The stage whose rows are kept for the stages of several sinks.

    Run it: a pass over ``handle.relation.cacheBuilder().cachedColumnBuffers()`` (``count()``) computes the rows and
    keeps them as Spark keeps those of a persisted DataFrame; the plans of its consumers read that very relation. Asking
    for the batches may start jobs, as executing any plan may. ``clearCache(False)`` of the builder releases the rows.
    """

    keeps_each_task = True
    is_users: ClassVar[bool] = False
    """Whether the rows are the user's to drop."""

    @property
    def relation(self) -> JavaObject:
        """The ``InMemoryRelation`` of the rows, always over the same builder."""
        return self.made()


@dataclass(eq=False, kw_only=True)
class CacheStageHandle(BoundaryStageHandle):
    """The stage that fills a cache of the user's; run like a boundary's, but the rows are never released by a job."""

    is_users = True


def renew_region(handle: StageHandle) -> None:
    """Make the next run of a stage's pipelined region one of new shuffles."""
    for one in handle.upstream:
        one.dependency.renew()
    if isinstance(handle, WriteStageHandle | ResultStageHandle | BroadcastStageHandle):
        handle.made.forget()
