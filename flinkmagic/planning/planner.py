"""Plans a captured program, or DataFrames, as a job: Transformations and the handles to run them by."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from flinkmagic.errors.capturing import NoResultError, SparkConnectSessionError
from flinkmagic.errors.deployment import SessionEndedError
from flinkmagic.graph.environment import StreamExecutionEnvironment
from flinkmagic.graph.exchange_mode import BatchShuffleMode, RuntimeExecutionMode
from flinkmagic.graph.transformations import SinkTransformation
from flinkmagic.jvm.java import is_connect
from flinkmagic.options import PIPELINED, JobOptions
from flinkmagic.planning.boundaries import Boundaries, Boundary, only_reads
from flinkmagic.planning.clones import SessionClones
from flinkmagic.planning.java_classes import CLASSES
from flinkmagic.planning.operator_labels import OperatorLabels, call_facts, location_facts
from flinkmagic.planning.operator_marks import apply_marks
from flinkmagic.planning.partitions import PartitionCount, PartitionCounts
from flinkmagic.planning.pipelined_regions import pipeline_exchanges
from flinkmagic.planning.plan_reader import PlanForest, PlanNode
from flinkmagic.planning.provenance import Provenance
from flinkmagic.planning.requests import SinkRequest, as_program, requests_of
from flinkmagic.planning.run_origin import GRAPH, RunOrigin
from flinkmagic.planning.shared_stages import planned_boundaries, shared_stages
from flinkmagic.planning.sinks import PlannedBoundary, PlannedSink, SharedStage
from flinkmagic.planning.stage_handle_factory import StageHandleFactory
from flinkmagic.planning.stage_handles import StageHandle
from flinkmagic.planning.stage_results import StageResult
from flinkmagic.planning.translation import KeptStage, Stage, Translator
from flinkmagic.planning.user_caches import UserCaches

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame

    from flinkmagic.capturing.program import Program
    from flinkmagic.capturing.streams.deferred_stream import DeferredStream

_PIPELINED = BatchShuffleMode.ALL_EXCHANGES_PIPELINED

MOST_TASKS = 2**31 - 1
"""Spark counts the tasks of a stage in an int."""

_WRITE_OPERATORS = frozenset({"WriteFilesExec"})
"""What Spark puts between a write's command and its query; both are the sink."""

_SIDE_BY_SIDE_FROM = 8
"""From this number of sinks on, Catalyst plans them on several threads."""


@dataclass(frozen=True, eq=False)
class PlannedJob:
    """A job that is planned and not compiled."""

    name: str
    environment: StreamExecutionEnvironment
    """BATCH, with the operators registered."""
    sinks: tuple[PlannedSink, ...]
    """In program order."""
    control_edges: dict[int, tuple[int, ...]]
    """By the index of a sink the indices of earlier ones that must have ended before its own stage starts. Flink's
    graphs have no such edges."""
    shared: tuple[SharedStage, ...]
    parallelism: int
    """How many partitions shuffles make unless the user said otherwise."""
    slots: int
    """What the parallelism was derived from."""
    session_clone: JavaObject = field(repr=False)
    """The Java session on which the (first) plan was made; kept alive with the job."""
    warnings: tuple[str, ...] = ()
    """What the user should know."""
    planning_s: float = 0.0
    """How long planning took."""
    boundaries: tuple[PlannedBoundary, ...] = ()
    """The DataFrames of `shared` whose rows are kept."""
    asked: Mapping[DataFrame, frozenset[int]] = field(default_factory=dict, repr=False)
    """The DataFrames of which only these columns, by their positions, could have been kept, and are not."""
    results: tuple[StageResult, ...] = ()
    relations: tuple[tuple[JavaObject, JavaObject], ...] = field(default=(), repr=False)
    """The ``InMemoryRelation`` s of boundaries and of kept columns, each with the plan by which its rows are known."""
    rows_of: Callable[[JavaObject, DataFrame], int | None] | None = field(default=None, repr=False)
    """See `StageHandleFactory.rows_of`."""
    origin: RunOrigin = GRAPH
    streams: tuple[DeferredStream, ...] = ()
    """In mode streaming: the queries, one for each sink. There are no handles then: Spark runs a query as a whole."""


def plan(
    program_or_dataframes: Program | DataFrame | Sequence[DataFrame] | Mapping[str, DataFrame],
    options: JobOptions | None = None,
    origin: RunOrigin = GRAPH,
    *,
    name: str | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> PlannedJob:
    """Plan the writes of a program, else its results, else the DataFrames given. Starts no Spark job.

    Parameters
    ----------
    program_or_dataframes : Program, DataFrame, sequence or mapping of DataFrame
        What to compute. DataFrames without names are called ``result``, or ``result1`` and so on.
    name : str, optional
        The job's name; by default the program's.
    on_progress : callable, optional
        Called with the number of sinks that are planned and the number of all, after each of them.

    Raises
    ------
    UserError
        One of its subclasses for each thing that cannot be planned.
    """
    program = as_program(program_or_dataframes)
    name = name or program.name or "job"
    if is_connect(program.spark):
        raise SparkConnectSessionError
    if program.spark.sparkContext._jsc is None:
        raise SessionEndedError(name)
    requests = requests_of(program, collected=origin.collects)
    if not requests:
        raise NoResultError(name)
    started = time.monotonic()
    planned = _Planner(program, options or JobOptions(), origin).plan(requests, name, on_progress)
    return replace(planned, planning_s=time.monotonic() - started)


class _Planner:
    """Plans one job."""

    def __init__(self, program: Program, options: JobOptions, origin: RunOrigin) -> None:
        spark = program.spark
        self._share = options.share
        self._is_pipelined = options.exchange == PIPELINED
        self._origin = origin
        self._sc = spark.sparkContext
        self._program = program
        self._clones = SessionClones(spark, options, origin.clones)
        self._forest = PlanForest(spark.sparkContext)
        self._counts = PartitionCounts(self._forest)
        self._handles = StageHandleFactory(self._forest, self._counts)
        if origin.query.sources is not None:
            self._handles.scan_by(origin.query.sources.slices)
        self._provenance = Provenance(program, self._forest)
        self._labels = OperatorLabels(program, self._counts, self._provenance)
        self._translator = Translator(self._counts, self._handles, self._labels)
        self._boundaries = Boundaries(self._sc, self._clones, program, options, origin.query)
        self._caches = UserCaches(program, self._forest, self._counts, self._labels, self._handles)
        self._kept: list[KeptStage] = []
        self._kinds = CLASSES.shared_instance(self._sc._gateway, "PlanKinds")
        self._read = -1
        self._sinks = 0

    def plan(
        self, requests: Sequence[SinkRequest], name: str, on_progress: Callable[[int, int], None] | None
    ) -> PlannedJob:
        self._sinks = len(requests)
        made, light = [], []
        boundaries, logical_plans = self._boundaries.choose(requests)
        for boundary in boundaries:
            self._keep(boundary)
        with self._planned_by_spark(requests, logical_plans) as plans:
            for index, (request, planned) in enumerate(zip(requests, plans, strict=True)):
                made.append(self._sink(index, request, *planned))
                light.append(self._only_reads(request, planned[-1]))
                if on_progress is not None:
                    on_progress(index + 1, len(requests))
        parallelism = self._clones.parallelism()
        environment = StreamExecutionEnvironment(
            name,
            RuntimeExecutionMode.BATCH,
            parallelism,
            batch_shuffle_mode=_PIPELINED if self._is_pipelined else BatchShuffleMode.ALL_EXCHANGES_BLOCKING,
            # Flink's bound is that of its key groups; a Spark stage has none.
            upper_bound_max_parallelism=MOST_TASKS,
        )
        marked = apply_marks(self._translator.operators, self._provenance, self._program.lineage.marks)
        blocking = self._pipeline(requests, made) if self._is_pipelined else []
        for operator in self._translator.operators:
            environment.add_operator(operator)
        return PlannedJob(
            name=name,
            environment=environment,
            sinks=tuple(map(self._planned_sink, range(len(requests)), requests, made, light)),
            control_edges={index: request.after for index, request in enumerate(requests) if request.after},
            shared=shared_stages(self._translator, requests, boundaries, self._kept),
            parallelism=parallelism,
            slots=self._clones.slots,
            session_clone=self._clones.of(requests[0].snapshot).session,
            warnings=(*self._warnings(requests), *marked, *blocking),
            boundaries=planned_boundaries(requests, boundaries, self._kept),
            asked=self._boundaries.asked,
            results=tuple(self._handles.results),
            relations=tuple(self._relations(boundaries)),
            rows_of=self._handles.rows_of,
            origin=self._origin,
        )

    def _pipeline(self, requests: Sequence[SinkRequest], made: Sequence[SinkTransformation]) -> list[str]:
        sinks = {index: sink.operator_factory for index, sink in enumerate(made)}
        hides_query = [index for index, request in enumerate(requests) if request.command is not None]
        return pipeline_exchanges(self._translator, self._handles, self._counts, sinks, hides_query)

    def _warnings(self, requests: Sequence[SinkRequest]) -> Iterator[str]:
        yield from self._boundaries.split_again(requests)
        yield from self._boundaries.room_note()
        yield from self._caches.adaptive_notes(self._forest.nodes.values())

    @contextmanager
    def _planned_by_spark(
        self, requests: Sequence[SinkRequest], logical_plans: Sequence[JavaObject]
    ) -> Iterator[Iterable[tuple[str, JavaObject, JavaObject]]]:
        """Plan the sinks, concurrently if it pays: for each the scope, the QueryExecution and the physical plan."""
        clones = [self._clones.of(request.snapshot) for request in requests]

        def plan_one(index: int) -> tuple[str, JavaObject, JavaObject]:
            clone = clones[index]
            scope = clone.name
            with self._boundaries.reading_columns(clone):
                query_execution = self._clones.plan(logical_plans[index], clone)
                physical = query_execution.executedPlan()
            if self._share == "never" or not clone.reuses_exchanges:
                scope = f"{scope}/{index}"
            return scope, query_execution, physical

        if len(requests) < _SIDE_BY_SIDE_FROM:
            yield map(plan_one, range(len(requests)))
            return
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            yield pool.map(plan_one, range(len(requests)))

    def _relations(self, boundaries: Sequence[Boundary]) -> Iterator[tuple[JavaObject, JavaObject]]:
        for boundary in boundaries:
            yield boundary.relation, boundary.known_by
        sources = self._origin.query.sources
        for relation in [] if sources is None else sources.relations():
            yield relation, relation.cacheBuilder().cachedPlan()

    def _keep(self, boundary: Boundary) -> None:
        """Read a boundary's plan, and let the plans of its consumers read its rows."""
        root = self._forest.read(boundary.plan, boundary.scope)
        self._share_equal()
        self._provenance.assign(root, boundary.frame)
        self._handles.read_kept(boundary.relation)

        def handle(stage: Stage, rows: PartitionCount) -> StageHandle:
            return self._handles.of_boundary(boundary, stage, rows)

        kept = KeptStage(self._sinks + len(self._kept), boundary.name, boundary.dataset_id, handle)
        self._translator.cut_at(root, kept)
        self._kept.append(kept)
        self._kept += self._caches.cut(self._translator, self._sinks + len(self._kept))

    def _sink(
        self, index: int, request: SinkRequest, scope: str, query_execution: JavaObject, jvm_plan: JavaObject
    ) -> SinkTransformation:
        root = self._forest.read(jvm_plan, scope)
        self._share_equal()
        query = root if request.kind == "result" or request.command is not None else _below_write(root)
        self._provenance.assign(query, request.frame)
        if not request.collected:  # an action fills what it reads
            self._kept += self._caches.cut(self._translator, self._sinks + len(self._kept))
        make = self._handles.of_write if request.kind == "write" else self._handles.of_result

        def handle(stage: Stage, tasks: int) -> Any:
            made = make(request, query_execution, jvm_plan, stage, tasks)
            self._handles.note_sink(made, request, query, index)
            return made

        facts = self._sink_facts(request, root)
        return self._translator.sink(index, query, request.label, handle, facts, collected=request.collected)

    def _share_equal(self) -> None:
        """Share the exchanges that were read last with equal ones that were read before."""
        nodes = self._forest.nodes
        for number in range(self._read + 1, len(nodes)):
            node = nodes[number]
            if node.same != number:
                self._handles.share(node, nodes[node.same])
        self._read = len(nodes) - 1

    def _sink_facts(self, request: SinkRequest, root: PlanNode) -> dict[str, Any]:
        facts: dict[str, Any] = {"sink": request.name, "kind": request.kind}
        if request.write is None:
            calls = self._provenance.calls.get(root.number, ())
            facts |= {**call_facts(self._program, calls), "operator": "result"}
            facts["description"] = f"{request.name}: rows that stay in the session"
            return facts
        write = request.write
        facts |= {
            "call": write.text,
            **location_facts(write.location),
            "operator": root.name if request.command is None else f"Execute {request.command.nodeName()}",
            "format": write.facts.format,
            "mode": write.facts.mode,
            "target": str(write.facts.label),
        }
        facts["description"] = f"{write.text} ({write.location}): {facts['operator']}"
        return facts

    def _only_reads(self, request: SinkRequest, jvm_plan: JavaObject) -> bool:
        local = sorted(self._program.lineage.local_rdds)
        return request.kind == "result" and only_reads(self._kinds.of(jvm_plan, local).splitlines())

    def _planned_sink(self, index: int, request: SinkRequest, made: SinkTransformation, light: bool) -> PlannedSink:
        assert made.id is not None
        names = self._program.names_of(request.frame) if request.frame is not None else ()
        write = request.write
        return PlannedSink(
            index=index,
            name=request.name,
            kind=request.kind,
            target=write.facts.label if write else "",
            location=request.location,
            transformation_id=made.id,
            variable=names[0] if names else "",
            write=write,
            facts={"format": write.facts.format, "mode": write.facts.mode} if write else {},
            only_reads=light,
        )


def _below_write(root: PlanNode) -> PlanNode:
    node = root.children[0]
    while node.kind in _WRITE_OPERATORS:
        node = node.children[0]
    return node
