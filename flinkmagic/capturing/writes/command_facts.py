"""Describes each of Spark's write commands: where it goes, in which mode, and what it finds there.

Some commands find out only when they run whether their table is there; what they would refuse then is asked here
before, by their own methods. The classes were seen on 4.3.0; 3.5.9 has all but `SaveAsV1TableCommand`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from flinkmagic.capturing.driver.capture_reader import file_write, java_types, partitions_elsewhere
from flinkmagic.capturing.writes import write_commands
from flinkmagic.capturing.writes.deferred_write import WriteFacts
from flinkmagic.capturing.writes.outside_places import jdbc_connection, jdbc_path
from flinkmagic.capturing.writes.tables import resolve_java_uri
from flinkmagic.capturing.writes.targets import Target, relation_sources, relation_target, resolve_uri, table_of
from flinkmagic.capturing.writes.writer_calls import WriterCall
from flinkmagic.jvm.java import items, java_class, option, scala_object, session_state, simple_name, text_map, texts

_SECRET = re.compile(r"secret|password|token|access[.]?key|user|url", re.IGNORECASE)


def facts_of(spark: Any, df: Any, call: WriterCall, command: Any) -> WriteFacts | None:
    """Return the facts of an analysed command; None if the command or its target is unknown."""
    make = _FACTS.get(simple_name(command))
    return None if make is None else make(spark, df, call, command)


# -- files -----------------------------------------------------------------------------------------------------


def _files(spark: Any, df: Any, call: WriterCall, command: Any) -> WriteFacts:
    written = file_write(command, session_state(df.sparkSession))
    mode, path = _MODES[written["mode"]], resolve_uri(written["path"])
    common: dict[str, Any] = {
        "format": written["format"],
        "mode": mode,
        "options": _given(written["options"]),
        "partition_by": tuple(written["columns"]),
        "dynamic": mode == "overwrite" and written["dynamic"],
    }
    if written["table"]:
        table = command.catalogTable()
        place = table_of(table.get())
        return WriteFacts(
            **common,
            target=Target(path=path, table=place.table, also=tuple(map(resolve_uri, written["elsewhere"]))),
            label=str(place.table),
            name=table.get().identifier().table(),
        )
    return WriteFacts(
        **common,
        target=Target(path=path),
        label=written["path"],
        name=written["file"],
        exists=lambda: write_commands.path_exists(spark, command),
        taken=lambda: write_commands.refusal(spark, "outputPathAlreadyExistsError", command.outputPath()),
        check_format=lambda: write_commands.check_format(
            spark, df, command.fileFormat(), command.options(), tuple(written["columns"])
        ),
    )


_MODES = {"Append": "append", "Overwrite": "overwrite", "ErrorIfExists": "errorifexists", "Ignore": "ignore"}


# -- tables of the session's own catalog -----------------------------------------------------------------------


def _save_as_table(spark: Any, df: Any, call: WriterCall, command: Any) -> WriteFacts:
    """Describe ``saveAsTable``: the command makes, replaces or appends to the table, as fits when it runs."""
    return _made_table(spark, df, command.tableDesc(), _MODES[command.mode().toString()], command)


def _create_as_select(spark: Any, df: Any, call: WriterCall, command: Any) -> WriteFacts:
    """Describe ``writeTo(name).create()`` in the session's catalog: analysed, it is what 3.5's saveAsTable runs."""
    return _made_table(spark, df, command.table(), _MODES[command.mode().toString()], None)


def _made_table(spark: Any, df: Any, description: Any, mode: str, command: Any) -> WriteFacts:
    catalog = session_state(spark).catalog()
    identifier = catalog.qualifyIdentifier(description.identifier())
    exists = bool(catalog.tableExists(identifier))
    location = description.storage().locationUri()
    before = catalog.getTableMetadata(identifier) if exists else None
    if location.isDefined():
        uri = location.get()
    elif before is not None and before.storage().locationUri().isDefined():
        uri = before.storage().locationUri().get()
    else:
        uri = catalog.defaultTablePath(identifier)
    path = resolve_java_uri(spark._jvm, uri)
    moves = before is not None and mode == "overwrite" and table_of(before).path != path
    name = ".".join(["spark_catalog", identifier.database().get(), identifier.table()])
    provider = description.provider().get()
    partition_by = tuple(texts(description.partitionColumnNames()))

    def check() -> None:
        if command is not None:
            _check_table(spark, description, command, exists)

    def check_format() -> None:
        # Hive's asks the table, which does not exist yet.
        file_format = _file_format(spark, provider) if provider != "hive" else None
        if file_format is not None and not (exists and mode == "append"):
            properties = description.storage().properties()
            write_commands.check_format(spark, df, file_format, properties, partition_by)

    return WriteFacts(
        format=provider,
        mode=mode,
        target=Target(path=path, table=name.lower()),
        label=name,
        name=identifier.table(),
        options=_shown(text_map(description.storage().properties())),
        partition_by=partition_by,
        takes_folder=not exists and location.isDefined(),
        defines=not (exists and mode == "append"),
        runs_now=moves or (before is not None and before.tableType().name() == "VIEW"),
        exists=lambda: bool(catalog.tableExists(identifier)),
        taken=lambda: write_commands.refusal(spark, "tableAlreadyExistsError", identifier),
        check=check,
        check_format=check_format,
    )


def _check_table(spark: Any, description: Any, command: Any, exists: bool) -> None:
    """Have Spark analyse what `SaveAsV1TableCommand` makes when it runs, and look at the place of a new table."""
    jvm, state = spark._jvm, session_state(spark)
    create = java_class(jvm, "org.apache.spark.sql.execution.datasources.CreateTable")
    write_commands.analysed(spark, create(description, command.mode(), option(jvm, command.query())))
    if not exists:
        state.catalog().validateTableLocation(description)


def in_full(spark: Any, command: Any) -> Any:
    """Return a command that names its table in full, so that no later ``USE`` changes what it means."""
    if simple_name(command) != "SaveAsV1TableCommand":
        return command
    description = command.tableDesc()
    qualified = session_state(spark).catalog().qualifyIdentifier(description.identifier())
    return command.copy(_with_identifier(description, qualified), command.mode(), command.query())


def _with_identifier(description: Any, identifier: Any) -> Any:
    """Return a catalog table under another name: a copy of its case class, whose first parameter is the name."""
    defaults = [getattr(description, f"copy$default${n}")() for n in range(2, description.productArity() + 1)]
    return description.copy(identifier, *defaults)


def _file_format(spark: Any, provider: str) -> Any:
    """Return a provider's file format; None if it has none."""
    sources = java_class(spark._jvm, "org.apache.spark.sql.execution.datasources.DataSource")
    made = sources.lookupDataSource(provider, session_state(spark).conf()).newInstance()
    if "org.apache.spark.sql.execution.datasources.FileFormat" in java_types(made):
        return made
    # Version 2 of a file source, if the session asks for it, names its file format of version 1.
    return made.fallbackFileFormat().newInstance() if "fallbackFileFormat" in dir(made) else None


def _insert_into_source(spark: Any, df: Any, call: WriterCall, command: Any) -> WriteFacts:
    """Describe ``insertInto`` a table whose source takes rows by itself, such as a table of JDBC."""
    relation = command.logicalRelation()
    table = relation.catalogTable()
    name = table_of(table.get()).table if table.isDefined() else call.table
    path = next((source.path for source in relation_sources(relation) if source.path), None)
    return WriteFacts(
        format=table.get().provider().get() if table.isDefined() else simple_name(relation.relation()),
        mode="overwrite" if command.overwrite() else "append",
        target=Target(path=path, table=name),
        label=str(name),
        name=str(name).rsplit(".", 1)[-1],
    )


def _insert_into_hive(spark: Any, df: Any, call: WriterCall, command: Any) -> WriteFacts:
    """Describe ``insertInto`` a table in one of Hive's own formats, whose files Hive's writers make."""
    place = table_of(command.table())
    elsewhere = partitions_elsewhere(command.table(), session_state(df.sparkSession))
    return WriteFacts(
        format="hive",
        mode="overwrite" if command.overwrite() else "append",
        target=Target(path=place.path, table=place.table, also=tuple(map(resolve_uri, elsewhere))),
        label=str(place.table),
        name=command.table().identifier().table(),
        partition_by=tuple(texts(command.table().partitionColumnNames())),
    )


# -- tables of other catalogs, and sources of version 2 --------------------------------------------------------


def _into_relation(mode: str, dynamic: bool = False) -> Callable[..., WriteFacts | None]:
    def facts(spark: Any, df: Any, call: WriterCall, command: Any) -> WriteFacts | None:
        relation = command.table()
        if simple_name(relation.table()) == "PythonTable":
            return None  # its code may write anywhere
        is_table = relation.identifier().isDefined()
        target = relation_target(relation)
        source = call.source if not is_table else ""
        label = str(target) if target.table or target.path else relation.table().name()
        return WriteFacts(
            format=str(source or relation.catalog().get().name()),
            mode=mode,
            target=target,
            label=label,
            name=relation.identifier().get().name() if is_table else str(source),
            options=_shown({key: str(value) for key, value in dict(relation.options()).items()}),
            partition_by=() if not is_table else _transforms(relation.table().partitioning()),
            dynamic=dynamic,
        )

    return facts


def _create_table(spark: Any, df: Any, call: WriterCall, command: Any) -> WriteFacts:
    return _defined(spark, command, "ignore" if command.ignoreIfExists() else "errorifexists")


def _replace_table(spark: Any, df: Any, call: WriterCall, command: Any) -> WriteFacts:
    return _defined(spark, command, "overwrite", must_exist=not command.orCreate())


def _defined(spark: Any, command: Any, mode: str, must_exist: bool = False) -> WriteFacts:
    catalog, identifier = command.name().catalog(), command.name().identifier()
    name = ".".join([catalog.name(), *identifier.namespace(), identifier.name()])
    provider = command.tableSpec().provider()
    return WriteFacts(
        format=provider.get() if provider.isDefined() else str(catalog.name()),
        mode=mode,
        target=Target(table=name.lower()),
        label=name,
        name=identifier.name(),
        options=_shown(text_map(command.writeOptions())),
        partition_by=_transforms(items(command.partitioning())),
        defines=True,
        # Spark refuses immediately to replace a table that does not exist.
        runs_now=must_exist and not catalog.tableExists(identifier),
        exists=lambda: bool(catalog.tableExists(identifier)),
        taken=lambda: write_commands.refusal(spark, "tableAlreadyExistsError", identifier),
    )


def _transforms(transforms: Any) -> tuple[str, ...]:
    return tuple(str(transform.describe()) for transform in transforms)


# -- sources of version 1 --------------------------------------------------------------------------------------


def _into_source(spark: Any, df: Any, call: WriterCall, command: Any) -> WriteFacts | None:
    """Describe ``save`` to a source of version 1, which takes the rows and decides by itself: JDBC, and connectors."""
    options = {key.lower(): value for key, value in text_map(command.options()).items()}
    mode, source = _MODES[command.mode().toString()], call.source
    common: dict[str, Any] = {
        "format": source,
        "mode": mode,
        "options": _shown(options),
    }
    if simple_name(command.dataSource()) == "JdbcRelationProvider":
        return _into_jdbc(spark, command, common)
    if simple_name(command.dataSource()) == "ConsoleSinkProvider":
        return WriteFacts(**common, target=Target(), label="the console", name="console")
    if "path" not in options:
        return None
    jpath = java_class(spark._jvm, "org.apache.hadoop.fs.Path")(options["path"])
    conf = session_state(spark).newHadoopConf()
    qualified = jpath.getFileSystem(conf).makeQualified(jpath)
    return WriteFacts(
        **common,
        target=Target(path=resolve_uri(qualified.toString())),
        label=qualified.toString(),
        name=qualified.getName(),
    )


def _into_jdbc(spark: Any, command: Any, common: dict[str, Any]) -> WriteFacts:
    jdbc = "org.apache.spark.sql.execution.datasources.jdbc"
    jvm = spark._jvm
    options = java_class(jvm, f"{jdbc}.JdbcOptionsInWrite")(
        scala_object(jvm, "org.apache.spark.sql.catalyst.util.CaseInsensitiveMap").apply(command.options())
    )
    url, table = str(options.url()), str(options.table())

    def exists() -> bool:
        with jdbc_connection(jvm, options) as connection:
            return bool(java_class(jvm, f"{jdbc}.JdbcUtils").tableExists(connection, options))

    place = re.sub(r"//[^/@]*@", "//", re.split(r"[;?]", url, maxsplit=1)[0])
    return WriteFacts(
        **common,
        target=Target(path=jdbc_path(url, table)),
        label=f"{table} of {place}",
        name=table.rsplit(".", 1)[-1].strip('"`'),
        exists=exists,
        taken=lambda: write_commands.refusal(spark, "tableOrViewAlreadyExistsError", table),
    )


def _given(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options without the path, and without those that Spark keeps for itself."""
    return {key: value for key, value in options.items() if key.lower() != "path" and not key.startswith("__")}


def _shown(options: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in _given(options).items() if not _SECRET.search(key)}


_FACTS: dict[str, Callable[..., WriteFacts | None]] = {
    "InsertIntoHadoopFsRelationCommand": _files,
    "SaveAsV1TableCommand": _save_as_table,
    "CreateDataSourceTableAsSelectCommand": _create_as_select,
    "InsertIntoDataSourceCommand": _insert_into_source,
    "InsertIntoHiveTable": _insert_into_hive,
    "AppendData": _into_relation("append"),
    "OverwriteByExpression": _into_relation("overwrite"),
    "OverwritePartitionsDynamic": _into_relation("overwrite", dynamic=True),
    "CreateTableAsSelect": _create_table,
    "ReplaceTableAsSelect": _replace_table,
    "SaveIntoDataSourceCommand": _into_source,
}
