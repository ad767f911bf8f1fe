"""Hooks what a session keeps and releases: caches, accumulators, broadcast variables, files, streams, itself."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from flinkmagic.capturing.driver.impurity import functions_of
from flinkmagic.capturing.hooks import stream_hooks
from flinkmagic.capturing.hooks.call_hooks import Args, Command, Hook, Kwargs, Watched, strings_in
from flinkmagic.capturing.sql import commands
from flinkmagic.capturing.sql.cached_data import (
    cache_effects,
    rdd_cache_effects,
    table_cache_effects,
    view_cache_effects,
)
from flinkmagic.capturing.writes.pending import Cause, Effects
from flinkmagic.capturing.writes.targets import Source

if TYPE_CHECKING:
    from flinkmagic.capturing.recorder import Recorder

Make = Callable[[str, Any], Hook]


def entries(data_frame: type) -> Iterator[tuple[type, str, Make]]:
    """Yield the methods and the hook factory of each; `data_frame` is the class whose methods run."""
    from pyspark import RDD, Accumulator, Broadcast, SparkContext
    from pyspark.sql import SparkSession
    from pyspark.sql.catalog import Catalog

    yield data_frame, "unpersist", _command(_unpersist)
    yield RDD, "unpersist", _command(_unpersist_rdd)
    yield Catalog, "clearCache", _command(_clear_cache)
    yield Catalog, "uncacheTable", _command(_uncache_table)
    yield Catalog, "dropTempView", _command(_drop_view)
    yield Catalog, "dropGlobalTempView", _command(_drop_global_view)
    yield from _catalog(Catalog)
    for name in ("value", "__str__", "__repr__"):
        yield Accumulator, name, _command(_accumulator)
    for name in ("unpersist", "destroy"):
        yield Broadcast, name, _command(_broadcast)
    for owner in (SparkSession, SparkContext):
        yield owner, "stop", Stop
    for name in ("addFile", "addPyFile", "addArchive"):
        yield SparkContext, name, _command(_added_file)
    for name in ("addArtifact", "addArtifacts"):
        yield SparkSession, name, _command(_added_file)
    yield SparkContext, "setCheckpointDir", _command(_changed_path)
    yield from _streams()


def _catalog(owner: type) -> Iterator[tuple[type, str, Make]]:
    for name in ("listPartitions", "analyzeTable"):
        yield owner, name, _command(commands.catalog_effects)
    for name in ("getTableProperties", "getCreateTableString"):
        yield owner, name, _command(commands.lookup_effects)
    yield owner, "refreshByPath", _command(_changed_path)


def _streams() -> Iterator[tuple[type, str, Make]]:
    from pyspark.sql.streaming import StreamingQuery

    for name in ("awaitTermination", "processAllAvailable"):
        yield StreamingQuery, name, _command(_stream)
    yield from stream_hooks.entries()
    streaming = sys.modules.get("pyspark.streaming.context")
    if streaming is not None:
        for name in ("start", "awaitTermination", "awaitTerminationOrTimeout"):
            yield streaming.StreamingContext, name, _command(_stream)
        yield streaming.StreamingContext, "stop", Stop


def _command(effects: Callable[[Recorder, Args, Kwargs], Effects]) -> Make:
    return functools.partial(Watched, effects=effects)


class Stop(Command):
    """`stop` of a session, its context or its streams: if it stops the session, what follows is plain PySpark."""

    def __init__(self, method: str, original: Callable[..., Any]) -> None:
        super().__init__(method, original, lambda recorder, args, kwargs: Effects(unknown=True, cause=Cause.STOP))

    def before(self, recorder: Recorder, args: Args, kwargs: Kwargs) -> None:
        if _is_running(recorder, args[0]):
            super().before(recorder, args, kwargs)
            if recorder.streams.waiting:
                recorder.streams.start()
            recorder.close()

    def after(self, recorder: Recorder, args: Args, kwargs: Kwargs, result: Any) -> Any:
        recorder.closed()
        return result


def _is_running(recorder: Recorder, stopped: Any) -> bool:
    """Return whether this would stop the context of the captured session for the first time."""
    context = getattr(stopped, "_sc", stopped)
    return context is recorder.spark.sparkContext and context._jsc is not None


def _first(args: Args, kwargs: Kwargs) -> Any:
    return args[1] if len(args) > 1 else next(iter(kwargs.values()), None)


def _unpersist(recorder: Recorder, args: Args, kwargs: Kwargs) -> Effects:
    return cache_effects(recorder, args[0]._jdf.queryExecution().analyzed())


def _unpersist_rdd(recorder: Recorder, args: Args, kwargs: Kwargs) -> Effects:
    return rdd_cache_effects(recorder, args[0])


def _clear_cache(recorder: Recorder, args: Args, kwargs: Kwargs) -> Effects:
    return cache_effects(recorder)


def _uncache_table(recorder: Recorder, args: Args, kwargs: Kwargs) -> Effects:
    return table_cache_effects(recorder, str(_first(args, kwargs)))


def _drop_view(recorder: Recorder, args: Args, kwargs: Kwargs) -> Effects:
    return view_cache_effects(recorder, str(_first(args, kwargs)))


def _drop_global_view(recorder: Recorder, args: Args, kwargs: Kwargs) -> Effects:
    return view_cache_effects(recorder, str(_first(args, kwargs)), everywhere=True)


def _accumulator(recorder: Recorder, args: Args, kwargs: Kwargs) -> Effects:
    adds = any(functions_of(write.command).may_accumulate() for write in recorder.pending.writes)
    return Effects(unknown=adds, cause=Cause.ACCUMULATOR)


def _broadcast(recorder: Recorder, args: Args, kwargs: Kwargs) -> Effects:
    broadcast = args[0]._jbroadcast
    used = broadcast is not None and any(
        broadcast.id() in functions_of(write.command).broadcasts for write in recorder.pending.writes
    )
    return Effects(unknown=used, cause=Cause.BROADCAST)


def _stream(recorder: Recorder, args: Args, kwargs: Kwargs) -> Effects:
    return Effects(unknown=True, cause=Cause.STREAM)


def _added_file(recorder: Recorder, args: Args, kwargs: Kwargs) -> Effects:
    """Judge files that are shipped to the executors as they are now."""
    paths = strings_in((*args[1:], kwargs.get("path")))
    reads = tuple(Source(path=recorder.resolver.target(path).path) for path in paths)
    return Effects(reads, cause=Cause.FILE)


def _changed_path(recorder: Recorder, args: Args, kwargs: Kwargs) -> Effects:
    return Effects(changes=(recorder.resolver.target(str(_first(args, kwargs))),))
