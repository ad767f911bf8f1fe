"""Provides `iterate` and `co_iterate`."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from pyspark.sql import DataFrame

from flinkmagic.capturing.hooks.current_capture import listening, serving
from flinkmagic.capturing.source_code.source_reader import user_frame
from flinkmagic.errors.base import add_note
from flinkmagic.errors.capturing import SparkConnectSessionError, StreamingFrameError
from flinkmagic.errors.iterations import IterationArgumentsError, interrupted
from flinkmagic.jvm.java import is_connect
from flinkmagic.options import JobOptions, with_job_options
from flinkmagic.session.graph_names import check_name
from flinkmagic.session.iterations.iteration import Iteration
from flinkmagic.session.iterations.superstep import release_unused
from flinkmagic.session.iterations.watchers import watchers

_NUMBERS = itertools.count(1)
_LAST: deque[Iteration] = deque(maxlen=20)


def iterations() -> list[Iteration]:
    """Return the last loops of this process, oldest first, with their supersteps and how they converged."""
    return list(_LAST)


@with_job_options
def iterate(
    initial: DataFrame,
    step: Callable[..., DataFrame],
    *,
    max_iterations: int,
    until: Callable[[DataFrame, DataFrame], bool | DataFrame] | None = None,
    name: str | None = None,
    restart: str = "fixed-delay:1:0s",
    **options: Any,
) -> DataFrame:
    """Apply a function to a DataFrame repeatedly, in a loop whose supersteps run as jobs.

    The loop runs on its line, as an action does. Each superstep is compiled and deployed; its rows are kept, and the
    next one reads them without the lineage that made them. An interrupt cancels it.

    Parameters
    ----------
    initial : DataFrame
        What the first superstep gets.
    step : callable
        Returns the next DataFrame, with the same columns, from the one before. If it has a parameter ``superstep``, it
        gets the number of the superstep, from 1.
    max_iterations : int
        How many supersteps there are at most.
    until : callable, optional
        Called after each superstep with the rows before and after it. Returns whether the loop ends: a bool, or a
        DataFrame of one row whose first column is boolean; further columns are recorded (`iterations`).
    name : str, optional
        The loop's name, a Python identifier. By default ``loop_N``.
    restart : str
        Whether failed tasks of a superstep are restarted, in Flink's words; by default once. Only the superstep is
        repeated, not the loop.
    **options
        The options of a graph; each has its entry here when the module is loaded.

    Returns
    -------
    DataFrame
        Reads the rows of the last superstep, which are kept.

    Raises
    ------
    IterationArgumentsError
        If something is no DataFrame, no function or no number of supersteps.
    SuperstepFailedError
        If a superstep has failed and its restart strategy gives up.
    IterationCancelledError
        If the loop was cancelled from another thread.

    Notes
    -----
    Mirrors ``DataStream.iterate``. With `checkpoint_dir` another process that runs the same loop goes on from its last
    superstep.
    """
    __tracebackhide__ = True
    _check("iterate", "initial", initial)
    return _run(initial, (), step, until, max_iterations, name, JobOptions(restart=restart, **options))


@with_job_options
def co_iterate(
    data: DataFrame | Sequence[DataFrame],
    state: DataFrame,
    step: Callable[..., DataFrame],
    *,
    max_iterations: int,
    until: Callable[[DataFrame, DataFrame], bool | DataFrame] | None = None,
    name: str | None = None,
    restart: str = "fixed-delay:1:0s",
    **options: Any,
) -> DataFrame:
    """Improve a state repeatedly by the same data, such as centroids by points, or ranks by links.

    Parameters
    ----------
    data : DataFrame or sequence of DataFrame
        What each superstep reads, such as ``[links, weights]``. The rows of each are computed once, and kept for the
        loop, unless you have cached it.
    state : DataFrame
        What the first superstep begins with.
    step : callable
        Returns the next state, with the same columns, from the data, in their order, and the state before:
        ``step(links, weights, ranks)``. A parameter ``superstep`` is as in `iterate`.
    max_iterations, until, name, restart
        As in `iterate`; `until` gets the states before and after a superstep.
    **options

    Returns
    -------
    DataFrame
        Reads the last state, whose rows are kept.

    Notes
    -----
    Mirrors ``ConnectedStreams.iterate`` with a feedback of another type than the input.
    """
    __tracebackhide__ = True
    several = tuple(data) if isinstance(data, (list, tuple)) else (data,)
    if not several:
        raise IterationArgumentsError(data, "a DataFrame or several (without any, write iterate)", "data of co_iterate")
    for one in several:
        _check("co_iterate", "data", one)
    _check("co_iterate", "state", state)
    return _run(state, several, step, until, max_iterations, name, JobOptions(restart=restart, **options))


def _run(
    initial: DataFrame,
    data: tuple[DataFrame, ...],
    step: Callable[..., DataFrame],
    until: Callable[[DataFrame, DataFrame], Any] | None,
    most: Any,
    name: str | None,
    options: JobOptions,
) -> DataFrame:
    __tracebackhide__ = True
    for what, function in (("step", step), ("until", until)):
        if not callable(function) and (what == "step" or function is not None):
            raise IterationArgumentsError(function, "a function", what)
    if type(most) is not int or most < 1:
        raise IterationArgumentsError(most, "a whole number from 1 on", "max_iterations")
    recorder = listening()
    name = f"loop_{next(_NUMBERS)}" if name is None else check_name(name)
    loop = Iteration(name, step, until, most, options, recorder)
    _LAST.append(loop)
    release_unused()
    with serving(recorder), ExitStack() as watched:
        for watch in watchers:
            watched.enter_context(watch(loop))
        try:
            result = loop.run(initial, data)
        except KeyboardInterrupt as interrupt:
            # As for any long call: show the user's line, and none of those in which we wait.
            add_note(interrupt, interrupted(loop.name, len(loop.supersteps)))
            raise interrupt.with_traceback(None) from None
        if recorder is not None:
            called = "co_iterate" if data else "iterate"
            text = recorder.source.call_text(user_frame(), called, (), {"name": name, "max_iterations": most})
            recorder.calls.record("iterate", f"{text}: {loop.outcome}", recorder.location(), [*data, initial], result)
    return result


def _check(function: str, what: str, df: Any) -> None:
    if is_connect(df):
        raise SparkConnectSessionError
    if not isinstance(df, DataFrame):
        raise IterationArgumentsError(type(df), "a DataFrame", f"{what} of {function}")
    if df.isStreaming:
        raise StreamingFrameError(what)
