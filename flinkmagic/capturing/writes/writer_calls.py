"""Intercepts what PySpark's writers ask of their Java halves, before anything runs.

Spark makes a writer's command by methods of its own that are not public (``saveCommand``, ``saveAsTableCommand``,
``insertIntoCommand``; of ``DataFrameWriterV2`` ``createCommand``, ``replaceCommand``, ``appendCommand``,
``overwriteCommand``, ``overwritePartitionsCommand``). Seen on 4.3.0; 3.5.9 has none of them: there a save to files, or
to a source of version 1, is put together as Spark's own code does it, and everything else is refused by name.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError

from flinkmagic.capturing.driver.capture_reader import java_types
from flinkmagic.jvm.java import java_class, option, scala_seq, session_state

_FILE_DATA_SOURCE = "org.apache.spark.sql.execution.datasources.v2.FileDataSourceV2"
"""The base of Spark's own file sources of version 2; writes take their version 1."""


class NoCommandError(Exception):
    """Says that this version of Spark makes a write's command only to run it immediately."""


@dataclass(frozen=True)
class WriterCall:
    """One write that a Java writer was asked for."""

    jwrite: Any
    """The Java writer with all its settings; None for a statement in SQL."""
    method: str
    """``save``, ``saveAsTable``, ``insertInto``, a method of ``DataFrameWriterV2``, or ``sql``."""
    make: Callable[[], Any]
    """Makes Spark's command, not analysed; raises what Spark refuses."""
    run: Callable[[], Any]
    """Writes immediately, as plain Spark does."""
    path: str | None = None
    """As named in the call."""
    table: str | None = None
    """As written."""
    java_method: str = ""
    """The Java writer's method that PySpark calls, if that is another one than `method`: ``parquet``."""

    @property
    def called(self) -> str:
        """That method as py4j's errors name it: ``o45.parquet``."""
        return f"{self.jwrite._target_id}.{self.java_method or self.method}"

    @property
    def source(self) -> str:
        """The format that the writer was given; empty for a statement in SQL, which has no writer."""
        return "" if self.jwrite is None else str(writer_field(self.jwrite, "source"))

    def command(self, spark: Any, df: Any) -> Any:
        """Return Spark's command, not analysed; None if plain Spark is about to refuse the write.

        Raises
        ------
        NoCommandError
            If this version of Spark makes none that could be held back.
        """
        try:
            return self.make()
        except Py4JError as error:
            if "Command(" not in str(error) or "does not exist" not in str(error):
                raise
        if self.method != "save":
            raise NoCommandError
        return _save_command_3(spark, df, self.jwrite, self.path)


class StandIn:
    """Replaces a Java writer while one of PySpark's writing methods runs; passes settings on to it."""

    def __init__(self, jwrite: Any) -> None:
        self.jwrite = jwrite

    def __getattr__(self, name: str) -> Any:
        def setting(*args: Any) -> StandIn:
            self.jwrite = getattr(self.jwrite, name)(*args)
            return self

        return setting


class DeferringWriter(StandIn):
    """Replaces a Java ``DataFrameWriter``.

    The formats that have a method of their own are set as the Java method of that name sets them.
    """

    def __init__(self, jvm: Any, jwrite: Any, on_write: Callable[[WriterCall], None]) -> None:
        super().__init__(jwrite)
        self._jvm, self._on_write = jvm, on_write

    def save(self, path: str | None = None) -> None:
        self._save("save", *(() if path is None else (path,)), path=path)

    def _save(self, java_method: str, *arguments: Any, path: str | None = None) -> None:
        jwrite, jvm = self.jwrite, self._jvm
        run = functools.partial(getattr(jwrite, java_method), *arguments)
        make = lambda: jwrite.saveCommand(option(jvm, path))  # noqa: E731
        self._on_write(WriterCall(jwrite, "save", make, run, path=path, java_method=java_method))

    def _save_as(self, file_format: str, path: str) -> None:
        self.jwrite = self.jwrite.format(file_format)
        self._save(file_format, path, path=path)

    csv = functools.partialmethod(_save_as, "csv")
    json = functools.partialmethod(_save_as, "json")
    orc = functools.partialmethod(_save_as, "orc")
    parquet = functools.partialmethod(_save_as, "parquet")
    text = functools.partialmethod(_save_as, "text")
    xml = functools.partialmethod(_save_as, "xml")

    def jdbc(self, url: str, table: str, properties: Any) -> None:
        jwrite = self.jwrite
        settings = ("partitioningColumns", "numBuckets", "sortColumnNames", "clusteringColumns")
        if any(field is not None and field.isDefined() for field in (writer_field(jwrite, s) for s in settings)):
            jwrite.jdbc(url, table, properties)  # which refuses them before it does anything
        # `DataFrameWriter.jdbc`: the properties override the options, the two arguments override both.
        jwrite = jwrite.options(properties).option("url", url).option("dbtable", table)
        self.jwrite = jwrite.format("jdbc")
        self._save("jdbc", url, table, properties)

    def _write_table(self, method: str, name: str) -> None:
        jwrite = self.jwrite
        make, run = (functools.partial(getattr(jwrite, called), name) for called in (f"{method}Command", method))
        self._on_write(WriterCall(jwrite, method, make, run, table=name))

    saveAsTable = functools.partialmethod(_write_table, "saveAsTable")  # noqa: N815 - Spark's name
    insertInto = functools.partialmethod(_write_table, "insertInto")  # noqa: N815 - Spark's name


class DeferringTableWriter(StandIn):
    """Replaces a Java ``DataFrameWriterV2``."""

    def __init__(self, jwrite: Any, table: str, on_write: Callable[[WriterCall], None]) -> None:
        super().__init__(jwrite)
        self._table, self._on_write = table, on_write

    def __getattr__(self, name: str) -> Any:
        if name not in _TABLE_COMMANDS:
            return super().__getattr__(name)
        jwrite, (command, *settings) = self.jwrite, _TABLE_COMMANDS[name]

        def write(*arguments: Any) -> None:
            make = functools.partial(getattr(jwrite, command), *settings, *arguments)
            run = functools.partial(getattr(jwrite, name), *arguments)
            self._on_write(WriterCall(jwrite, name, make, run, table=self._table))

        return write


_TABLE_COMMANDS: Mapping[str, tuple[Any, ...]] = {
    "create": ("createCommand",),
    "replace": ("replaceCommand", False),
    "createOrReplace": ("replaceCommand", True),
    "append": ("appendCommand",),
    "overwrite": ("overwriteCommand",),
    "overwritePartitions": ("overwritePartitionsCommand",),
}
"""By the method that writes the one that makes the command, and what that takes besides the method's own arguments."""


def is_transactional(spark: Any, catalog: str) -> bool:
    """Return whether analysing a write to a catalog begins a transaction that only Spark itself can end (4.3)."""
    if catalog == "spark_catalog":
        return False
    try:
        plugin = session_state(spark).catalogManager().catalog(catalog)
    except Py4JError:  # no such catalog, as Spark is about to say
        return False
    return "org.apache.spark.sql.connector.catalog.TransactionalCatalogPlugin" in java_types(plugin)


def writer_field(jwrite: Any, name: str) -> Any:
    """Return a setting of a Java ``DataFrameWriter`` or ``DataFrameReader``, which lack accessors in 3.5."""
    field = declared_field(jwrite, name)
    return None if field is None else field.get(jwrite)


def path_option(java_half: Any) -> str | None:
    """Return the option ``path`` of a Java writer or reader; None if it has none."""
    options = writer_field(java_half, "extraOptions")
    return options.apply("path") if options is not None and options.contains("path") else None


def declared_field(jobject: Any, name: str) -> Any:
    """Return a field of a Java object, to be read or set; None if it has none of that name."""
    jclass = jobject.getClass()
    while jclass is not None:
        for field in jclass.getDeclaredFields():
            if field.getName() == name:
                field.setAccessible(True)
                return field
        jclass = jclass.getSuperclass()
    return None


def _save_command_3(spark: Any, df: Any, jwrite: Any, path: str | None) -> Any:
    """Do what Spark 3.5 does inside ``DataFrameWriter.save`` for sources of version 1 (it has no ``saveCommand``)."""
    jvm, jsession = spark._jvm, spark._jsparkSession
    source = writer_field(jwrite, "source")
    options = writer_field(jwrite, "extraOptions")
    bucketed = writer_field(jwrite, "numBuckets").isDefined() or writer_field(jwrite, "sortColumnNames").isDefined()
    if bucketed or source.lower() == "hive" or (path is not None and options.contains("path")):
        return None  # plain Spark refuses these itself, or follows its legacy setting
    sources = java_class(jvm, "org.apache.spark.sql.execution.datasources.DataSource")
    provider = sources.lookupDataSourceV2(source, jsession.sessionState().conf())
    if provider.isDefined() and _FILE_DATA_SOURCE not in java_types(provider.get()):
        raise NoCommandError
    original = options.originalMap()
    if path is not None:
        original = original.updated("path", path)
    partitioning = writer_field(jwrite, "partitioningColumns")
    if partitioning.isDefined():
        utils = java_class(jvm, "org.apache.spark.sql.execution.datasources.DataSourceUtils")
        key = utils.PARTITIONING_COLUMNS_KEY()
        original = original.updated(key, utils.encodePartitioningColumns(partitioning.get()))
    nothing = option(jvm, None)
    no_names = scala_seq(jvm, [])
    data_source = sources.apply(
        jsession,
        source,
        no_names,
        nothing,
        partitioning.get() if partitioning.isDefined() else no_names,
        nothing,
        original,
        nothing,
    )
    return data_source.planForWriting(writer_field(jwrite, "mode"), df._jdf.logicalPlan())
