"""Sets the user's options of the operators that compute a DataFrame: `with_options`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from flinkmagic.capturing.hooks.current_capture import listening
from flinkmagic.capturing.lineage import OperatorOptions
from flinkmagic.errors.capturing import InvalidOperatorOptionError, NotCapturedError
from flinkmagic.errors.usage import InvalidValueError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flinkmagic.capturing.source_code.source_location import SourceLocation

CHAININGS = ("always", "head", "never")

_Frame = TypeVar("_Frame", bound="DataFrame")
_MOST = 1 << 15  # Flink's UPPER_BOUND_MAX_PARALLELISM


def with_options(
    df: _Frame,
    *,
    name: str | None = None,
    uid: str | None = None,
    slot_sharing_group: str | None = None,
    co_location_group: str | None = None,
    chaining: str | None = None,
    max_parallelism: int | None = None,
) -> _Frame:
    """Set options of the operator that computes a DataFrame, as for a Flink operator. Its rows do not change.

    For use within a `%%flinkgraph` cell or a `flinkmagic.capture` block. What is marked is the operator of the call
    that made `df`, not those before it. Spark runs a whole stage within one task: groups and max parallelism hold for
    all operators of the stage.

    Parameters
    ----------
    df : DataFrame
        What the operator computes.
    name : str, optional
        The operator's name in all graphs.
    uid : str, optional
        Unique within a program; the operator's id is made from it, not from the place in the graph.
    slot_sharing_group : str, optional
        Subtasks of operators of one group may share a slot. On Spark, where each task has a core of its own, it takes
        effect in simulations only.
    co_location_group : str, optional
        Subtasks of the same number, of operators of one group, must share a slot. As with `slot_sharing_group`.
    chaining : {"always", "head", "never"}, optional
        "head" does not chain it to the operators before it, "never" not to those behind it either: each chain is drawn
        and scheduled as a job vertex. Spark runs a stage's chains within the same tasks all the same.
    max_parallelism : int, optional
        How many subtasks its stage may have at most, 1 to 32768; more are refused.

    Returns
    -------
    DataFrame
        `df` itself.

    Raises
    ------
    OperatorOptionsError
        If an option has no meaning.
    NotCapturedError
        If nothing is captured on this thread.

    Notes
    -----
    Mirrors ``SingleOutputStreamOperator``: ``name``, ``uid``, ``slotSharingGroup``, ``startNewChain``,
    ``disableChaining``, ``setMaxParallelism``; and ``Transformation.setCoLocationGroupKey``.

    Examples
    --------
    >>> numbers = with_options(spark.range(0, 100, 1, 4), name="numbers", uid="numbers")  # doctest: +SKIP
    """
    recorder = listening()
    if recorder is None:
        raise NotCapturedError
    asked: dict[str, Any] = {
        "name": name,
        "uid": uid,
        "slot_sharing_group": slot_sharing_group,
        "co_location_group": co_location_group,
        "chaining": chaining,
        "max_parallelism": max_parallelism,
    }
    location = recorder.location()
    _check(df, asked, location)
    recorder.calls.mark(df, OperatorOptions(**asked, location=location))
    return df


def _check(df: Any, asked: dict[str, Any], location: SourceLocation) -> None:
    from pyspark.sql import DataFrame

    def require(is_met: bool, name: str, value: object, expected: str) -> None:
        if not is_met:
            raise InvalidOperatorOptionError(location, InvalidValueError(value, expected, name))

    require(isinstance(df, DataFrame), "df of with_options", type(df), "a DataFrame")
    given = {option: value for option, value in asked.items() if value is not None}
    require(bool(given), "options of with_options", given, f"one or more of {', '.join(asked)}")
    for option, value in given.items():
        if option == "chaining":
            require(value in CHAININGS, option, value, " or ".join(CHAININGS))
        elif option == "max_parallelism":
            is_number = type(value) is int and 0 < value <= _MOST
            require(is_number, option, value, f"a whole number from 1 to {_MOST}")
        else:
            require(isinstance(value, str) and bool(value.strip()), option, value, "a non-empty text")
