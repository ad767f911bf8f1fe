"""Defines stage handles: what deployment needs to run one vertex of a planned job as one Spark stage.

A handle is the ``operator_factory`` of its stage's last operator. The JVM objects behind it are made on first use
(`StageHandle.make`), because some can be made only after the stages below have run, and because a plan that is
compiled and never run should cost nothing. Once made, they stay the same objects: a shuffle exchange that is submitted
again keeps its shuffle id, so that Spark runs only what is missing. **A handle holds references to its objects; Spark's
context cleaner can remove the shuffle files only once the handle (and the PlannedJob) is released.**

A kind of handle is a class here, and nothing else: how its stage is run is its `run`, and whatever depends on the kind
elsewhere is a fact of it. Calls of Spark's seen on 3.5.9 and 4.3.0.

Common rules for code that runs a stage:

- Use its own thread, with its job group, tags and pool set on it *before* any property that starts jobs is read.
  `StageHandle.starts_jobs_early` says whether reading it does so: the range exchange samples its child when its
  dependency is made, and that sampling belongs to the vertex.
- Run a stage only after the stages that its vertex consumes: making a shuffle's dependency or executing a plan waits
  for broadcasts and subqueries below, and would start those that have not run.
- ``tasks == 0``: Spark runs no task for this stage (its input has no partitions; Flink has no parallelism 0, so the
  vertex has one subtask). Do not submit a map stage then (Spark refuses one without partitions): it is finished
  immediately. A broadcast, subquery, write or result without tasks is still run, for its effect on the driver.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol

from flinkmagic.errors.base import InvariantViolatedError
from flinkmagic.planning.adaptive_stages import AS_PLANNED, StageAdaptation
from flinkmagic.planning.plan_reader import name_of_run
from flinkmagic.planning.stage_metrics import StageMetrics

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

    from flinkmagic.graph.job_graph import JobVertex
    from flinkmagic.planning.user_writes import UserWrite

ResultKind = Literal["shuffle", "broadcast", "subquery", "boundary", "result", "write", "columns"]
"""What a stage leaves behind for later jobs; columns are those of text sources, which no stage of its own makes."""


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


class StoredRows(NamedTuple):
    """Where Spark stores the rows of a stage that keeps them."""

    builder: JavaObject
    """The ``CachedRDDBuilder``: a pass over its ``cachedColumnBuffers()`` computes and stores the rows."""
    plan: JavaObject
    """The logical plan that reads them: the `LogicalRDD` under which Spark's cache knows them, or a relation."""
    drop: Callable[[], object]
    """Drops the rows; code that still reads them computes them again."""


class StageHost(Protocol):
    """The deployment that runs a handle, as the handle sees it."""

    def write_shuffle(
        self, dependency: JavaObject, written: Callable[[JavaObject], object] | None, ready: Callable[[], None]
    ) -> tuple[int, ...]:
        """Write what is missing of a shuffle, and return the bytes of each partition; none if it has no map tasks.

        Parameters
        ----------
        written : callable or None
            Takes the ``MapOutputStatistics``.
        ready : callable
            Called before anything goes to Spark.
        """

    def batches(self, handle: StageHandle) -> JavaObject:
        """Return the RDD over which a pass computes and keeps the handle's rows; start nothing."""

    def run_query(self, query_execution: JavaObject, name: str | None, target: JavaObject) -> None:
        """Run a plan, or a pass over an RDD, as a query; without a name no listener sees it."""

    def run_users_query(
        self, handle: QueryStageHandle, query: JavaObject, name: str, target: JavaObject, jsession: JavaObject | None
    ) -> None:
        """Do the same as a query of the user's.

        Parameters
        ----------
        query : py4j.java_gateway.JavaObject
            The command or query as it was analysed on the user's line.
        jsession : py4j.java_gateway.JavaObject or None
            The Java session in which the user asked for it; None means that of the job.
        """


@dataclass(eq=False, kw_only=True)
class StageHandle:
    """One Spark stage, not yet run."""

    kind: ClassVar[ResultKind]
    """What it leaves behind for later jobs."""
    is_map_stage: ClassVar[bool] = False
    """Whether Spark runs it as a map stage, the last one of its job."""
    keeps_each_task: ClassVar[bool] = False
    """Whether what a task made stays if another one fails: only those that are missing run again."""
    keeps_rows: ClassVar[bool] = False
    """Whether its rows are kept, by `keep`."""
    counts_output: ClassVar[bool] = False
    """Whether Spark counts the rows and bytes that its tasks write."""
    returns_output: ClassVar[bool] = False
    """Whether its rows go to the driver as its tasks' results."""
    is_committed: ClassVar[bool] = False
    """Whether what it has done stays done outside of Spark, whatever becomes of its job."""
    is_made_again: ClassVar[bool] = False
    """Whether another run needs another object of the JVM's: this one keeps a failure, or what was read."""
    is_measured: ClassVar[bool] = False
    """Whether its operators are measured however short it was: what it returns says what it costs."""
    can_shrink: ClassVar[bool] = False
    """Whether Spark, if the driver loses the object of its rows, makes it again of their blocks (`DriverBroadcast`)."""

    name: str
    """Short and readable, such as ``Exchange hashpartitioning(hour)``."""
    tasks: int
    """How many Spark will start for the whole stage; 0 if it will start none."""
    made: Renewable = field(repr=False)
    """The JVM's object, see `make`."""
    exact: bool = True
    """False if Spark decides the number only when it runs (dynamic partition pruning, a cached plan that runs
    adaptively): then ``tasks`` is what it would be if nothing were pruned or merged."""
    starts_jobs_early: bool = False
    """Whether making the handle's JVM object starts Spark jobs itself."""
    calls_python: bool = False
    """Whether its tasks may wait for Python workers."""
    collected: Callable[[], None] | None = field(repr=False, default=None)
    """For a stage that observes something: call it when the stage is done, whatever runs again of it later."""
    clean_up: Callable[[], None] | None = field(repr=False, default=None)
    """For a stage whose operators store rows of their own: call it when a run is over, as adaptive Spark does."""
    observed: ObservedQuery | None = field(repr=False, default=None)
    """Set if it is the stage of a sink whose query observes something."""
    written: Callable[[JavaObject], object] | None = field(repr=False, default=None)
    """For an exchange, takes the ``MapOutputStatistics`` when it is written: its real size decides how later stages
    join its rows, and with how many tasks they read it."""
    columns: JavaObject | None = field(repr=False, default=None)
    """Of rows that stay in the session, the attributes of the user's DataFrame; kept when the rest is released."""
    joins: Once = field(repr=False, default_factory=lambda: Once.of(()))
    """A tuple of JoinChoice, for `adaptation`."""
    merged: Once = field(repr=False, default_factory=lambda: Once.of(-1))
    """The number of tasks, for `adaptation`; -1 if it is as planned."""
    row_metrics: Renewable = field(repr=False, default_factory=lambda: Renewable(str))
    """For a stage that reads kept rows, the ids of Spark's metrics by which its sources count rows, separated by
    commas: a task's own metrics count the batches of kept rows. Ask only once the JVM's object is made."""
    above: Mapping[str, Any] = field(repr=False, default_factory=dict)
    """The metadata of the exchange, or subquery, that its rows go through (see `OperatorLabel`)."""
    metrics: Callable[[], StageMetrics] = field(repr=False, default=StageMetrics)
    """What its operators have measured. Ask when it has run."""
    added_files: int = 0
    """How many files were added, if only these are read, and their rows added to those of an earlier job."""
    upstream: tuple[PipelinedStageHandle, ...] = field(repr=False, default=())
    """The other stages of its pipelined region, which run in the Spark job of this one; set when all exchanges are
    known."""

    @property
    def adaptation(self) -> StageAdaptation:
        """How the stage's run differed from its plan. Ask only once the JVM's object is made."""
        tasks = self.merged()
        return StageAdaptation(self.joins(), None if tasks < 0 else tasks, self.added_files)

    @property
    def known_adaptation(self) -> StageAdaptation:
        """The same if it was asked for before; otherwise as planned."""
        return self.adaptation if self.joins.is_made and self.merged.is_made else AS_PLANNED

    @property
    def session(self) -> JavaObject | None:
        """The Java session on which it was planned; None if any of the job's will do."""
        return None

    @property
    def slots(self) -> int:
        """How many slots its pipelined region needs simultaneously: Spark runs one task in a slot."""
        return sum(max(1, one.tasks) for one in (self, *self.upstream))

    @property
    def ends_its_job(self) -> bool:
        """Whether the last stage of its Spark job is it, however many tasks that has."""
        return self.is_map_stage or not self.exact

    def make(self) -> JavaObject:
        """Make the JVM's object, on the thread that runs the stage; if it exists, return it."""
        return self.made()

    def run(self, host: StageHost, ready: Callable[[], None]) -> tuple[int, ...] | None:
        """Run the stage to its end on the calling thread; return the bytes of each partition of what it shuffles.

        Parameters
        ----------
        ready : callable
            Called before anything goes to Spark; it may raise.
        """
        raise InvariantViolatedError(f"only stages are run that run by themselves, and not {self.name!r}")

    def keep(self, level: JavaObject | None) -> StoredRows:
        """Give the rows a place where Spark stores them when they are computed; start nothing.

        Parameters
        ----------
        level : py4j.java_gateway.JavaObject or None
            Of a result that Spark's cache is not to know; None lets that cache keep it. A boundary's relation has one.
        """
        raise InvariantViolatedError(f"only rows are kept of kinds that store them, and not those of {self.name!r}")

    def taken_up(self, plan: JavaObject) -> JavaObject:
        """Return the plan that reads rows which an earlier job has kept, and read by `plan`."""
        return plan

    def renew(self) -> None:
        """Prepare another run, of its pipelined region too. No stage above it may have run."""
        for one in self.upstream:
            one.made.renew()
        if self.upstream:
            self.made.forget()
        elif self.is_made_again:
            self.made.renew()
        self.row_metrics.forget()

    def let_go(self) -> None:
        """Release the JVM's objects: the stage will not run again, and what it made is held elsewhere, or gone."""
        self.joins, self.merged = Once.of(()), Once.of(-1)
        self.collected = self.clean_up = self.observed = self.written = None
        self.metrics = StageMetrics
        self.row_metrics.let_go()
        self.made.let_go()


@dataclass(eq=False, kw_only=True)
class ShuffleMapStageHandle(StageHandle):
    """A stage that writes a shuffle.

    It makes Spark's ``ShuffleDependency``, always the same object; Spark's stage info carries its ``shuffleId()``.
    """

    kind = "shuffle"
    is_map_stage = keeps_each_task = counts_output = True

    output_partitions: int = 1
    """How many partitions the shuffle makes, which is the parallelism of its consumers."""

    def run(self, host: StageHost, ready: Callable[[], None]) -> tuple[int, ...]:
        sizes = host.write_shuffle(self.make(), self.written, ready) if self.tasks else ()
        return sizes or (0,) * self.output_partitions


@dataclass(eq=False, kw_only=True)
class PipelinedStageHandle(StageHandle):
    """A stage whose rows its consumer reads while it writes them: both are stages of one Spark job.

    It is not run by itself, but by the one stage of its pipelined region that has it as `upstream`. Make its
    ``PipelinedShuffleDependency`` before that stage is run, on the thread that runs it; Spark's stage info carries
    `shuffle_id`. Spark runs a pipelined shuffle once: it is another object when the region is renewed.
    """

    counts_output = True

    @property
    def shuffle_id(self) -> int | None:
        """The number of the shuffle; None if it is not made."""
        return int(self.made().shuffleId()) if self.made.is_made else None


@dataclass(eq=False, kw_only=True)
class BroadcastStageHandle(StageHandle):
    """A stage that is collected to the driver and broadcast.

    It makes Spark's ``BroadcastExchangeExec``, whose future runs on Spark's own broadcast threads under the job group,
    tags and properties of the calling thread. A broadcast that failed stays failed in its exchange.
    """

    kind = "broadcast"
    returns_output = is_made_again = is_measured = can_shrink = True

    def run(self, host: StageHost, ready: Callable[[], None]) -> None:
        ready()
        self.make().relationFuture().get()


@dataclass(eq=False, kw_only=True)
class SubqueryStageHandle(StageHandle):
    """A stage whose rows are collected to the driver as the value of a subquery.

    It makes Spark's ``SubqueryExec``, whose rows are collected on Spark's subquery threads under the calling thread's
    job group. The operator that uses the value fetches it by itself. A subquery that failed stays failed.
    """

    kind = "subquery"
    returns_output = is_made_again = True

    def run(self, host: StageHost, ready: Callable[[], None]) -> None:
        ready()
        self.make().executeCollect()


@dataclass(eq=False, kw_only=True)
class QueryStageHandle(StageHandle):
    """A stage that runs as a query, or for one."""

    query_execution: JavaObject = field(repr=False)
    """Planned on the job's clone of the session; for the SQL tab and listeners."""

    @property
    def session(self) -> JavaObject:
        return self.query_execution.sparkSession()

    def let_go(self) -> None:
        super().let_go()
        self.query_execution = None


@dataclass(eq=False, kw_only=True)
class WriteStageHandle(QueryStageHandle):
    """The stage that writes: the write's own command as Spark planned it, or that command over this job's last stage.

    It makes the physical plan with the command on top, which reads what is kept by then. Spark finds earlier stages
    finished and skips them. The command decides about commit, overwrite and success files.
    """

    kind = "write"
    counts_output = is_committed = is_made_again = True

    user_write: UserWrite | None = field(repr=False)
    """None once it is released."""

    def run(self, host: StageHost, ready: Callable[[], None]) -> None:
        user = self.user_write
        assert user is not None
        ready()
        user.prepare(self.session)
        try:
            host.run_users_query(self, user.command, user.query_name, self.make(), user.spark._jsparkSession)
        finally:
            user.refresh()

    def let_go(self) -> None:
        super().let_go()
        self.user_write = None


@dataclass(eq=False, kw_only=True)
class ResultStageHandle(QueryStageHandle):
    """The stage whose rows stay in the session as a DataFrame.

    It makes the physical plan of the query, always the same object, whose RDD reads the finished shuffles below.
    """

    kind = "result"
    keeps_each_task = keeps_rows = True

    schema_json: str = ""
    """The user's schema, as ``StructType.fromJson`` reads it."""
    relation: Callable[[JavaObject], JavaObject] = field(repr=False)
    """Makes an ``InMemoryRelation`` of its rows for a storage level."""
    prunes_exactly: Callable[[JavaObject], JavaObject] = field(repr=False)
    """Keeps filters from losing rows of an ``InMemoryRelation`` (see ``ExactBatchSerializer.java``)."""

    def run(self, host: StageHost, ready: Callable[[], None]) -> None:
        """Compute and keep the rows, as a query of the user's session."""
        batches = host.batches(self)
        if self.upstream:
            # A job that reads the rows must not find the shuffles behind them: they are gone with this one.
            batches.localCheckpoint()
        ready()
        query = self.query_execution.logical() if self.observed is None else self.observed.query
        host.run_users_query(self, query, "collect", batches, None)

    def keep(self, level: JavaObject | None) -> StoredRows:
        if level is not None:
            relation = self.relation(level)
            builder = relation.cacheBuilder()
            return StoredRows(builder, relation, partial(builder.clearCache, False))
        session = self.session
        schema = session.parseDataType(self.schema_json)
        dataset = session.internalCreateDataFrame(self.make().execute(), schema, False)
        dataset.persist()
        cache = session.sharedState().cacheManager()
        builder = self.prunes_exactly(cache.lookupCachedData(dataset).get().cachedRepresentation()).cacheBuilder()
        builder.cachedColumnBuffers().setName(name_of_run("result"))
        return StoredRows(builder, dataset.queryExecution().logical(), dataset.unpersist)

    def let_go(self) -> None:
        super().let_go()
        self.relation = lambda _level: _gone()


@dataclass(eq=False, kw_only=True)
class BoundaryStageHandle(QueryStageHandle):
    """The stage whose rows are kept for the stages of several sinks.

    It makes the ``InMemoryRelation`` of the rows, always over the same builder; the plans of its consumers read that
    very relation. Asking for its batches may start jobs, as executing any plan may. The query is not the user's.
    """

    kind = "boundary"
    keeps_each_task = keeps_rows = True

    def run(self, host: StageHost, ready: Callable[[], None]) -> None:
        batches = host.batches(self)
        ready()
        host.run_query(self.query_execution, None, batches)

    def keep(self, level: JavaObject | None) -> StoredRows:
        relation = self.make()
        builder = relation.cacheBuilder()
        return StoredRows(builder, relation, partial(builder.clearCache, False))

    def taken_up(self, plan: JavaObject) -> JavaObject:
        return self.make()


@dataclass(eq=False, kw_only=True)
class CacheStageHandle(BoundaryStageHandle):
    """The stage that fills a cache of the user's; run like a boundary's, but the rows are the user's to drop."""

    def keep(self, level: JavaObject | None) -> StoredRows:
        return super().keep(level)._replace(drop=lambda: None)


def stage_handle(vertex: JobVertex) -> StageHandle | None:
    """Return the handle of a vertex's stage; None if the stage is another vertex's."""
    handle = vertex.operator_factory
    return handle if isinstance(handle, StageHandle) else None
