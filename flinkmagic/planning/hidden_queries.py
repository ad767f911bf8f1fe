"""Finds the query of write commands that hide it from Spark's planner.

``saveAsTable``, the ``create`` and ``replace`` of tables, and writes to sources of version 1 (JDBC) are commands
without children: Spark plans their query only when they run, inside their own plan. To make the query's stages part of
the job, the query is planned separately, and the command runs over its rows (`CommandRows.java`). The guards against
overwriting an input check the original command beforehand: over rows they would be blind. Seen on 4.3.0; on 3.5.9 for
sources of version 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

_HIDE_THEIRS = frozenset(
    {
        "CreateDataSourceTableAsSelectCommand",
        "CreateTableAsSelect",
        "InsertIntoDataSourceCommand",
        "ReplaceTableAsSelect",
        "SaveAsV1TableCommand",
        "SaveIntoDataSourceCommand",
    }
)
INTO_RELATION = frozenset({"AppendData", "OverwriteByExpression", "OverwritePartitionsDynamic"})
"""Commands that hand rows to a source of version 2, which may be one of the user's own in Python."""


def hidden_query(command: JavaObject, kind: str) -> JavaObject | None:
    """Return the analysed query of a command of a class that hides it; None if Spark plans it with the command."""
    if kind in _HIDE_THEIRS or (kind in INTO_RELATION and not _takes_batches(command.table())):
        return command.query()
    return None


def _takes_batches(relation: Any) -> bool:
    """Return whether tasks write a table of version 2; one with only the write of version 1 gets a DataFrame."""
    return "BATCH_WRITE" in {str(capability) for capability in relation.table().capabilities()}
