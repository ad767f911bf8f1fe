"""Finds the results of a program without writes: the DataFrames that it bound to names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from flinkmagic.capturing.driver import capture_reader
from flinkmagic.jvm.java import execution_of

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
    program: Program, before: Mapping[str, Any], after: Mapping[str, DataFrame], *, has_results: bool = True
) -> None:
    """Set a program's `variables` to the DataFrames that were bound between two states of a namespace (`bound_frames`).

    If the program writes nothing and may have results, those that it did nothing else with become its `results`. A
    streaming DataFrame is none: it has no rows to keep. Neither is a command's answer: the command has run.
    """
    bound = {name: df for name, df in after.items() if before.get(name) is not df}
    lineage, eager = program.lineage, program.eager
    program.variables = dict(sorted(bound.items(), key=lambda item: lineage.registry.add(item[1])))
    for df in program.variables.values():
        lineage.registry.keep(df)
    lineage.frames = dict(lineage.registry.kept)
    program.results = {}
    if not has_results or program.streams or program.writes or eager.skipped or eager.writes or eager.statements:
        return
    used = lineage.used.union(*(call.inputs for call in lineage.calls))
    first = {id(df): name for name, df in reversed(program.variables.items())}
    program.results = {
        name: df
        for name, df in program.variables.items()
        if first[id(df)] == name and lineage.registry.add(df) not in used and _has_rows_to_keep(df)
    }


def last_frames(program: Program, namespace: Mapping[str, Any]) -> dict[str, DataFrame]:
    """Return the DataFrames that a captured program has named, by names still bound, except what others of them need.

    One that only an action continues from (``late.groupBy("hour").count().show()``) is among them: the action has run.
    """
    found = {name: df for name, df in program.variables.items() if namespace.get(name) is df}
    number = program.lineage.registry.add
    inner = program.lineage.ancestors(map(number, found.values()))
    return {name: df for name, df in found.items() if number(df) not in inner and _has_rows_to_keep(df)}


def _has_rows_to_keep(df: DataFrame) -> bool:
    if capture_reader.is_part_of_another(execution_of(df)) or df.isStreaming:
        return False
    return bool(execution_of(df).commandExecuted().nodeName() != "CommandResult")
