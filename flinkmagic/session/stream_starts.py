"""Starts a graph's streaming queries, for its job to take over.

`start()` raises what Spark refuses, and returns when the query runs. So each is started on the thread that asks for it,
in the order of the cell, before a job takes over those that run.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from flinkmagic.deployment.streaming.query_restarts import QueryStarter
from flinkmagic.deployment.streaming.streaming_deployment import StartedQuery
from flinkmagic.errors.base import add_note
from flinkmagic.errors.streaming import stream_not_started
from flinkmagic.options import NO_RESTART, PIPELINED, JobOptions
from flinkmagic.planning.streaming.stream_planner import stream_parallelism
from flinkmagic.session.batch_runs import MakeGraph, carry_out_batches
from flinkmagic.session.job_planning import check_pipelined

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from flinkmagic.capturing.source_code.source_location import CellSource
    from flinkmagic.capturing.streams.deferred_stream import DeferredStream
    from flinkmagic.session.batch_runs import BatchRuns


@dataclass(frozen=True)
class StreamStart:
    """A query that has started."""

    query: StartedQuery
    batches: BatchRuns | None
    """Runs the function of a `foreachBatch`; None if the query has none."""


@dataclass
class StreamStarts:
    """How the queries of a run have started."""

    made: dict[int, StreamStart] = field(default_factory=dict)
    """The queries that run, by the index of their sink."""
    errors: dict[int, Exception] = field(default_factory=dict)
    """What Spark raised for the others, by the index of their sink."""
    notes: list[str] = field(default_factory=list)
    """The errors, a line each."""

    def stop(self) -> None:
        """Stop all queries if no job takes them over, even if Spark refuses to stop one."""
        with ExitStack() as ends:
            for start in self.made.values():
                ends.callback(start.query.starter.close)
                ends.callback(start.query.java_query.stop)  # the last one is called first


def begin_stream(
    stream: DeferredStream, spark: SparkSession, cell: CellSource | None, options: JobOptions, make: MakeGraph
) -> StreamStart:
    """Start a query as `start()` does; its handle then holds the `StreamStart` for the job that takes it over."""
    return _begin(stream, _starter(stream, spark, options), carry_out_batches(stream, cell, options, make))


def begin_streams(
    streams: Iterable[DeferredStream],
    spark: SparkSession,
    cell: CellSource | None,
    options: JobOptions,
    make: MakeGraph,
) -> StreamStarts:
    """Start those queries of a graph that have not started yet: one that Spark refuses does not stop the others."""
    starts = StreamStarts()
    waiting = []
    for stream in streams:
        begun = stream.query.start_to_take_over()
        if begun is not None:
            starts.made[stream.index] = begun
        else:  # what this package refuses it refuses before any of them starts
            waiting.append((stream, _starter(stream, spark, options)))
    for stream, starter in waiting:
        try:
            starts.made[stream.index] = _begin(stream, starter, carry_out_batches(stream, cell, options, make))
        except Exception as error:  # noqa: BLE001 - raised when the others have started
            add_note(error, f"{stream.location}: {stream.text}")
            starts.errors[stream.index] = error
            starts.notes.append(stream_not_started(stream.name, error))
    return starts


def _starter(stream: DeferredStream, spark: SparkSession, options: JobOptions) -> QueryStarter:
    if options.exchange == PIPELINED:
        check_pipelined(spark.sparkContext, options.mode)
    parallelism = stream_parallelism(spark, options)
    return QueryStarter(stream, spark, parallelism=parallelism, restarts=options.restart != NO_RESTART)


def _begin(stream: DeferredStream, starter: QueryStarter, batches: BatchRuns | None) -> StreamStart:
    try:
        query = starter.start()
    except Exception:  # after an interrupt the query may run
        starter.close()
        raise
    start = StreamStart(StartedQuery(query, starter), batches)
    stream.query.begun(query, start)
    return start
