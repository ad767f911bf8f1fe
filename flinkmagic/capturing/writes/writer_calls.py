"""Intercepts what PySpark's writers ask of their Java halves, before anything runs.

Spark makes a writer's command by methods of its own that are not public (``saveCommand``, ``saveAsTableCommand``,
``insertIntoCommand``; of ``DataFrameWriterV2`` ``createCommand``, ``replaceCommand``, ``appendCommand``,
``overwriteCommand``, ``overwritePartitionsCommand``). Seen on 4.3.0; 3.5.9 has none of them: there a save to files, or
to a source of version 1, is put together as Spark's own code does it, and everything else is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable
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


class _StandIn:
    """Replaces a Java writer while one of PySpark's writing methods runs; passes settings on to it."""

    def __init__(self, jvm: Any, jwrite: Any, on_write: Callable[[WriterCall], None]) -> None:
        self.jvm = jvm
        self.jwrite = jwrite
        self._on_write = on_write

    def __getattr__(self, name: str) -> Any:
        def setting(*args: Any) -> _StandIn:
            self.jwrite = getattr(self.jwrite, name)(*args)
            return self

        return setting


class DeferringWriter(_StandIn):
    """Replaces a Java ``DataFrameWriter``.

    The formats that have a method of their own are set as the Java method of that name sets them.
    """

    def save(self, path: str | None = None) -> None:
        jwrite, jvm = self.jwrite, self.jvm
        run = jwrite.save if path is None else lambda: jwrite.save(path)
        make = lambda: jwrite.saveCommand(option(jvm, path))  # noqa: E731
        self._on_write(WriterCall(jwrite, "save", make, run, path=path))

    def _save_as(self, file_format: str, path: str) -> None:
        self.jwrite = self.jwrite.format(file_format)
        self.save(path)

    def csv(self, path: str) -> None:
        self._save_as("csv", path)

    def json(self, path: str) -> None:
        self._save_as("json", path)

    def orc(self, path: str) -> None:
        self._save_as("orc", path)

    def parquet(self, path: str) -> None:
        self._save_as("parquet", path)

    def text(self, path: str) -> None:
        self._save_as("text", path)

    def xml(self, path: str) -> None:
        self._save_as("xml", path)

    def jdbc(self, url: str, table: str, properties: Any) -> None:
        jwrite = self.jwrite
        settings = ("partitioningColumns", "numBuckets", "sortColumnNames", "clusteringColumns")
        if any(field is not None and field.isDefined() for field in (writer_field(jwrite, s) for s in settings)):
            jwrite.jdbc(url, table, properties)  # which refuses them before it does anything
        # `DataFrameWriter.jdbc`: the properties override the options, the two arguments override both.
        jwrite = jwrite.options(properties).option("url", url).option("dbtable", table)
        self.jwrite = jwrite.format("jdbc")
        self.save()

    def saveAsTable(self, name: str) -> None:  # noqa: N802 - Spark's name
        jwrite = self.jwrite
        self._on_write(
            WriterCall(
                jwrite,
                "saveAsTable",
                lambda: jwrite.saveAsTableCommand(name),
                lambda: jwrite.saveAsTable(name),
                table=name,
            )
        )

    def insertInto(self, name: str) -> None:  # noqa: N802 - Spark's name
        jwrite = self.jwrite
        self._on_write(
            WriterCall(
                jwrite,
                "insertInto",
                lambda: jwrite.insertIntoCommand(name),
                lambda: jwrite.insertInto(name),
                table=name,
            )
        )


class DeferringTableWriter(_StandIn):
    """Replaces a Java ``DataFrameWriterV2``."""

    table = ""

    def _write(self, method: str, make: Callable[[], Any], *arguments: Any) -> None:
        jwrite = self.jwrite
        run = lambda: getattr(jwrite, method)(*arguments)  # noqa: E731
        self._on_write(WriterCall(jwrite, method, make, run, table=self.table))

    def create(self) -> None:
        self._write("create", lambda: self.jwrite.createCommand())

    def replace(self) -> None:
        self._write("replace", lambda: self.jwrite.replaceCommand(False))

    def createOrReplace(self) -> None:  # noqa: N802 - Spark's name
        self._write("createOrReplace", lambda: self.jwrite.replaceCommand(True))

    def append(self) -> None:
        self._write("append", lambda: self.jwrite.appendCommand())

    def overwrite(self, condition: Any) -> None:
        self._write("overwrite", lambda: self.jwrite.overwriteCommand(condition), condition)

    def overwritePartitions(self) -> None:  # noqa: N802 - Spark's name
        self._write("overwritePartitions", lambda: self.jwrite.overwritePartitionsCommand())


def is_transactional(spark: Any, catalog: str) -> bool:
    """Return whether analysing a write to a catalog begins a transaction that only Spark itself can end (4.3)."""
    if catalog == "spark_catalog":
        return False
    try:
        plugin = session_state(spark).catalogManager().catalog(catalog)
        kinds = java_class(spark._jvm, "org.apache.spark.util.Utils").classForName(
            "org.apache.spark.sql.connector.catalog.TransactionalCatalogPlugin", True, False
        )
    except Py4JError:  # a version without them, or no such catalog, as Spark is about to say
        return False
    return bool(kinds.isInstance(plugin))


def writer_field(jwrite: Any, name: str) -> Any:
    """Return a setting of a Java ``DataFrameWriter`` or ``DataFrameReader``, which lack accessors in 3.5."""
    field = declared_field(jwrite, name)
    return None if field is None else field.get(jwrite)


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
