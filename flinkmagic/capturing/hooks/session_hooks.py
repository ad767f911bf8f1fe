"""Hooks what a session keeps and releases: caches, accumulators, broadcast variables, files, streams, itself."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from flinkmagic.capturing.call_arguments import Args, Kwargs, argument, strings_in
from flinkmagic.capturing.driver.impurity import functions_of
from flinkmagic.capturing.hooks import stream_hooks
from flinkmagic.capturing.hooks.call_hooks import Command, Entry, anything, changes_at, watched
from flinkmagic.capturing.sql import commands
from flinkmagic.capturing.sql.cached_data import (
    cache_effects,
    rdd_cache_effects,
    table_cache_effects,
    view_cache_effects,
)
from flinkmagic.capturing.writes.pending import Cause, Effects
from flinkmagic.capturing.writes.targets import Source
from flinkmagic.jvm.java import execution_of

if TYPE_CHECKING:
    from flinkmagic.capturing.recorder import Recorder
    from flinkmagic.capturing.writes.captured_session import CapturedSession


def entries(data_frame: type) -> Iterator[Entry]:
    """Yield the methods and the hook factory of each; `data_frame` is the class whose methods run."""
    from pyspark import RDD, Accumulator, Broadcast, SparkContext
    from pyspark.sql import SparkSession
    from pyspark.sql.catalog import Catalog

    yield data_frame, "unpersist", watched(_unpersist)
    yield RDD, "unpersist", watched(lambda captured, args, kwargs: rdd_cache_effects(captured, args[0]))
    yield Catalog, "clearCache", watched(lambda captured, args, kwargs: cache_effects(captured))
    yield Catalog, "uncacheTable", watched(_uncached_table)
    yield Catalog, "dropTempView", watched(functools.partial(_drop_view, everywhere=False))
    yield Catalog, "dropGlobalTempView", watched(functools.partial(_drop_view, everywhere=True))
    yield from _catalog(Catalog)
    for name in ("value", "__str__", "__repr__"):
        yield Accumulator, name, watched(_accumulator)
    for name in ("unpersist", "destroy"):
        yield Broadcast, name, watched(_broadcast)
    for owner in (SparkSession, SparkContext):
        yield owner, "stop", Stop
    for name in ("addFile", "addPyFile", "addArchive"):
        yield SparkContext, name, watched(_added_file)
    for name in ("addArtifact", "addArtifacts"):
        yield SparkSession, name, watched(_added_file)
    yield SparkContext, "setCheckpointDir", watched(changes_at(1, "dirName"))
    yield from _streams()


def _catalog(owner: type) -> Iterator[Entry]:
    for name in ("listPartitions", "analyzeTable"):
        yield owner, name, watched(commands.catalog_effects)
    for name in ("getTableProperties", "getCreateTableString"):
        yield owner, name, watched(commands.lookup_effects)
    yield owner, "refreshByPath", watched(changes_at(1, "path"))


def _streams() -> Iterator[Entry]:
    from pyspark.sql.streaming import StreamingQuery

    for name in ("awaitTermination", "processAllAvailable"):
        yield StreamingQuery, name, watched(anything(Cause.STREAM))
    yield from stream_hooks.entries()
    streaming = sys.modules.get("pyspark.streaming.context")
    if streaming is not None:
        for name in ("start", "awaitTermination", "awaitTerminationOrTimeout"):
            yield streaming.StreamingContext, name, watched(anything(Cause.STREAM))
        yield streaming.StreamingContext, "stop", Stop


class Stop(Command):
    """`stop` of a session, its context or its streams: if it stops the session, what follows is plain PySpark."""

    def __init__(self, method: str, original: Callable[..., Any]) -> None:
        super().__init__(method, original, anything(Cause.STOP))

    def before(self, recorder: Recorder, args: Args, kwargs: Kwargs) -> None:
        if _is_running(recorder, args[0]):
            super().before(recorder, args, kwargs)
            if recorder.streams.waiting:
                recorder.streams.start()
            recorder.close()

    def after(self, recorder: Recorder, args: Args, kwargs: Kwargs, result: Any) -> Any:
        recorder.closed()
        return result


def _is_running(captured: CapturedSession, stopped: Any) -> bool:
    """Return whether this would stop the context of the captured session for the first time."""
    context = getattr(stopped, "_sc", stopped)
    return context is captured.spark.sparkContext and context._jsc is not None


def _unpersist(captured: CapturedSession, args: Args, kwargs: Kwargs) -> Effects:
    return cache_effects(captured, execution_of(args[0]).analyzed())


def _uncached_table(captured: CapturedSession, args: Args, kwargs: Kwargs) -> Effects:
    return table_cache_effects(captured, str(argument(args, kwargs, 1, "tableName")))


def _drop_view(captured: CapturedSession, args: Args, kwargs: Kwargs, everywhere: bool) -> Effects:
    return view_cache_effects(captured, str(argument(args, kwargs, 1, "viewName")), everywhere)


def _accumulator(captured: CapturedSession, args: Args, kwargs: Kwargs) -> Effects:
    adds = any(functions_of(write.command).may_accumulate() for write in captured.pending.writes)
    return Effects(unknown=adds, cause=Cause.ACCUMULATOR)


def _broadcast(captured: CapturedSession, args: Args, kwargs: Kwargs) -> Effects:
    broadcast = args[0]._jbroadcast
    used = broadcast is not None and any(
        broadcast.id() in functions_of(write.command).broadcasts for write in captured.pending.writes
    )
    return Effects(unknown=used, cause=Cause.BROADCAST)


def _added_file(captured: CapturedSession, args: Args, kwargs: Kwargs) -> Effects:
    """Judge files that are shipped to the executors as they are now."""
    paths = strings_in((*args[1:], kwargs.get("path")))
    reads = tuple(Source(path=captured.resolver.target(path).path) for path in paths)
    return Effects(reads, cause=Cause.FILE)
