"""Splits one DataFrame into several, whose rows are computed only once: `split` and `side_output`.

In a captured cell whose writes are deferred the parent becomes a boundary of the job (`planning.boundaries`). Where
lines run immediately, there is no job that would span them: the parent is persisted (`hooks.split_hooks`).
"""

from __future__ import annotations

import functools
import operator
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from flinkmagic.capturing.capture_mode import CaptureMode
from flinkmagic.capturing.hooks.current_capture import listening, serving
from flinkmagic.capturing.hooks.split_hooks import persisted
from flinkmagic.capturing.lineage import Selected
from flinkmagic.capturing.source_code.source_reader import user_frame
from flinkmagic.errors.capturing import SparkConnectSessionError, SplitArgumentsError
from flinkmagic.graph.transformations import OutputTag
from flinkmagic.jvm.java import execution_of, is_connect, items

if TYPE_CHECKING:
    from pyspark.sql import Column

    from flinkmagic.capturing.recorder import Recorder


def split(df: DataFrame, conditions: Mapping[str, Column | str]) -> Split:
    """Split a DataFrame by conditions. Its rows are computed once for all that is selected.

    A row has the names of all conditions that are true for it: none, one or several. A condition that is null is not
    true.

    Parameters
    ----------
    conditions : mapping of str to Column or str
        By name, which rows have it: a boolean column or an expression in SQL. A condition that depends on chance
        (``F.rand() < 0.1``) is decided once for each row.

    Returns
    -------
    Split
        Its `select` returns the rows of a name.

    Raises
    ------
    SplitArgumentsError
        If there is no condition, or something is no DataFrame, no name or no condition.

    Notes
    -----
    Mirrors ``DataStream.split`` with an ``OutputSelector``, which Flink has up to 1.11.

    Outside a cell whose writes are deferred, the DataFrame is persisted until `Split.unpersist` is called or nothing
    refers to it any more. ``--share never`` is obeyed in a captured cell: each selection is then computed by itself,
    and if the rows are others each time, rows may be in several selections or in none.

    Examples
    --------
    >>> parts = split(spark.range(10), {"even": "id % 2 = 0", "odd": "id % 2 = 1"})  # doctest: +SKIP
    >>> parts.select("even").count()  # doctest: +SKIP
    5
    """
    _check_frame("split", df)
    if not isinstance(conditions, Mapping) or not conditions:
        expected = 'a mapping of names to conditions, such as {"even": "id % 2 = 0"}'
        raise SplitArgumentsError(conditions, expected, "conditions of split")
    for name, condition in conditions.items():
        if not isinstance(name, str) or not name.strip():
            raise SplitArgumentsError(name, "a non-empty text", "The name of a split's rows")
        _check_condition(f"The condition of {name!r}", condition)
    return Split(_Parent(df, conditions))


class Split:
    """A DataFrame that is split by conditions. Made by `split`."""

    def __init__(self, parent: _Parent) -> None:
        self._parent = parent

    @property
    def names(self) -> tuple[str, ...]:
        """The names that can be selected."""
        return tuple(self._parent.conditions)

    def select(self, *names: str) -> DataFrame:
        """Return the rows that have one of the names.

        Raises
        ------
        SplitArgumentsError
            If no name is given, or one that no condition has.
        """
        if not names or not self._parent.conditions.keys() >= set(names):
            raise SplitArgumentsError(names, f"one or more of {', '.join(self.names)}", "names of select")
        chosen = functools.reduce(operator.or_, [self._parent.conditions[name] for name in dict.fromkeys(names)])
        selected = Selected(names=tuple(dict.fromkeys(names)))
        return self._parent.selection("select", names, chosen, selected, "split")

    def unpersist(self) -> None:
        """Release the kept rows, if there are any. What is still selected of them is then computed again."""
        self._parent.unpersist()

    def __repr__(self) -> str:
        return f"<Split into {', '.join(self.names)}>"


def side_output(df: DataFrame, tag: OutputTag, condition: Column | str) -> tuple[DataFrame, DataFrame]:
    """Send some rows of a DataFrame to a side output. Its rows are computed once for both outputs.

    Parameters
    ----------
    df : DataFrame
        What has two outputs.
    tag : OutputTag
        Names the side output.
    condition : Column or str
        Which rows go there: a boolean column or an expression in SQL. Where it is null, the row stays in the main
        output.

    Returns
    -------
    tuple of DataFrame
        The main output and the side output; each row is in one of them.

    Raises
    ------
    SplitArgumentsError
        If something is no DataFrame, no tag or no condition.

    Notes
    -----
    Mirrors ``SingleOutputStreamOperator.getSideOutput``. Where the rows are kept is as in `split`.

    Examples
    --------
    >>> main, late = side_output(flights, OutputTag("late"), "delay > 60")  # doctest: +SKIP
    """
    _check_frame("side_output", df)
    if not isinstance(tag, OutputTag):
        raise SplitArgumentsError(tag, 'a flinkmagic.OutputTag("name")', "tag of side_output")
    _check_condition(f"The condition of the side output {tag.id!r}", condition)
    parent = _Parent(df, {tag.id: condition})
    late, args = F.coalesce(parent.conditions[tag.id], F.lit(False)), (df, tag, condition)
    return (
        parent.selection("side_output", args, ~late, Selected()),
        parent.selection("side_output", args, late, Selected(tag=tag.id)),
    )


class _Parent:
    """A DataFrame whose rows are computed once for several selections."""

    def __init__(self, df: DataFrame, conditions: Mapping[str, Column | str]) -> None:
        self.conditions = {name: F.expr(one) if isinstance(one, str) else one for name, one in conditions.items()}
        """By name, which rows are selected. One that depends on chance is a column of the parent."""
        self._added: list[str] = []
        self._shared: DataFrame | None = None
        self._kept: DataFrame | None = None
        recorder = listening()
        with serving(recorder):
            self._df = self._decided(df, recorder)

    def _decided(self, df: DataFrame, recorder: Recorder | None) -> DataFrame:
        """Return the DataFrame with a column for each condition that depends on chance."""
        for name, condition in list(self.conditions.items()):
            asked = items(execution_of(df.where(condition)).analyzed().expressions())
            if not all(one.deterministic() for one in asked):
                added = f"selected_{uuid.uuid4().hex}"
                before, df = df, df.withColumn(added, condition)
                self._added.append(added)
                self.conditions[name] = F.col(added)
                if recorder is not None:
                    recorder.calls.record("split", f"split by {name!r}", recorder.location(), [before], df)
        return df

    def selection(
        self, method: str, args: tuple[Any, ...], condition: Column, selected: Selected, kind: str = "side_output"
    ) -> DataFrame:
        """Return the rows for which a condition is true; a cell other than the one that split may ask for them."""
        recorder = listening()
        is_job = recorder is not None and recorder.mode is not CaptureMode.LINES
        with serving(recorder):
            rows = self._df if is_job or self._df.isStreaming else self._persisted()
            made = rows.where(condition)
            made = made.drop(*self._added) if self._added else made
            if recorder is not None:
                text = recorder.source.call_text(user_frame(), method, args, {})
                recorder.calls.record(kind, text, recorder.location(), [self._df], made)
                if is_job and not made.isStreaming:
                    recorder.calls.select(self._df, made, selected)
        return made

    def _persisted(self) -> DataFrame:
        """Return the rows as they are kept where no job spans the selections."""
        if self._shared is None:
            self._shared, self._kept = persisted(self._df)
        return self._shared

    def unpersist(self) -> None:
        """Release the rows, if they are kept."""
        if self._kept is not None:
            self._kept.unpersist()


def _check_frame(function: str, df: Any) -> None:
    if is_connect(df):
        raise SparkConnectSessionError
    if not isinstance(df, DataFrame):
        raise SplitArgumentsError(type(df), "a DataFrame", f"df of {function}")


def _check_condition(what: str, condition: Any) -> None:
    from pyspark.sql import Column

    if not isinstance(condition, Column) and not (isinstance(condition, str) and condition.strip()):
        raise SplitArgumentsError(condition, "a column or an expression in SQL", what)
