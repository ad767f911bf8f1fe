"""Judges what RDDs read, write and run, in the few methods of PySpark that all others go through.

Making an RDD from others runs nothing, so it is not hooked. Every job of an RDD passes through `RDD.collect`,
`SparkContext.runJob` and a handful more. On the way PySpark asks for the number of partitions, for which Hadoop lists
files: from then on the RDD reads those.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark import RDD, SparkContext
from pyspark.sql import DataFrame, SparkSession

from flinkmagic.capturing.call_arguments import Args, Kwargs, argument, strings_in
from flinkmagic.capturing.driver.impurity import functions_of_rdd, impure_function, impure_reason
from flinkmagic.capturing.hooks.call_hooks import Entry, LazyCall, watched
from flinkmagic.capturing.writes.pending import Cause, Effects
from flinkmagic.capturing.writes.targets import Source, Target, rdd_sources, sources_of
from flinkmagic.jvm.java import execution_of, simple_name

if TYPE_CHECKING:
    from flinkmagic.capturing.recorder import Recorder
    from flinkmagic.capturing.writes.captured_session import CapturedSession

_INPUTS = ("mapreduce.input.fileinputformat.inputdir", "mapred.input.dir")
_OUTPUTS = ("mapreduce.output.fileoutputformat.outputdir", "mapred.output.dir")
"""Hadoop's names, the new one and the old one, for the folders that a job reads and writes."""


def entries() -> Iterator[Entry]:
    """Yield the methods and the hook factory of each."""
    pipelined = sys.modules[RDD.__module__].PipelinedRDD  # a module of another name in Spark 3

    jobs = ("collect", "collectWithJobGroup", "toLocalIterator", "sumApprox", "meanApprox", "countApproxDistinct")
    for name in jobs:
        yield RDD, name, watched(job_effects)
    for name in ("getNumPartitions", "toDebugString", "union", "cartesian"):
        yield RDD, name, watched(listing_effects)
    yield pipelined, "getNumPartitions", watched(listing_effects)
    yield SparkContext, "union", watched(listing_effects)
    yield SparkContext, "runJob", watched(run_job_effects)
    for name in ("binaryRecords", "newAPIHadoopFile", "hadoopFile"):
        yield SparkContext, name, watched(read_effects)
    for name in ("newAPIHadoopRDD", "hadoopRDD"):
        yield SparkContext, name, watched(read_conf_effects)
    for name in (
        "saveAsTextFile",
        "saveAsPickleFile",
        "saveAsSequenceFile",
        "saveAsHadoopFile",
        "saveAsNewAPIHadoopFile",
    ):
        yield RDD, name, watched(save_effects)
    for name in ("saveAsHadoopDataset", "saveAsNewAPIHadoopDataset"):
        yield RDD, name, watched(save_conf_effects)
    yield SparkSession, "createDataFrame", FrameOfRows


class FrameOfRows(LazyCall):
    """`createDataFrame`: of an RDD it looks at the first rows if no schema is given.

    Rows of this process are not worth keeping, those of an RDD may be.
    """

    runs_users_code = True

    def before(self, recorder: Recorder, args: Args, kwargs: Kwargs) -> None:
        data = argument(args, kwargs, 1, "data")
        if recorder.pending and isinstance(data, RDD):
            recorder.settle(rdd_effects([data]))

    def after(self, recorder: Recorder, args: Args, kwargs: Kwargs, result: Any) -> Any:
        data = argument(args, kwargs, 1, "data")
        if isinstance(result, DataFrame) and not isinstance(data, RDD):
            leaf = execution_of(result).analyzed()
            if simple_name(leaf) == "LogicalRDD":
                recorder.calls.local_rows(leaf.rdd().id())
        return super().after(recorder, args, kwargs, result)


def job_effects(captured: CapturedSession, args: Args, kwargs: Kwargs) -> Effects:
    """Judge a job of the RDD itself."""
    return rdd_effects(args[:1])


def listing_effects(captured: CapturedSession, args: Args, kwargs: Kwargs) -> Effects:
    """Judge a call that looks for the partitions of the RDDs that it gets, alone or in a list."""
    given = [*args, *kwargs.values()]
    given += [item for value in given if isinstance(value, list) for item in value]
    reads = dict.fromkeys(
        source for value in given if isinstance(value, RDD) for source in rdd_sources(_jvm_rdd(value))
    )
    return Effects(tuple(reads), fresh=False, cause=Cause.RDD)


def run_job_effects(captured: CapturedSession, args: Args, kwargs: Kwargs) -> Effects:
    """Judge ``SparkContext.runJob(rdd, function, ...)``."""
    given = [*args[1:3], *(kwargs[name] for name in ("rdd", "partitionFunc") if name in kwargs)]
    return rdd_effects(given)


def java_function_effects(captured: CapturedSession, args: Args, kwargs: Kwargs) -> Effects:
    """Judge what MLlib runs on the RDDs and DataFrames that it is given."""
    return rdd_effects(args[2:])


def rdd_effects(values: Sequence[Any], changes: tuple[Target, ...] = ()) -> Effects:
    """Return what a job of the RDDs, DataFrames and functions among these values reads; `changes` is what it writes."""
    reads: dict[Source, None] = {}
    unknown = False
    for value in values:
        if isinstance(value, RDD):
            reads.update(dict.fromkeys(rdd_sources(_jvm_rdd(value))))
            unknown = unknown or _impurity_of_rdd(value) is not None
        elif isinstance(value, DataFrame):
            plan = execution_of(value).analyzed()
            reads.update(dict.fromkeys(sources_of(plan)))
            unknown = unknown or impure_reason(plan) is not None
        elif callable(value):
            unknown = unknown or impure_function(value) is not None
    return Effects(tuple(reads), changes, unknown, fresh=False, cause=Cause.RDD)


def _jvm_rdd(rdd: Any) -> Any:
    """Return, for an RDD that PySpark has not made in the JVM yet, the one that it will be made from.

    If it were made here, it would keep its function as it is now; a plain run pickles it when the first job needs it.
    """
    if not _is_made(rdd):
        return rdd._prev_jrdd.rdd()
    return rdd._jrdd.rdd()


def _is_made(rdd: Any) -> bool:
    return getattr(rdd, "_jrdd_val", rdd) is not None


def _impurity_of_rdd(rdd: Any) -> str | None:
    reason = functions_of_rdd(_jvm_rdd(rdd)).impure_reason()
    return reason if reason is not None or _is_made(rdd) else impure_function(rdd.func)


def read_effects(captured: CapturedSession, args: Args, kwargs: Kwargs) -> Effects:
    """Judge readers that take paths, which Hadoop separates by commas, and look at the first rows."""
    return _reads(captured, argument(args, kwargs, 1, "path", kwargs.get("name")))


def read_conf_effects(captured: CapturedSession, args: Args, kwargs: Kwargs) -> Effects:
    """Judge readers that find their paths in a dictionary of Hadoop's settings."""
    return _reads(captured, _setting(argument(args, kwargs, 6, "conf"), _INPUTS))


def _reads(captured: CapturedSession, paths: Any) -> Effects:
    if not isinstance(paths, str):
        return Effects(unknown=True, cause=Cause.RDD)
    named = [path for path in paths.split(",") if path]
    reads = tuple(Source(path=captured.resolver.target(path).path, pattern=True) for path in named)
    return Effects(reads, cause=Cause.RDD)


def save_effects(captured: CapturedSession, args: Args, kwargs: Kwargs) -> Effects:
    """Judge ``saveAs…File(path)``: a job of the RDD that writes to a path."""
    path = next(strings_in((*args[1:2], kwargs.get("path"))), None)
    return _saves(captured, args[0], path)


def save_conf_effects(captured: CapturedSession, args: Args, kwargs: Kwargs) -> Effects:
    """Judge ``saveAs…Dataset(conf)``: the path is one of Hadoop's settings, if it writes to files."""
    return _saves(captured, args[0], _setting(argument(args, kwargs, 1, "conf"), _OUTPUTS))


def _saves(captured: CapturedSession, rdd: RDD[Any], path: str | None) -> Effects:
    if path is None:
        return Effects(unknown=True, cause=Cause.RDD)
    return rdd_effects([rdd], (captured.resolver.target(path),))


def _setting(conf: Any, names: tuple[str, ...]) -> str | None:
    if not isinstance(conf, Mapping):
        return None
    return next((str(conf[name]) for name in names if name in conf), None)
