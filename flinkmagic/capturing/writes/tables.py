"""Finds tables, views and databases by name, and where they are stored. Nothing is analysed here.

Analysis would list a table's files, and Spark remembers that list for the whole session.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.errors import PySparkException

from flinkmagic.capturing.driver.capture_reader import partitions_elsewhere
from flinkmagic.capturing.writes.targets import Target, resolve_uri
from flinkmagic.jvm.java import items, java_class, option, scala_seq, session_state

SESSION_CATALOG = "spark_catalog"
_TABLE_IDENTIFIER = "org.apache.spark.sql.catalyst.TableIdentifier"


def table_target(spark: Any, parts: Sequence[str]) -> Target:
    """Return the identity of a table, which need not exist, and the folder where it lies or would be made."""
    state = session_state(spark)
    catalog, names = _catalog_and_names(state, parts)
    if len(names) == 1:
        names = [*state.catalogManager().currentNamespace(), names[0]]
    path: str | None = None
    also: tuple[str, ...] = ()
    if catalog == SESSION_CATALOG and len(names) == 2:
        path, also = _session_table_paths(spark, state, *names)
    return Target(path=path, table=".".join([catalog, *names]).lower(), also=also)


def _catalog_and_names(state: Any, parts: Sequence[str]) -> tuple[str, list[str]]:
    catalogs = state.catalogManager()
    if len(parts) > 1 and catalogs.isCatalogRegistered(parts[0]):
        return str(parts[0]), list(parts[1:])
    return str(catalogs.currentCatalog().name()), list(parts)


def _session_table_paths(spark: Any, state: Any, database: str, table: str) -> tuple[str | None, tuple[str, ...]]:
    jvm, catalog = spark._jvm, state.catalog()
    identifier = java_class(jvm, _TABLE_IDENTIFIER)(table, option(jvm, database))
    also: tuple[str, ...] = ()
    try:
        if catalog.tableExists(identifier):
            known = catalog.getTableMetadata(identifier)
            location = known.storage().locationUri()
            uri = location.get() if location.isDefined() else None
            if not known.partitionColumnNames().isEmpty():
                also = tuple(map(resolve_uri, partitions_elsewhere(known, state)))
        else:
            uri = catalog.defaultTablePath(identifier)
    except PySparkException:  # no such database: Spark is about to raise its own error
        return None, ()
    return (None if uri is None else resolve_java_uri(jvm, uri)), also


def resolve_java_uri(jvm: Any, uri: Any) -> str:
    """Return the path of a Java ``URI`` in the form of `resolve_uri`."""
    return resolve_uri(java_class(jvm, "org.apache.hadoop.fs.Path")(uri).toString())


def namespace_targets(spark: Any, parts: Sequence[str]) -> Iterator[Target]:
    """Yield all tables of a database, or of a catalog's namespace; without parts, of the current one."""
    state = session_state(spark)
    if parts and state.catalogManager().isCatalogRegistered(parts[0]):
        catalog, names = str(parts[0]), list(parts[1:])
    else:
        catalogs = state.catalogManager()
        catalog, names = str(catalogs.currentCatalog().name()), list(parts) or list(catalogs.currentNamespace())
    namespace = ".".join([catalog, *names]).lower()
    if catalog != SESSION_CATALOG or len(names) != 1 or not state.catalog().databaseExists(names[0]):
        yield Target(namespace=namespace)
        return
    folder = state.catalog().getDatabaseMetadata(names[0]).locationUri()
    yield Target(path=resolve_java_uri(spark._jvm, folder), namespace=namespace)
    for identifier in items(state.catalog().listTables(names[0])):
        yield table_target(spark, [SESSION_CATALOG, names[0], identifier.table()])


def is_view(spark: Any, parts: Sequence[str]) -> bool:
    """Return whether a name belongs to a temporary view or to a view of the catalog."""
    jvm, catalog = spark._jvm, session_state(spark).catalog()
    database = option(jvm, parts[-2] if len(parts) > 1 else None)
    identifier = java_class(jvm, _TABLE_IDENTIFIER)(parts[-1], database)
    return bool(catalog.isTempView(identifier)) or bool(catalog.isView(scala_seq(jvm, list(parts))))


def name_parts(spark: Any, name: str) -> list[str]:
    """Return the parts of a name as it was written.

    Raises
    ------
    ParseException
        If it is none.
    """
    return items(session_state(spark).sqlParser().parseMultipartIdentifier(name))


def named_table(spark: Any, name: str) -> Target:
    """Return the table of a name as it was written."""
    try:
        return table_target(spark, name_parts(spark, name))
    except PySparkException:  # not a name: Spark is about to raise its own error
        return Target(table=name.lower())
