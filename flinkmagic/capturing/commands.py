"""What a SQL text, a catalog call or another line that runs at once reads and changes, before it runs.

Only asked while writes are pending. What cannot be known counts as reading and changing everything.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from flinkmagic.capturing.java import items, java_class, option, session_state, simple_name, skip_commands
from flinkmagic.capturing.pending import Effects
from flinkmagic.capturing.targets import PathResolver, Source, Target, resolve_uri, sources_of

if TYPE_CHECKING:
    from flinkmagic.capturing.recorder import Recorder

_TABLE_IDENTIFIER = "org.apache.spark.sql.catalyst.TableIdentifier"
_UNKNOWN = Effects(unknown=True)

_OPAQUE = frozenset(
    {"UnresolvedInsert", "PlanWithUnresolvedIdentifier", "UnresolvedExecuteImmediate", "CompoundBody"}
)
_HARMLESS = frozenset(
    {
        "AddJarsCommand",
        "AddFilesCommand",
        "AddArchivesCommand",
        "CreateFunction",
        "CreateFunctionCommand",
        "CreateNamespace",
        "CreateUserDefinedFunction",
        "CreateVariable",
        "CreateVariables",
        "CreateView",
        "CreateViewCommand",
        "DropFunction",
        "DropFunctionCommand",
        "DropTempViewCommand",
        "DropVariable",
        "DropView",
        "ExplainCommand",
        "RefreshFunction",
        "ResetCommand",
        "SetCatalogAndNamespace",
        "SetCatalogCommand",
        "SetCommand",
        "SetNamespaceCommand",
        "SetVariable",
        "UncacheTable",
    }
)
"""Commands that touch settings, names and views: a pending write has its own snapshot of these."""
_HARMLESS_PREFIXES = ("Show", "Describe", "List")
_SHOWS_TABLES = ("ShowTable", "ShowCreateTable", "ShowColumns", "ShowPartitions", "Describe")
"""Harmless, unless a table is still to be made, or to be made anew."""
_ON_TABLES = frozenset(
    {
        "CacheTable",
        "CacheTableAsSelect",
        "CreateTable",
        "CreateTableAsSelect",
        "DeleteFromTable",
        "DropTable",
        "InsertIntoStatement",
        "MergeIntoTable",
        "RefreshTable",
        "ReplaceTable",
        "ReplaceTableAsSelect",
        "TruncateTable",
        "UpdateTable",
    }
)
"""Commands that touch the tables that they name, and the location that they give, and nothing else."""
_NAMES = ("UnresolvedIdentifier", "UnresolvedTable", "UnresolvedTableOrView", "UnresolvedRelation")


def sql_effects(recorder: Recorder, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Effects:
    """What ``spark.sql(text, ...)`` reads and changes; a plain query's reads are seen when it is analysed."""
    spark = recorder.spark
    text = args[1] if len(args) > 1 else kwargs.get("sqlQuery", "")
    formatted = {name for name in kwargs if name not in ("sqlQuery", "args")}
    try:
        parsed = session_state(spark).sqlParser().parsePlan(_without_fields(text, formatted))
    except PySparkException:
        # Not SQL: Spark's own error is about to say so. With `{fields}` put in, it may well be.
        return _UNKNOWN if formatted else Effects()
    if _defines_tables(recorder) and simple_name(parsed).startswith(_SHOWS_TABLES):
        return _UNKNOWN
    return _plan_effects(spark, recorder.resolver, parsed)


def _defines_tables(recorder: Recorder) -> bool:
    return any(write.defines for write in recorder.pending.writes)


def _without_fields(text: str, formatted: set[str]) -> str:
    """The text with an identifier for each `{field}`; DataFrames that stand there are checked as arguments are."""
    if not formatted:
        return text
    pieces = string.Formatter().parse(text)
    return "".join(literal + ("" if field is None else f"`{field}`") for literal, field, _, _ in pieces)


def _plan_effects(spark: Any, resolver: PathResolver, parsed: Any) -> Effects:
    reads: list[Source] = []
    changes: list[Target] = []
    for node in _nodes(parsed):
        kind = simple_name(node)
        if kind in _OPAQUE:
            return _UNKNOWN
        if kind == "UnresolvedRelation":
            reads += _relation_reads(spark, resolver, node)
        elif kind == "InsertIntoDir":
            location = node.storage().locationUri()
            if location.isEmpty():
                return _UNKNOWN
            changes.append(resolver.target(location.get().toString()))
        elif kind in _ON_TABLES:
            changes += _table_changes(spark, resolver, node, kind)
        elif _is_command(node) and not _is_harmless(kind):
            return _UNKNOWN
    return Effects(tuple(reads), tuple(changes))


def _is_command(node: Any) -> bool:
    return any(i.getSimpleName() in ("Command", "UnaryCommand", "LeafCommand") for i in _interfaces(node))


def _interfaces(node: Any) -> Iterator[Any]:
    jclass = node.getClass()
    open_ = [jclass]
    while open_:
        current = open_.pop()
        yield current
        open_ += list(current.getInterfaces())
        if current.getSuperclass() is not None:
            open_.append(current.getSuperclass())


def _is_harmless(kind: str) -> bool:
    return kind in _HARMLESS or kind.startswith(_HARMLESS_PREFIXES)


def _nodes(plan: Any) -> Iterator[Any]:
    """All nodes of a parsed plan, with those of common table expressions and subqueries."""
    open_ = [plan, *items(plan.subqueriesAll())]
    while open_:
        node = open_.pop()
        yield node
        open_ += items(node.children())
        if simple_name(node) == "UnresolvedWith":
            open_ += items(node.innerChildren())
        if simple_name(node) == "ExplainCommand":
            open_.append(node.logicalPlan())


def _relation_reads(spark: Any, resolver: PathResolver, relation: Any) -> Iterator[Source]:
    """What an unresolved relation stands for: files named in its place, a view, or a table.

    A table is not analysed: that would list its files, and Spark remembers the list for the whole session.
    """
    parts = items(relation.multipartIdentifier())
    if len(parts) == 2 and "/" in parts[1]:
        yield Source(path=resolver.target(parts[1]).path, pattern=True)
        return
    if _is_view(spark, parts):
        state = session_state(spark)
        yield from sources_of(state.executePlan(relation, skip_commands(spark._jvm)).analyzed())
        return
    table = table_target(spark, parts)
    yield Source(path=table.path, table=table.table)


def _is_view(spark: Any, parts: Sequence[str]) -> bool:
    jvm, catalog = spark._jvm, session_state(spark).catalog()
    database = option(jvm, parts[-2] if len(parts) > 1 else None)
    identifier = java_class(jvm, _TABLE_IDENTIFIER)(parts[-1], database)
    return bool(catalog.isTempView(identifier)) or bool(catalog.isView(jvm.PythonUtils.toSeq(list(parts))))


def _table_changes(spark: Any, resolver: PathResolver, node: Any, kind: str) -> Iterator[Target]:
    if kind == "InsertIntoStatement":
        named = [node.table()]
    elif kind == "MergeIntoTable":
        named = [node.targetTable()]
    elif kind in ("DeleteFromTable", "UpdateTable"):
        named = [node.table()]
    else:
        named = items(node.children())
    for table in named:
        name = simple_name(table)
        if name in ("UnresolvedIdentifier",):
            yield table_target(spark, items(table.nameParts()))
        elif name in ("UnresolvedTable", "UnresolvedTableOrView") or (
            name == "UnresolvedRelation" and kind in _WRITES_RELATION
        ):
            yield table_target(spark, items(table.multipartIdentifier()))
    if kind in _WITH_LOCATION:
        location = node.tableSpec().location()
        if location.isDefined():
            yield resolver.target(location.get())


_WRITES_RELATION = frozenset({"InsertIntoStatement", "MergeIntoTable", "DeleteFromTable", "UpdateTable"})
_WITH_LOCATION = frozenset({"CreateTable", "CreateTableAsSelect", "ReplaceTable", "ReplaceTableAsSelect"})


def table_target(spark: Any, parts: Sequence[str]) -> Target:
    """The identity of a table, which need not exist, and the folder where it lies or would be made."""
    state = session_state(spark)
    catalogs = state.catalogManager()
    if len(parts) > 1 and catalogs.isCatalogRegistered(parts[0]):
        catalog, parts = parts[0], parts[1:]
    else:
        catalog = catalogs.currentCatalog().name()
    if len(parts) == 1:
        parts = [*catalogs.currentNamespace(), parts[0]]
    path = None
    if catalog == "spark_catalog" and len(parts) == 2:
        path = _session_table_path(spark, state.catalog(), *parts)
    return Target(path=path, table=".".join([catalog, *parts]).lower())


def _session_table_path(spark: Any, catalog: Any, database: str, table: str) -> str | None:
    jvm = spark._jvm
    identifier = java_class(jvm, _TABLE_IDENTIFIER)(table, option(jvm, database))
    try:
        if catalog.tableExists(identifier):
            location = catalog.getTableMetadata(identifier).storage().locationUri()
            uri = location.get() if location.isDefined() else None
        else:
            uri = catalog.defaultTablePath(identifier)
    except PySparkException:  # no such database: Spark's own error is about to say so
        return None
    return None if uri is None else resolve_uri(java_class(jvm, "org.apache.hadoop.fs.Path")(uri).toString())


def named_table(recorder: Recorder, name: str) -> Target:
    """The table of a name as it was written."""
    parser = session_state(recorder.spark).sqlParser()
    try:
        return table_target(recorder.spark, items(parser.parseMultipartIdentifier(name)))
    except PySparkException:  # no name: Spark's own error is about to say so
        return Target(table=name.lower())


def table_effects(recorder: Recorder, name: str) -> Effects:
    """``table(name)``, as far as it is known before the table's files are listed."""
    parser = session_state(recorder.spark).sqlParser()
    try:
        relation = parser.parsePlan(f"TABLE {name}")
    except PySparkException:  # no name: Spark's own error is about to say so
        return Effects()
    return _plan_effects(recorder.spark, recorder.resolver, relation)


def table_writer_effects(recorder: Recorder, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Effects:
    """``mergeInto(table)``, when it writes."""
    name = recorder.tables.get(args[0])
    if name is None:
        return _UNKNOWN
    df = getattr(args[0], "_df", None) or getattr(args[0], "_source_df", None)
    reads = _reads(df) if df is not None else ()
    return Effects(reads, (named_table(recorder, name),), unknown=df is None, fresh=False)


def catalog_effects(recorder: Recorder, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Effects:
    """Calls of `Catalog` that change the table named first."""
    name = args[1] if len(args) > 1 else kwargs.get("tableName", kwargs.get("viewName"))
    path = args[2] if len(args) > 2 else kwargs.get("path")
    changes = [named_table(recorder, str(name))]
    if isinstance(path, str):
        changes.append(recorder.resolver.target(path))
    return Effects(changes=tuple(changes))


def lookup_effects(recorder: Recorder, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Effects:
    """Calls of `Catalog` that look a table up: they need it made, not filled."""
    name = args[1] if len(args) > 1 else kwargs.get("tableName")
    if not _defines_tables(recorder):
        return Effects()
    if name is None:
        return _UNKNOWN
    table = named_table(recorder, str(name))
    wanted = any(write.defines and write.target.overlaps(table) for write in recorder.pending.writes)
    return Effects(reads=(Source(path=table.path, table=table.table),) if wanted else ())


def listing_effects(recorder: Recorder, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Effects:
    """``Catalog.listTables``."""
    return _UNKNOWN if _defines_tables(recorder) else Effects()


def path_effects(recorder: Recorder, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Effects:
    """``save(path)`` of a model."""
    path = args[1] if len(args) > 1 else kwargs.get("path")
    return Effects(changes=(recorder.resolver.target(str(path)),))


def unknown_effects(recorder: Recorder, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Effects:
    """A call that may touch anything."""
    return _UNKNOWN


def _reads(df: Any) -> tuple[Source, ...]:
    try:
        return sources_of(df._jdf.queryExecution().analyzed())
    except Py4JError:
        return ()
