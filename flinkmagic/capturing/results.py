"""Finds the results of a program without writes: the DataFrames that it bound to names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from flinkmagic.capturing.driver import capture_reader

if TYPE_CHECKING:
    from flinkmagic.capturing.program import Program


def bound_frames(namespace: Mapping[str, Any]) -> dict[str, DataFrame]:
    """Return the DataFrames that have a name of the user's (IPython's own begin with an underscore)."""
    return {
        name: value
        for name, value in list(namespace.items())
        if isinstance(value, DataFrame) and not name.startswith("_")
    }


def name_results(
    program: Program,
    namespace_before: Mapping[str, Any],
    namespace_after: Mapping[str, Any],
    *,
    has_results: bool = True,
) -> None:
    """Set a program's `variables` to the DataFrames that were bound between two states of a namespace.

    If the program writes nothing and may have results, those that it did nothing else with become its `results`. A
    streaming DataFrame is none: it has no rows to keep. Neither is a command's answer: the command has run.
    """
    before, after = bound_frames(namespace_before), bound_frames(namespace_after)
    bound = {name: df for name, df in after.items() if before.get(name) is not df}
    program.variables = dict(sorted(bound.items(), key=lambda item: program.registry.add(item[1])))
    for df in program.variables.values():
        program.registry.keep(df)
    program.frames = dict(program.registry.kept)
    program.results = {}
    if not has_results or program.streams or program.writes or program.skipped or program.deployed or program.immediate:
        return
    used = program.used.union(*(call.inputs for call in program.calls))
    first = {id(df): name for name, df in reversed(program.variables.items())}
    program.results = {
        name: df
        for name, df in program.variables.items()
        if first[id(df)] == name and program.registry.add(df) not in used and _has_rows_to_keep(df)
    }


def last_frames(program: Program, namespace: Mapping[str, Any]) -> dict[str, DataFrame]:
    """Return the DataFrames that a captured program has named, by names still bound, except what others of them need.

    One that only an action continues from (``late.groupBy("hour").count().show()``) is among them: the action has run.
    """
    found = {name: df for name, df in program.variables.items() if namespace.get(name) is df}
    made_of = {call.output: call.inputs for call in program.calls}
    inner: set[int] = set()
    waiting = [number for df in found.values() for number in made_of.get(program.registry.add(df), ())]
    while waiting:
        number = waiting.pop()
        if number not in inner:
            inner.add(number)
            waiting.extend(made_of.get(number, ()))
    return {name: df for name, df in found.items() if program.registry.add(df) not in inner and _has_rows_to_keep(df)}


def _has_rows_to_keep(df: DataFrame) -> bool:
    if capture_reader.is_part_of_another(df._jdf.queryExecution()) or df.isStreaming:
        return False
    return bool(df._jdf.queryExecution().commandExecuted().nodeName() != "CommandResult")
