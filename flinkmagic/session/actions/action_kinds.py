"""Tells which actions run under Flink's scheduler, which query is planned, and how its rows become the answer.

1. An action that takes the rows of its DataFrame unchanged is called on a DataFrame over the finished stages.
2. For an action for which Spark plans a query of its own (`count`, `take`, `show`) that query is planned.
3. The rows that `show` prints are collected first; Spark formats them.
4. A statistic for which Spark runs several queries over the DataFrame reads the rows of the last stage.

What has no row in `_KINDS` is left to plain Spark.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flinkmagic.capturing.capture_listener import ActionCall
    from flinkmagic.deployment.stages.finished_queries import FinishedQuery

_MOST_ROWS = 2**31 - 17
"""Spark rounds greater numbers of rows down (`ByteArrayMethods.MAX_ROUNDED_ARRAY_LENGTH`, less one)."""


class PlainCallError(Exception):
    """Spark answers the call without running anything, or refuses it: it is made as it is."""


def _whole(call: ActionCall) -> DataFrame:
    return call.df


def _on_finished_stages(call: ActionCall, query: FinishedQuery) -> Any:
    return call.original(query.frame(), *call.args, **call.kwargs)


@dataclass(frozen=True)
class ActionKind:
    """How an action is carried out, and what else is to be known of it."""

    query: Callable[[ActionCall], DataFrame] = _whole
    """Returns the DataFrame whose stages are run. Raises `PlainCallError` if the call is to be made as it is."""
    answer: Callable[[ActionCall, FinishedQuery], Any] = _on_finished_stages
    """Returns what the action returns. All stages of its query but the last have run."""
    query_name: str = "collectToPython"
    """Spark's name for its query, as listeners know it (``Dataset.withAction``; seen on 4.3.0)."""
    takes_few: bool = False
    """Whether it asks for a few rows."""
    stops_early: bool = False
    """Whether it reads partition after partition, and may stop early; others that do have a limit in their query."""
    is_answered_again: bool = False
    """Whether it has no effects, and a small answer of it is given again (`asked_answers`)."""
    has_effects: bool = False
    """Whether it calls the user's functions for their effects in the last stage, which is not run again."""
    hands_rows_out: bool = False
    """Whether it returns an iterator, which computes the rows as they are asked for."""


def query_name(call: ActionCall) -> str:
    """Return Spark's name for the query of an action that has a kind."""
    if call.method == "toPandas":
        with_arrow = call.df.sparkSession.conf.get("spark.sql.execution.arrow.pyspark.enabled") == "true"
        return "collectAsArrowToPython" if with_arrow else "collectToPython"
    return _KINDS[call.method].query_name


def java_call(call: ActionCall) -> str:
    """Return the JVM's method that plain PySpark calls for an action that has a kind, as py4j's errors name it.

    Of several it is the one that runs the stages before the last.
    """
    name = query_name(call)
    method = _JAVA_METHODS.get(call.method, "getResult" if name == "collectAsArrowToPython" else name)
    return f"{call.df._jdf._target_id}.{method}"


def action_kind(method: str) -> ActionKind | None:
    """Return how an action is carried out; None if only Spark itself can."""
    return _KINDS.get(method)


def arguments(call: ActionCall) -> Mapping[str, Any]:
    """Return the arguments of a call by their names, with the defaults.

    Raises
    ------
    PlainCallError
        If the method cannot take them.
    """
    try:
        bound = inspect.signature(call.original).bind(call.df, *call.args, **call.kwargs)
    except TypeError:
        raise PlainCallError from None
    bound.apply_defaults()
    return bound.arguments


def _first_rows(call: ActionCall, number: Any, more: int = 0) -> DataFrame:
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number + more <= _MOST_ROWS:
        raise PlainCallError
    return call.df.limit(number + more)


def _taken(call: ActionCall) -> DataFrame:
    return _first_rows(call, arguments(call)["num"])


def _head(call: ActionCall) -> DataFrame:
    number = arguments(call).get("n")
    return _first_rows(call, 1 if number is None else number)


def _head_answer(call: ActionCall, query: FinishedQuery) -> Any:
    rows = query.frame().collect()
    if arguments(call).get("n") is not None:
        return rows
    return rows[0] if rows else None


def _shown(call: ActionCall) -> DataFrame:
    # One row more tells Spark whether to say that there are more.
    return _first_rows(call, arguments(call)["n"], more=1)


def _displayed(call: ActionCall) -> DataFrame:
    frame: Any = call.df
    if call.method == "__repr__" and frame._support_repr_html:  # IPython has shown the rows as HTML
        raise PlainCallError
    return _first_rows(call, int(frame.sparkSession.conf.get("spark.sql.repl.eagerEval.maxNumRows", "20")), more=1)


def _displayed_answer(call: ActionCall, query: FinishedQuery) -> Any:
    frame: Any = call.df
    local: Any = query.local_frame()
    local._support_repr_html = frame._support_repr_html
    answer = call.original(local)
    frame._support_repr_html = local._support_repr_html
    return answer


def _statistic(call: ActionCall) -> DataFrame:
    """Return the columns that a statistic reads, if they are plain names; else the whole DataFrame."""
    names: list[Any] = []
    for name, value in arguments(call).items():
        if name in ("col", "cols", "col1", "col2"):
            names += value if isinstance(value, (list, tuple)) else [value]
    columns = call.df.columns
    if all(isinstance(name, str) and columns.count(name) == 1 and name.isidentifier() for name in names):
        return call.df.select(*dict.fromkeys(names))
    return call.df


_DISPLAY = ActionKind(_displayed, _displayed_answer, takes_few=True)
_STATISTIC = ActionKind(
    _statistic,
    lambda call, query: call.original(query.rows_frame(), *call.args, **call.kwargs),
    is_answered_again=True,
)

_KINDS = {
    "collect": ActionKind(is_answered_again=True),
    "toArrow": ActionKind(query_name="collectAsArrowToPython", is_answered_again=True),
    "toPandas": ActionKind(is_answered_again=True),
    "foreach": ActionKind(has_effects=True),
    "foreachPartition": ActionKind(has_effects=True),
    "toLocalIterator": ActionKind(query_name="toPythonIterator", takes_few=True, stops_early=True, hands_rows_out=True),
    "tail": ActionKind(query_name="tailToPython", takes_few=True, stops_early=True, is_answered_again=True),
    "take": ActionKind(_taken, lambda call, query: query.frame().collect(), takes_few=True, is_answered_again=True),
    "head": ActionKind(_head, _head_answer, takes_few=True, is_answered_again=True),
    "first": ActionKind(_head, _head_answer, takes_few=True, is_answered_again=True),
    "show": ActionKind(
        _shown,
        lambda call, query: call.original(query.local_frame(), *call.args, **call.kwargs),
        "head",
        takes_few=True,
        is_answered_again=True,
    ),
    "__repr__": _DISPLAY,
    "_repr_html_": _DISPLAY,
    "isEmpty": ActionKind(
        lambda call: call.df.select().limit(1),
        lambda call, query: not query.has_rows("isEmpty"),
        "isEmpty",
        takes_few=True,
        is_answered_again=True,
    ),
    "count": ActionKind(
        lambda call: call.df.groupBy().count(),
        lambda call, query: query.number("count"),
        "count",
        is_answered_again=True,
    ),
    "approxQuantile": _STATISTIC,
    "corr": _STATISTIC,
    "cov": _STATISTIC,
}

_JAVA_METHODS = {
    "show": "showString",
    "__repr__": "showString",
    "_repr_html_": "htmlString",
    "foreach": "javaToPython",
    "foreachPartition": "javaToPython",
    "approxQuantile": "approxQuantile",
    "corr": "corr",
    "cov": "cov",
}
"""By the action, where the JVM's method is not called as its query is (seen on 4.3.0)."""
