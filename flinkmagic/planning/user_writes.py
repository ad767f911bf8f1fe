"""A write as the user's own session knows it, which must see the table that a job has written on a clone of it.

Each session keeps the relations of its catalog's tables, their lists of files included; a command that runs on a clone
renews the clone's. What sessions share (Spark's cache of data, the catalogs themselves) is renewed by the command.
Tables of other catalogs need nothing: the command holds the very catalog of the user's session. Seen on 4.3.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flinkmagic.capturing.java import simple_name

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject


@dataclass(frozen=True, eq=False)
class UserWrite:
    """A deferred write, in the session in which the user asked for it.

    Attributes
    ----------
    spark : SparkSession
        That session.
    command : py4j.java_gateway.JavaObject
        Spark's command as it was analysed there.
    """

    spark: Any
    command: JavaObject

    def refresh(self) -> None:
        """Renew what the session knows of the table that the command has written, or failed to write."""
        identifier = _identifier(self.command)
        if identifier is None:
            return
        catalog = self.spark._jsparkSession.sessionState().catalog()
        if catalog.tableExists(identifier):
            catalog.refreshTable(identifier)
        else:
            catalog.invalidateCachedTable(catalog.qualifyIdentifier(identifier))


def writes_files(command: JavaObject) -> bool:
    """Whether Spark itself writes files, so that its target is what lies in a folder."""
    return simple_name(command) == "InsertIntoHadoopFsRelationCommand"


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
