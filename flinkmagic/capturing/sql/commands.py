"""Judges what a catalog call, or another line that is not deferred, reads and changes, before it runs.

Asked only while writes are pending. What cannot be known counts as reading and changing everything. `sql_effects`
judges SQL statements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from flinkmagic.capturing.call_arguments import Args, Kwargs, argument
from flinkmagic.capturing.driver.sql_reader import nodes_of, parsed
from flinkmagic.capturing.sql.sql_effects import SqlEffects
from flinkmagic.capturing.writes.pending import Effects
from flinkmagic.capturing.writes.tables import name_parts, named_table, namespace_targets

if TYPE_CHECKING:
    from flinkmagic.capturing.writes.captured_session import CapturedSession

_UNKNOWN = Effects(unknown=True)


def _defines_tables(captured: CapturedSession) -> bool:
    return any(write.facts.defines for write in captured.pending.writes)


def table_effects(captured: CapturedSession, name: str) -> Effects:
    """Judge ``table(name)``, as far as it is known before the table's files are listed."""
    try:
        relation = parsed(captured.spark, f"TABLE {name}")
    except PySparkException:  # not a name: Spark is about to raise its own error
        return Effects()
    return SqlEffects(captured, captured.spark).of(nodes_of(relation))


def database_effects(captured: CapturedSession, args: Args, kwargs: Kwargs) -> Effects:
    """Judge ``Catalog.dropDatabase``."""
    name = argument(args, kwargs, 1, "dbName", "")
    try:
        parts = name_parts(captured.spark, str(name))
    except PySparkException:  # not a name: Spark is about to raise its own error
        return Effects()
    return Effects(changes=tuple(namespace_targets(captured.spark, parts)))


def catalog_effects(captured: CapturedSession, args: Args, kwargs: Kwargs) -> Effects:
    """Judge calls of `Catalog` that change the table named first."""
    name = argument(args, kwargs, 1, "tableName", kwargs.get("viewName"))
    path = argument(args, kwargs, 2, "path")
    changes = [named_table(captured.spark, str(name))]
    if isinstance(path, str):
        changes.append(captured.resolver.target(path))
    return Effects(changes=tuple(changes))


def lookup_effects(captured: CapturedSession, args: Args, kwargs: Kwargs) -> Effects:
    """Judge calls of `Catalog` that look a table up: it has to exist, but need not be filled."""
    name = argument(args, kwargs, 1, "tableName")
    if not _defines_tables(captured):
        return Effects()
    if name is None:
        return _UNKNOWN
    table = named_table(captured.spark, str(name))
    is_needed = captured.pending.define(table)
    return Effects(reads=(table.as_source(),) if is_needed else ())


def cached_table_effects(captured: CapturedSession, args: Args, kwargs: Kwargs) -> Effects:
    """Judge ``Catalog.cacheTable``: the cache keeps the list of the table's files as it is now."""
    return table_effects(captured, str(argument(args, kwargs, 1, "tableName")))


def listing_effects(captured: CapturedSession, args: Args, kwargs: Kwargs) -> Effects:
    """Judge ``Catalog.listTables``."""
    return _UNKNOWN if _defines_tables(captured) else Effects()
