"""Refreshes the user's own session, which must see the table that a job has written on a clone.

Each session keeps the relations of its catalog's tables, including their lists of files; a command that runs on a clone
renews the clone's. DataFrames of a table share the session's relation: after a write that adds to the table, plain
Spark lists its files again for all of them. The command itself renews what sessions share (Spark's cache of data, the
catalogs themselves). Tables of other catalogs need nothing: the command holds the very catalog of the user's session.
Seen on 4.3.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flinkmagic.jvm.java import session_state

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

    from flinkmagic.capturing.session_snapshot import SessionSnapshot
    from flinkmagic.capturing.writes.deferred_write import DeferredWrite

_NAMES = {
    "AppendData": "append",
    "CreateTableAsSelect": "create",
    "OverwriteByExpression": "overwrite",
    "OverwritePartitionsDynamic": "overwritePartitions",
    "ReplaceTableAsSelect": "replace",
}


@dataclass(frozen=True, eq=False)
class UserWrite:
    """A deferred write, in the session in which the user asked for it."""

    spark: Any
    command: JavaObject
    """Spark's command as it was analysed there."""
    kind: str
    """The command's class, without its package."""
    is_table: bool
    """Whether it writes a table of some catalog."""
    settings: SessionSnapshot
    """The session as it was on the write's own line."""
    replaces: bool = False
    """Whether it puts another table in the place of one."""

    @property
    def query_name(self) -> str:
        """Spark's name for the command's run, as listeners see it (`QueryExecution.commandExecutionName`)."""
        return _NAMES.get(self.kind, "command")

    def prepare(self, jsession: JavaObject) -> None:
        """Make the clone on which the command runs use its line's Hadoop settings, even if they changed since."""
        self.settings.apply_hadoop_to(jsession.sessionState().conf())

    def refresh(self) -> None:
        """Renew what the session knows of the table that the command has written, or failed to write."""
        identifier = _identifier(self.command, self.kind) if self.is_table else None
        if identifier is None:
            return
        catalog = session_state(self.spark).catalog()
        if catalog.tableExists(identifier):
            if not self.replaces:
                # `DataSource.planForWritingFileFormat` takes the index that a write renews from this relation, too.
                self.spark._jsparkSession.table(identifier.quotedString()).queryExecution().analyzed().refresh()
            catalog.refreshTable(identifier)
        else:
            catalog.invalidateCachedTable(catalog.qualifyIdentifier(identifier))


def user_write(write: DeferredWrite) -> UserWrite:
    """Return a deferred write in its session."""
    is_table = write.facts.target.table is not None
    replaces = write.kind == "SaveAsV1TableCommand" and write.facts.overwrites
    return UserWrite(write.df.sparkSession, write.command, write.kind, is_table, write.session, replaces)


def writes_files(write: DeferredWrite) -> bool:
    """Return whether Spark itself writes files, so that its target is the content of a folder."""
    return write.facts.target.table is None and write.kind == "InsertIntoHadoopFsRelationCommand"


def _identifier(command: JavaObject, kind: str) -> Any:
    """Return the name of a command's table in the session's own catalog; None if it writes no such table."""
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
