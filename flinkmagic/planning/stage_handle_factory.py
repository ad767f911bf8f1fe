"""Makes the handles of stages: connects what was planned with the plans that run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict

from flinkmagic.capturing.writes.write_commands import is_observed
from flinkmagic.jvm.java import logical_plan, query_execution
from flinkmagic.planning.adaptive_stages import JOINS, join_choices
from flinkmagic.planning.appended_stages import AppendedRelation, AppendedShuffle
from flinkmagic.planning.java_classes import CLASSES
from flinkmagic.planning.partitions import PartitionCount, PartitionCounts
from flinkmagic.planning.plan_reader import (
    CACHED_SCAN,
    COLLECT_METRICS,
    DISTRIBUTED_SEQUENCE,
    FILE_SCAN,
    LOCAL_SCAN,
    MAY_CALL_PYTHON,
    PYTHON_OPERATORS,
    REUSED_EXCHANGE,
    SHUFFLE_EXCHANGE,
    PlanForest,
    PlanNode,
    name_of_run,
)
from flinkmagic.planning.requests import INTO_RELATION
from flinkmagic.planning.stage_handles import (
    BoundaryStageHandle,
    BroadcastStageHandle,
    CacheStageHandle,
    ObservedQuery,
    Once,
    PipelinedStageHandle,
    Renewable,
    ResultStageHandle,
    ShuffleMapStageHandle,
    StageHandle,
    SubqueryStageHandle,
    WriteStageHandle,
)
from flinkmagic.planning.stage_metrics import StageMetrics
from flinkmagic.planning.stage_results import StageResult
from flinkmagic.planning.user_writes import user_write, writes_files

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame

    from flinkmagic.planning.boundaries import Boundary
    from flinkmagic.planning.requests import SinkRequest
    from flinkmagic.planning.translation import Stage

_EXCHANGES = frozenset({SHUFFLE_EXCHANGE, REUSED_EXCHANGE})
_MERGED = _EXCHANGES | {CACHED_SCAN}
"""What a stage may read with fewer tasks than it has partitions."""


class _StageFacts(TypedDict):
    """What the handles of all kinds are told about the operators of their stage; see `StageHandle`."""

    starts_jobs_early: bool
    calls_python: bool
    collected: Callable[[], None] | None
    clean_up: Callable[[], None] | None
    joins: Once
    row_metrics: Renewable
    metrics: Callable[[], StageMetrics]


class StageHandleFactory:
    """The handles of one job, over plans in which equal exchanges are one.

    The plans are rebuilt when a handle is first asked for its objects, and each node once.
    """

    def __init__(self, forest: PlanForest, counts: PartitionCounts) -> None:
        self._forest = forest
        self._counts = counts
        self._rebuilder = CLASSES.new_instance(forest.sc._gateway, "PlanRebuilder")
        self._appended = Once(lambda: CLASSES.new_instance(forest.sc._gateway, "AppendedRows", self._rebuilder))
        self._metrics = CLASSES.new_instance(forest.sc._gateway, "ObservedMetrics")
        self._stage_metrics: Any = CLASSES.shared_instance(forest.sc._gateway, "StageMetrics")

        self._scans: Any = None

        self.results: list[StageResult] = []
        """What the stages leave behind for later jobs; what is part of a cache of the user's belongs to the cache."""

    def scan_by(self, scans: JavaObject) -> None:
        """Make the plans that run read files by kept slices of them (a ``KeptSlices.Reading``)."""
        self._scans = scans
        self._rebuilder.scanBy(scans)

    def _note_planned(self, plan: JavaObject, optimized: JavaObject) -> None:
        self._rebuilder.planned(plan, optimized)
        if self._scans is not None:
            self._scans.planned(plan, optimized)

    def share(self, node: PlanNode, first: PlanNode) -> None:
        """Make the plans that run use the rows of `first` in place of `node`."""
        self._rebuilder.share(self._forest.jvm_node(node), self._forest.jvm_node(first))

    def of_exchange(self, node: PlanNode, stage: Stage, rows: PartitionCount) -> StageHandle:
        """Return the handle of the stage below an exchange or a subquery."""
        plan = self._forest.jvm_node(node)
        computed = partial(self._rebuilder.exchange if node.is_exchange else self._rebuilder.rebuild, plan)
        merged = self._merged(self._rebuilder.mergedTasks, plan, stage)
        handle: StageHandle
        if node.kind == SHUFFLE_EXCHANGE:
            handle = ShuffleMapStageHandle(
                name=node.name,
                tasks=rows.number,
                exact=rows.exact,
                **self._facts(stage, plan, starts_jobs=node.is_sampled),
                merged=merged,
                output_partitions=node.partitions or 0,
                written=partial(self._rebuilder.written, plan),
                made=Renewable(lambda: computed().shuffleDependency()),
            )
        else:
            kind = BroadcastStageHandle if node.is_exchange else SubqueryStageHandle
            is_on_driver = node.is_exchange and not stage.cached and node.children[0].kind == LOCAL_SCAN  # `DriverRows`
            handle = kind(
                name=node.name,
                tasks=0 if is_on_driver else rows.number,
                # A scalar subquery takes two rows, partition after partition.
                exact=rows.exact and (node.is_exchange or rows.number <= 1),
                **self._facts(stage, plan),
                merged=merged,
                made=Renewable(computed, partial(self._rebuilder.renew, plan)),
            )
        if not stage.cached:
            self._note(handle, plan, computed, self._rebuilder.adopt, is_shuffle=node.kind == SHUFFLE_EXCHANGE)
        return handle

    def _note(
        self,
        handle: StageHandle,
        plan: JavaObject,
        computed: Callable[[], JavaObject],
        adopt: Callable[[JavaObject, JavaObject], None],
        *,
        is_shuffle: bool = False,
    ) -> None:
        appended = None
        if is_shuffle:
            appended = AppendedShuffle(self._forest.sc, self._rebuilder, self._appended, plan, handle)
        self.results.append(
            StageResult(handle, plan, computed=computed, adopt=lambda earlier: adopt(plan, earlier), appended=appended)
        )

    def note_sink(self, handle: StageHandle, request: SinkRequest, query: PlanNode, index: int) -> None:
        """Remember which rows a sink writes or keeps, and under which names."""
        plan, target = self._forest.jvm_node(query), ""
        if request.write is not None and writes_files(request.write):
            target = request.write.facts.target.path or ""
        self.results.append(StageResult(handle, plan, request.rows_names, index, target))

    def pipeline(self, node: PlanNode, blocking: StageHandle) -> PipelinedStageHandle:
        """Return the handle that replaces one of an exchange: its consumer is to read while it is written."""
        jvm_node = self._forest.jvm_node(node)
        self._rebuilder.pipeline(jvm_node)
        # No later job can read its rows.
        self.results = [result for result in self.results if result.handle is not blocking]
        return PipelinedStageHandle(
            name=blocking.name,
            tasks=blocking.tasks,
            exact=blocking.exact,
            calls_python=blocking.calls_python,
            above=blocking.above,
            metrics=blocking.metrics,
            made=Renewable(
                lambda: self._rebuilder.pipelinedDependency(jvm_node), lambda: self._rebuilder.renewPipelined(jvm_node)
            ),
        )

    def reads_shuffle(self, leaf: PlanNode) -> bool:
        """Return whether the RDD of a leaf, as the user gave it, is made through shuffles."""
        exchanges: Any = CLASSES.shared_instance(self._forest.sc._gateway, "PipelinedExchanges")
        return bool(exchanges.readsShuffle(self._forest.jvm_node(leaf)))

    def hidden_shuffle(self, node: PlanNode, stage: Stage, rows: PartitionCount) -> ShuffleMapStageHandle:
        """Return the handle of the stage before a shuffle that an operator makes by itself."""
        jvm_node = self._forest.jvm_node(node)
        self._rebuilder.hide(jvm_node)
        handle = ShuffleMapStageHandle(
            name=node.name,
            tasks=rows.number,
            exact=rows.exact,
            **self._facts(stage),
            output_partitions=1,
            made=Renewable(lambda: self._rebuilder.shuffleOf(jvm_node)),
        )
        computed = partial(self._rebuilder.rebuild, jvm_node)
        self._note(handle, jvm_node, computed, self._rebuilder.adoptHidden)
        return handle

    def of_write(
        self, request: SinkRequest, query_execution: JavaObject, plan: JavaObject, stage: Stage, tasks: int
    ) -> WriteStageHandle:
        """Return the handle of a write: `plan` has the command on top, or is the plan of the query that it hides."""
        assert request.write is not None
        make: Callable[[], JavaObject] = partial(self._rebuilder.query, plan)
        self._rebuilder.writes(plan)
        self._note_planned(plan, query_execution.optimizedPlan())
        if request.command is not None:
            command, session = request.command, query_execution.sparkSession()
            query_execution = self._planned(session, command)
            make = partial(self._over_rows, command, plan, session)
        return WriteStageHandle(
            name=request.name,
            tasks=max(1, tasks),  # a write of nothing still runs one task, for an empty file with the schema
            # What a source does with its rows is its own affair.
            exact=self._exact(stage) and request.command is None,
            **self._facts(
                stage,
                plan if request.command is None else None,
                calls_python=request.write.kind in INTO_RELATION,
            ),
            merged=self._merged(self._rebuilder.mergedTasksOfQuery, plan, stage),
            query_execution=query_execution,
            made=Renewable(make, partial(self._rebuilder.renewWrite, plan)),
            user_write=user_write(request.write),
            observed=self._observed(request, plan),
        )

    def _over_rows(self, command: JavaObject, plan: JavaObject, session: JavaObject) -> JavaObject:
        """Return the physical plan of a command over the rows of this job's plan of the query that it hides."""
        rows = CLASSES.new_instance(self._forest.sc._gateway, "CommandRows")
        over = rows.over(command, command.query(), self._rebuilder.query(plan), session)
        return self._planned(session, over).executedPlan()

    def _planned(self, session: JavaObject, command: JavaObject) -> JavaObject:
        return query_execution(self._forest.sc._jvm, session.sessionState(), command)

    def of_result(
        self, request: SinkRequest, query_execution: JavaObject, plan: JavaObject, stage: Stage, tasks: int
    ) -> ResultStageHandle:
        """Return the handle of rows that stay in the session."""
        self._note_planned(plan, query_execution.optimizedPlan())
        columns = query_execution.analyzed().output()
        return ResultStageHandle(
            name=request.name,
            tasks=tasks,
            exact=self._exact(stage),
            **self._facts(stage),
            merged=self._merged(self._rebuilder.mergedTasksOfQuery, plan, stage),
            query_execution=query_execution,
            made=Renewable(lambda: self._rebuilder.query(plan)),
            schema_json=request.schema_json,
            relation=lambda level: self._rebuilder.keptApart(
                plan, query_execution, columns, level, name_of_run("result")
            ),
            prunes_exactly=CLASSES.shared_instance(self._forest.sc._gateway, "ExactBatchSerializer").use,
            columns=columns,
            observed=self._observed(request, plan),
        )

    def of_boundary(self, boundary: Boundary, stage: Stage, rows: PartitionCount) -> BoundaryStageHandle:
        """Return the handle of the stage whose rows are kept in a relation, which this job's other plans read."""
        relation, query_execution = boundary.relation, boundary.query_execution
        self._note_planned(boundary.plan, query_execution.optimizedPlan())
        handle = BoundaryStageHandle(
            name=boundary.name,
            tasks=rows.number,
            exact=rows.exact,
            **self._facts(stage),
            query_execution=query_execution,
            made=Renewable(lambda: self._rebuilder.relation(relation)),
        )
        appended = None
        if rows.exact and rows.number and not boundary.reads_columns:
            appended = AppendedRelation(self._forest.sc, self._rebuilder, self._appended, relation, handle)
        self.results.append(
            StageResult(
                handle,
                boundary.known_by,
                ("boundary",),
                computed=lambda: self._rebuilder.relation(relation).cacheBuilder(),
                over=lambda rows: self._rebuilder.keptOver(relation, rows.all(), rows),
                adopt=lambda earlier: self._rebuilder.adoptKept(relation, earlier),
                appended=appended,
                dataframes=boundary.dataframes,
                columns=boundary.columns,
            )
        )
        return handle

    def of_cache(
        self, name: str, relation: JavaObject, session: JavaObject, stage: Stage, rows: PartitionCount, *, early: bool
    ) -> CacheStageHandle:
        """Return the handle of the stage that fills a cache of the user's; `early` if Spark plans it while it runs."""

        def filled() -> JavaObject:
            if early:
                relation.cacheBuilder().cachedColumnBuffers()
            return relation

        return CacheStageHandle(
            name=name,
            tasks=rows.number,
            exact=rows.exact,
            **self._facts(stage, starts_jobs=early),
            query_execution=self._planned(session, relation),
            made=Renewable(filled),
        )

    def _facts(
        self, stage: Stage, top: JavaObject | None = None, *, starts_jobs: bool = False, calls_python: bool = False
    ) -> _StageFacts:
        """Return the facts of a stage; `top` is the plan of what is above its operators."""
        return {
            "starts_jobs_early": starts_jobs or any(self._counts.starts_job(node) for node in stage.nodes),
            "calls_python": calls_python or any(map(_calls_python, stage.nodes)),
            "collected": self._collected(stage),
            "clean_up": self._clean_up(stage),
            "joins": self._joins(stage),
            "row_metrics": self._row_metrics(stage),
            "metrics": partial(self._measured, stage, top),
        }

    def _measured(self, stage: Stage, top: JavaObject | None) -> StageMetrics:
        numbers = ",".join(str(node.number) for node in stage.nodes)
        return StageMetrics.of(self._stage_metrics.of(self._forest.reader, self._rebuilder, numbers, top))

    def _collected(self, stage: Stage) -> Callable[[], None] | None:
        """Return what to call when a stage that observes something is done."""
        nodes = [self._forest.jvm_node(node) for node in stage.nodes if node.kind == COLLECT_METRICS]
        if not nodes or stage.cached:
            return None

        def collected() -> None:
            for node in nodes:
                self._metrics.collected(self._rebuilder, node)

        return collected

    def _clean_up(self, stage: Stage) -> Callable[[], None] | None:
        """Return what to call when a stage is over that stores rows in order to number them."""
        nodes = [self._forest.jvm_node(node) for node in stage.nodes if node.kind == DISTRIBUTED_SEQUENCE]
        if not nodes or stage.cached:
            return None

        def clean_up() -> None:
            for node in nodes:
                self._rebuilder.rebuild(node).cleanupResources()

        return clean_up

    def _observed(self, request: SinkRequest, plan: JavaObject) -> ObservedQuery | None:
        if not is_observed(self._forest.sc, request.logical_plan):
            return None
        return ObservedQuery(request.logical_plan, self._metrics.of(self._rebuilder, plan))

    def rows_of(self, last: JavaObject, df: DataFrame) -> int | None:
        """Return how many rows of a DataFrame the job had when it ran; None if they were not counted.

        Parameters
        ----------
        last : py4j.java_gateway.JavaObject
            The plan of the last stage, as it ran.
        """
        rows = int(self._rebuilder.rowsOf(last, logical_plan(df)))
        return None if rows < 0 else rows

    def read_kept(self, relation: JavaObject) -> None:
        """Make the plans that run read the rows that this job computes for a relation."""
        self._rebuilder.keep(relation)

    def _exact(self, stage: Stage) -> bool:
        return all(self._counts.of(node).exact for node in stage.nodes)

    def _joins(self, stage: Stage) -> Once:
        joins = [] if stage.cached else [node for node in stage.nodes if node.kind in JOINS]
        return Once(lambda: join_choices(self._rebuilder, self._forest, joins)) if joins else Once.of(())

    def _row_metrics(self, stage: Stage) -> Renewable:
        kinds = {node.kind for node in stage.nodes}
        if stage.cached or kinds.isdisjoint({CACHED_SCAN, FILE_SCAN} if self._scans is not None else {CACHED_SCAN}):
            return Renewable(str)
        sources = [node for node in stage.nodes if not node.children and node.kind not in _EXCHANGES]

        def ids() -> str:
            reads = (self._forest.jvm_node(node) for node in sources)
            if CACHED_SCAN not in kinds and not any(map(self._scans.isSliced, reads)):
                return ""
            numbers = ",".join(str(node.number) for node in sources)
            return str(self._stage_metrics.rowMetrics(self._forest.reader, self._rebuilder, numbers))

        return Renewable(ids)

    def _merged(self, ask: Callable[[JavaObject], int], plan: JavaObject, stage: Stage) -> Once:
        # Without a node of its own, a stage only reads what another one wrote.
        read = (child.kind for node in stage.nodes for child in (node, *node.children))
        return Once(lambda: ask(plan)) if not _MERGED.isdisjoint(read) or not stage.nodes else Once.of(-1)


def _calls_python(node: PlanNode) -> bool:
    return node.kind in MAY_CALL_PYTHON or node.class_name.startswith(PYTHON_OPERATORS)
