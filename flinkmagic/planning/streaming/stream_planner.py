"""Plans the deferred streams of a program as a job of mode STREAMING."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from flinkmagic.errors.deployment import SessionEndedError
from flinkmagic.errors.streaming import NoStreamError
from flinkmagic.graph.environment import StreamExecutionEnvironment
from flinkmagic.graph.exchange_mode import RuntimeExecutionMode, StreamExchangeMode
from flinkmagic.graph.transformations import SinkTransformation
from flinkmagic.jvm.java import execution_of, items, simple_name
from flinkmagic.planning.clones import SHUFFLE_PARTITIONS, SessionClones
from flinkmagic.planning.operator_labels import OperatorLabels, location_facts
from flinkmagic.planning.operator_marks import apply_marks
from flinkmagic.planning.partitions import PartitionCount, PartitionCounts
from flinkmagic.planning.plan_reader import PlanForest, PlanNode
from flinkmagic.planning.planner import MOST_TASKS, PlannedJob
from flinkmagic.planning.provenance import Provenance
from flinkmagic.planning.sinks import PlannedSink
from flinkmagic.planning.streaming.incremental_execution import unstarted_plan
from flinkmagic.planning.translation import Translator

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from flinkmagic.capturing.program import Program
    from flinkmagic.capturing.streams.deferred_stream import DeferredStream
    from flinkmagic.options import JobOptions


class _NoHandles:
    """A query runs as a whole: its stages have no handles."""

    def of_exchange(self, *_: Any) -> None: ...

    def hidden_shuffle(self, *_: Any) -> None: ...


def plan_streams(
    program: Program,
    options: JobOptions,
    *,
    name: str | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> PlannedJob:
    """Plan the deferred streams of a program as one job, each query a pipelined region. Starts nothing.

    A streaming task holds its slot, so shuffles make as many partitions as there are slots, unless the user says
    otherwise, or the session's own number is smaller.

    Parameters
    ----------
    options, name, on_progress
        As `plan` takes them.

    Raises
    ------
    NoStreamError
        If it starts none.
    """
    spark, name = program.spark, name or program.name or "job"
    if not program.streams:
        raise NoStreamError(name)
    if spark.sparkContext._jsc is None:
        raise SessionEndedError(name)
    planner = _StreamPlanner(program, options)
    made = []
    for index, stream in enumerate(program.streams):
        made.append(planner.sink(index, stream))
        if on_progress is not None:
            on_progress(index + 1, len(program.streams))
    return planner.job(name, made)


def stream_parallelism(spark: SparkSession, options: JobOptions) -> int:
    """Return how many partitions the shuffles of a stream make."""
    if options.parallelism is not None:
        return options.parallelism
    slots = options.slots or spark.sparkContext.defaultParallelism
    return max(1, min(int(str(spark.conf.get(SHUFFLE_PARTITIONS))), slots))


class _StreamPlanner:
    """Plans one job."""

    def __init__(self, program: Program, options: JobOptions) -> None:
        self._program = program
        self._parallelism = stream_parallelism(program.spark, options)
        self._clones = SessionClones(program.spark, replace(options, parallelism=self._parallelism))
        self._forest = PlanForest(program.spark.sparkContext)
        self._counts = StreamPartitionCounts(self._forest)
        self._provenance = Provenance(program, self._forest)
        labels = OperatorLabels(program, self._counts, self._provenance)
        self._translator = Translator(self._counts, _NoHandles(), labels, StreamExchangeMode.UNDEFINED)

    def sink(self, index: int, stream: DeferredStream) -> SinkTransformation:
        """Make the transformations of one query."""
        clone = self._clones.of(stream.session)
        self._counts.note_sources(execution_of(stream.df).analyzed())
        # Each query runs by itself: equal exchanges of two are not one.
        root = self._forest.read(unstarted_plan(stream, clone.session), str(index))
        self._provenance.assign(root, stream.frame)
        facts = {
            "sink": stream.name,
            "kind": "stream",
            "call": stream.text,
            **location_facts(stream.location),
            "operator": "WriteToMicroBatchDataSource",
            "format": stream.format,
            "mode": stream.output_mode,
            "description": f"{stream.text} ({stream.location}): {stream.format}, {stream.output_mode}",
        }
        return self._translator.sink(index, root, _sink_name(stream), lambda _stage, _tasks: None, facts)

    def job(self, name: str, made: list[SinkTransformation]) -> PlannedJob:
        """Return the job of all queries."""
        environment = StreamExecutionEnvironment(
            name, RuntimeExecutionMode.STREAMING, self._parallelism, upper_bound_max_parallelism=MOST_TASKS
        )
        marked = apply_marks(self._translator.operators, self._provenance, self._program.lineage.marks)
        for operator in self._translator.operators:
            environment.add_operator(operator)
        return PlannedJob(
            name=name,
            environment=environment,
            sinks=tuple(map(_planned_sink, self._program.streams, made)),
            control_edges={},
            shared=(),
            parallelism=self._parallelism,
            slots=self._clones.slots,
            session_clone=self._clones.of(self._program.streams[0].session).session,
            warnings=(*self._warnings(), *marked),
            streams=self._program.streams,
        )

    def _warnings(self) -> Iterator[str]:
        slots = min(self._program.spark.sparkContext.defaultParallelism, self._clones.slots)
        widest = max(operator.parallelism or 1 for operator in self._translator.operators)
        if widest > slots:
            yield (
                f"Needs {widest} slots together and has {slots}: the tasks of a batch run one after "
                "another where they find none"
            )
        for stream in self._program.streams:
            if not stream.checkpoint:
                yield (
                    f"{stream.name} has no checkpointLocation: its job makes a folder for it, which is removed at the "
                    "end, so a later run begins from the start"
                )


def _sink_name(stream: DeferredStream) -> str:
    return stream.name if stream.name.startswith(stream.format) else f"{stream.format} {stream.name}"


def _planned_sink(stream: DeferredStream, made: SinkTransformation) -> PlannedSink:
    assert made.id is not None
    return PlannedSink(
        index=stream.index,
        name=stream.name,
        kind="stream",
        target=stream.target or stream.format,
        location=stream.location,
        transformation_id=made.id,
        facts={"format": stream.format, "mode": stream.output_mode},
    )


_STREAMING_RELATION = "StreamingRelationExec"


class StreamPartitionCounts(PartitionCounts):
    """The partition counts of unstarted plans: of a streaming source, as far as known before it runs.

    The leaf of an unstarted plan (``StreamingRelationExec``) does not know its options; the logical plan does. Seen on
    3.5.9 and 4.3.0: the rate source takes ``numPartitions``; it, the socket source and the rest otherwise make as many
    as Spark's default parallelism. How many tasks read files is known only when a batch has listed them.
    """

    def __init__(self, forest: PlanForest) -> None:
        super().__init__(forest)
        self._sources: dict[int, int] = {}

    def note_sources(self, logical_plan: Any) -> None:
        """Note the options of a query's sources."""
        for leaf in items(logical_plan.collectLeaves()):
            wanted = _asked(leaf)
            if wanted:
                self._sources.update({attribute.exprId().id(): wanted for attribute in items(leaf.output())})

    def _leaf(self, node: PlanNode) -> PartitionCount:
        if node.kind != _STREAMING_RELATION:
            return super()._leaf(node)
        asked = next((self._sources[each] for each in node.output if each in self._sources), None)
        return PartitionCount(asked or self._forest.sc.defaultParallelism, asked is not None)


def _asked(leaf: Any) -> int:
    if simple_name(leaf) != "StreamingRelationV2":
        return 0
    try:
        text = leaf.extraOptions().get("numPartitions")
        return int(text) if text else 0
    except (Py4JError, ValueError):  # Spark itself says so when the query starts
        return 0
