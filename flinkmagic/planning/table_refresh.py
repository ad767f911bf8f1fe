"""Lets the user's session see a table that a job has written on a clone of that session.

Each session keeps the relations of its catalog's tables, their lists of files included; a command that runs on a clone
renews the clone's. What sessions share (Spark's cache of data, the catalogs themselves) is renewed by the command.
Tables of other catalogs need nothing: the command holds the very catalog of the user's session. Seen on 3.5.9 and 4.3.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flinkmagic.capturing.java import simple_name

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject


def refresh_written(spark: Any, command: JavaObject) -> None:
    """Renew what a session knows of the table that a command has written, or failed to write."""
    identifier = _identifier(command)
    if identifier is None:
        return
    catalog = spark._jsparkSession.sessionState().catalog()
    if catalog.tableExists(identifier):
        catalog.refreshTable(identifier)
    else:
        catalog.invalidateCachedTable(catalog.qualifyIdentifier(identifier))


def _identifier(command: JavaObject) -> Any:
    """The name of a command's table in the session's own catalog; None where it writes no such table."""
    kind = simple_name(command)
    if kind == "SaveAsV1TableCommand":
        return command.tableDesc().identifier()
    if kind == "CreateDataSourceTableAsSelectCommand":
        return command.table().identifier()
    if kind == "InsertIntoHadoopFsRelationCommand":
        table = command.catalogTable()
    elif kind == "InsertIntoDataSourceCommand":
        table = command.logicalRelation().catalogTable()
    else:
        return None
    return table.get().identifier() if table.isDefined() else None
