"""Judges what a parsed SQL statement reads and changes, before it is analysed or run.

Every statement is judged by the tables that it names, be it one of many in a script: it changes them, unless a table
below says otherwise. One that names none, and that no table below knows, may read and change anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from flinkmagic.capturing.driver.sql_reader import SqlNode, constant, nodes_of, parsed
from flinkmagic.capturing.sql.cached_data import cache_effects, table_cache_effects
from flinkmagic.capturing.writes.pending import Cause, Effects
from flinkmagic.capturing.writes.tables import is_view, name_parts, namespace_targets, table_target
from flinkmagic.capturing.writes.targets import PathResolver, Source, Target, sources_of
from flinkmagic.jvm.java import items, query_execution, session_state, simple_name

if TYPE_CHECKING:
    from flinkmagic.capturing.writes.captured_session import CapturedSession

_HARMLESS = frozenset(
    {
        "AddArchivesCommand",
        "AddFilesCommand",
        "AddJarsCommand",
        "CacheTableAsSelect",
        "CommentOnNamespace",
        "CompoundBody",
        "CreateFunction",
        "CreateFunctionCommand",
        "CreateNamespace",
        "CreateUserDefinedFunction",
        "CreateVariable",
        "CreateVariables",
        "CreateViewCommand",
        "DescribeFunction",
        "DescribeNamespace",
        "DescribeQueryCommand",
        "DropFunction",
        "DropFunctionCommand",
        "DropTempViewCommand",
        "DropVariable",
        "ExplainCommand",
        "RefreshFunction",
        "ResetCommand",
        "SetCatalogAndNamespace",
        "SetCatalogCommand",
        "SetCommand",
        "SetNamespaceCommand",
        "SetNamespaceProperties",
        "SetPathCommand",
        "SetVariable",
        "ShowCatalogsCommand",
        "ShowCollationsCommand",
        "ShowCurrentNamespaceCommand",
        "ShowFunctions",
        "ShowFunctionsCommand",
        "ShowNamespaces",
        "ShowNamespacesCommand",
        "ShowProceduresCommand",
    }
)
"""Statements that touch settings, names and views: a pending write has its own snapshot of these. What their queries
read counts."""
_LOOKS = ("Comment", "Describe", "List", "Show")
"""How statements begin that look at a table's entry in the catalog: the table has to exist, but need not be filled."""
_READS = frozenset({"AnalyzeColumn", "AnalyzeTable", "AnalyzeTables", "CacheTable", "ShowPartitions"})
"""Statements that read the tables which they name, and change no rows."""
_ON_CACHE = frozenset({"ClearCacheCommand", "UncacheTable"})
_WITH_LOCATION = frozenset({"CreateTable", "CreateTableAsSelect", "ReplaceTable", "ReplaceTableAsSelect"})
_NAMESPACES = frozenset({"CurrentNamespace", "UnresolvedNamespace"})
_NAMES = _NAMESPACES | {
    "PlanWithUnresolvedIdentifier",
    "UnresolvedIdentifier",
    "UnresolvedRelation",
    "UnresolvedTable",
    "UnresolvedTableOrView",
    "UnresolvedView",
}
_ROWS = frozenset(
    {
        "Call",
        "CreateTableAsSelect",
        "DeleteFromTable",
        "InsertIntoDir",
        "InsertIntoStatement",
        "LoadData",
        "MergeIntoTable",
        "OverwriteByExpression",
        "ReplaceTableAsSelect",
        "TruncatePartition",
        "TruncateTable",
        "UnresolvedInsert",
        "UnresolvedProcedure",
        "UpdateTable",
    }
)


def changes_rows(nodes: Sequence[SqlNode], spark: Any) -> bool:
    """Return whether one of the statements changes rows of a table or a folder."""
    return any(
        node.kind in _ROWS or (node.kind == "UnresolvedExecuteImmediate" and _immediate_changes(node, nodes, spark))
        for node in nodes
        if not _is_explained(node, nodes)
    )


def _immediate_changes(node: SqlNode, nodes: Sequence[SqlNode], spark: Any) -> bool:
    inner = immediate_plan(spark, node, nodes)
    return inner is None or changes_rows(nodes_of(inner), spark)


def immediate_plan(spark: Any, node: SqlNode, nodes: Sequence[SqlNode]) -> Any:
    """Return what an ``EXECUTE IMMEDIATE`` is about to run; None if that is known only then."""
    expression = node.plan.sqlStmtStr()
    if nodes[0].kind == "CompoundBody" and simple_name(expression) != "Literal":
        return None  # a variable of the script may have the name
    text = constant(spark, expression)
    try:
        return None if text is None else parsed(spark, text)
    except PySparkException:  # Spark is about to raise its own error
        return None


def parts_of(spark: Any, node: SqlNode) -> Sequence[str] | None:
    """Return the parts of a node's name; None if it becomes known only when the statement runs."""
    if node.name is not None:
        return node.name
    text = constant(spark, node.plan.identifierExpr())
    try:
        return None if text is None else name_parts(spark, text)
    except PySparkException:  # not a name: Spark is about to raise its own error
        return None


def _is_explained(node: SqlNode, nodes: Sequence[SqlNode]) -> bool:
    while node.owner >= 0:
        node = nodes[node.owner]
        if node.kind == "ExplainCommand":  # the statement inside it is not run
            return True
    return False


class SqlEffects:
    """Judges statements of one session."""

    def __init__(self, captured: CapturedSession, spark: Any) -> None:
        self._captured = captured
        self._pending = captured.pending
        self._resolver: PathResolver = captured.resolver
        self._spark = spark
        self._reads: list[Source] = []
        self._changes: list[Target] = []
        self._is_unknown = False
        self._cause = Cause.SPARK

    def of(self, nodes: Sequence[SqlNode]) -> Effects:
        """Return the effects of a statement with these nodes."""
        self._judge(nodes)
        return Effects(tuple(self._reads), tuple(self._changes), self._is_unknown, cause=self._cause)

    def _judge(self, nodes: Sequence[SqlNode]) -> None:
        owners_with_names = {node.owner for node in nodes if node.kind in _NAMES}
        for place, node in enumerate(nodes):
            if node.is_statement:
                self._judge_statement(node, nodes, place in owners_with_names)
            if node.kind in _NAMES:
                self._judge_name(node, nodes)

    def _let_go(self, kind: str, plan: Any) -> None:
        """Judge ``CLEAR CACHE`` and ``UNCACHE TABLE``: pending writes may be planned over those cached rows."""
        if kind == "UncacheTable":
            name = ".".join(f"`{str(part).replace('`', '``')}`" for part in items(plan.table().multipartIdentifier()))
            effects = table_cache_effects(self._captured, name)
        else:
            effects = cache_effects(self._captured)
        self._is_unknown, self._cause = self._is_unknown or effects.unknown, effects.cause

    def _judge_statement(self, node: SqlNode, nodes: Sequence[SqlNode], has_names: bool) -> None:
        kind, plan = node.kind, node.plan
        if _is_explained(node, nodes):
            return
        if kind == "UnresolvedExecuteImmediate":
            inner = immediate_plan(self._spark, node, nodes)
            if inner is None:
                self._is_unknown = True
            else:
                self._judge(nodes_of(inner))
        elif kind in _ON_CACHE:
            self._let_go(kind, plan)
        elif kind == "CreateSQLFunctionCommand":
            self._judge_body(plan)
        elif kind == "CreateTempViewUsing":
            path = plan.options().get("path")
            self._reads += [self._pattern(path.get())] if path.isDefined() else []
        elif kind == "InsertIntoDir":
            location = plan.storage().locationUri()
            self._change_path(location.get().toString() if location.isDefined() else None)
        elif kind in ("LoadData", "RefreshResource"):
            self._change_path(plan.path())
        elif kind == "RenameTable":
            self._changes.append(table_target(self._spark, items(plan.newName())))
        elif kind == "AddPartitions":
            locations = [part.location() for part in items(plan.parts())]
            self._changes += [self._resolver.target(place.get()) for place in locations if place.isDefined()]
        elif kind in _WITH_LOCATION:
            location = plan.tableSpec().location()
            self._changes += [self._resolver.target(location.get())] if location.isDefined() else []
        elif not (has_names or kind in _HARMLESS or kind.startswith(_LOOKS)):
            self._is_unknown = True

    def _judge_body(self, plan: Any) -> None:
        """Judge the body of a SQL function, which is analysed when the function is made."""
        for text, prefix in ((plan.queryText(), ""), (plan.exprText(), "SELECT ")):
            if text.isDefined():
                self._judge(nodes_of(parsed(self._spark, prefix + text.get())))

    def _change_path(self, path: str | None) -> None:
        if path is None:
            self._is_unknown = True
        else:
            self._changes.append(self._resolver.target(path))

    def _pattern(self, path: str) -> Source:
        return Source(path=self._resolver.target(path).path, pattern=True)

    # -- names ---------------------------------------------------------------------------------------------------

    def _judge_name(self, node: SqlNode, nodes: Sequence[SqlNode]) -> None:
        owner = nodes[node.owner] if node.owner >= 0 else None
        if node.kind in _NAMESPACES:
            self._judge_namespace(node, owner)
            return
        parts = parts_of(self._spark, node)
        if parts is None:
            self._is_unknown = True
        elif _is_explained(node, nodes) or owner is None:
            self._reads += self._relation_reads(parts)
        elif node.is_target:
            self._changes.append(table_target(self._spark, parts))
        elif owner.kind in _ON_CACHE:
            pass
        elif node.kind == "UnresolvedRelation" or owner.kind in _READS:
            self._reads += self._relation_reads(parts)
        elif owner.kind in _HARMLESS:
            if node.kind == "PlanWithUnresolvedIdentifier":
                self._reads += self._relation_reads(parts)
        elif owner.kind.startswith(_LOOKS) or _is_model(node, owner):
            self._look(owner, table_target(self._spark, parts))
        else:
            self._changes.append(table_target(self._spark, parts))
            if node.kind == "PlanWithUnresolvedIdentifier":
                self._reads += self._relation_reads(parts)

    def _look(self, owner: SqlNode, table: Target) -> None:
        """Judge a look at a table's description: the table has to exist. An extended description tells its size."""
        in_full = owner.kind == "DescribeRelation" and owner.plan.isExtended()
        if in_full or self._pending.define(table):
            self._reads.append(table.as_source())

    def _judge_namespace(self, node: SqlNode, owner: SqlNode | None) -> None:
        if owner is None or owner.kind in _HARMLESS:
            return
        targets = list(namespace_targets(self._spark, node.name or ()))
        if owner.kind in _READS:
            self._reads += [target.as_source() for target in targets]
        elif owner.kind.startswith(_LOOKS):
            self._reads += [Source(namespace=targets[0].namespace)] if self._pending.define(targets[0]) else []
        else:
            self._changes += targets

    def _relation_reads(self, parts: Sequence[str]) -> Iterator[Source]:
        """Return what a relation is: files named in its place, a view, or a table."""
        if len(parts) == 2 and "/" in parts[1]:
            yield self._pattern(parts[1])
        elif is_view(self._spark, parts):
            state = session_state(self._spark)
            name = ".".join("`" + part.replace("`", "``") + "`" for part in parts)
            relation = state.sqlParser().parsePlan(f"TABLE {name}")
            yield from sources_of(query_execution(self._spark._jvm, state, relation).analyzed())
        else:
            yield table_target(self._spark, parts).as_source()


def _is_model(node: SqlNode, owner: SqlNode) -> bool:
    """Return whether a node is the table after which ``CREATE TABLE … LIKE`` makes another."""
    return owner.kind == "CreateTableLike" and node.kind != "UnresolvedIdentifier"
