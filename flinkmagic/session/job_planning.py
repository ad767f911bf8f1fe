"""Checks what is given to `compile`, and plans the job of its mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from py4j.java_gateway import JavaClass

from flinkmagic.capturing.merging import merge
from flinkmagic.capturing.program import Program
from flinkmagic.errors.capturing import NoResultError
from flinkmagic.errors.graph import PipelinedExchangeError
from flinkmagic.errors.streaming import NoStreamError, StreamModeError
from flinkmagic.jvm.java import java_class
from flinkmagic.options import PIPELINED, STREAMING, JobOptions
from flinkmagic.planning import PlannedJob, plan
from flinkmagic.planning.requests import as_program
from flinkmagic.planning.streaming.stream_planner import plan_streams
from flinkmagic.session.graph_names import DEFAULT_NAME

if TYPE_CHECKING:
    from pyspark import SparkContext

    from flinkmagic.planning.run_origin import RunOrigin

_REFUSED_WITH = ("spark.dynamicAllocation.enabled", "spark.speculation")


def program_of(given: Any, mode: str) -> Program:
    """Return what is to be compiled as one program.

    Raises
    ------
    NoResultError, NoStreamError, StreamModeError
        If it has no sinks of the mode.
    NotAProgramError
        If it is neither a program or several, nor DataFrames.
    """
    if isinstance(given, Sequence) and given and all(isinstance(each, Program) for each in given):
        given = merge(given)
    if mode == STREAMING and not isinstance(given, Program):
        raise NoStreamError(DEFAULT_NAME)
    program = as_program(given)
    name = program.name or DEFAULT_NAME
    if mode == STREAMING:
        if not program.streams or program.writes:
            raise NoStreamError(name)
    elif program.streams:
        raise StreamModeError(name)
    elif not program.writes and not program.results:
        raise NoResultError(name)
    return program


def planned_job(
    program: Program,
    name: str,
    options: JobOptions,
    origin: RunOrigin,
    on_progress: Callable[[int, int], None] | None,
) -> PlannedJob:
    """Plan a job as its options say."""
    if options.exchange == PIPELINED:
        check_pipelined(program.spark.sparkContext, options.mode)
    if options.mode == STREAMING:
        return plan_streams(program, options, name=name, on_progress=on_progress)
    return plan(program, options, origin, name=name, on_progress=on_progress)


def check_pipelined(sc: SparkContext, mode: str) -> None:
    """Check that a session can run pipelined exchanges.

    Raises
    ------
    PipelinedExchangeError
        If it cannot.
    """
    why = ""
    if mode == STREAMING:
        why = "in mode streaming Spark itself decides how a query's stages exchange rows (trigger(realTime=...))"
    elif not isinstance(java_class(sc._jvm, "org.apache.spark.PipelinedShuffleDependency"), JavaClass):
        why = f"Spark {sc.version} has none, 4.3 and newer have"
    else:
        for setting in _REFUSED_WITH:
            if str(sc._conf.get(setting, "false")).lower() == "true":
                why = f"Spark refuses them with {setting}=true"
    if why:
        raise PipelinedExchangeError(why)
