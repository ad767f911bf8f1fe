"""Spark's own write commands, made and checked without running them.

A write is deferred if Spark's command for it is ``InsertIntoHadoopFsRelationCommand`` (parquet, csv, json, orc, text,
xml, avro and every other file format). What Spark would refuse on the write's line is refused there, by Spark's own
code: its analysis, its check of the path, the format's own checks of schema and options.
"""

from __future__ import annotations

import json
import re
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors.exceptions.captured import convert_exception

from flinkmagic.capturing.java import (
    items,
    java_class,
    option,
    scala_object,
    simple_name,
    skip_commands,
    text_map,
)

FILE_COMMAND = "InsertIntoHadoopFsRelationCommand"


class DeferringWriter:
    """Stands in for the Java ``DataFrameWriter`` while one of PySpark's saving methods runs.

    Settings go through to the Java writer. What would start the write comes to `on_save` instead, with the format
    set as the Java method of that name sets it.
    """

    def __init__(self, jwrite: Any, on_save: Any) -> None:
        self.jwrite = jwrite
        self._on_save = on_save

    def __getattr__(self, name: str) -> Any:
        def setting(*args: Any) -> DeferringWriter:
            self.jwrite = getattr(self.jwrite, name)(*args)
            return self

        return setting

    def save(self, path: str | None = None) -> None:
        self._on_save(self.jwrite, path)

    def _save_as(self, file_format: str, path: str) -> None:
        self._on_save(self.jwrite.format(file_format), path)

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


def writer_field(jwrite: Any, name: str) -> Any:
    """A setting of a Java ``DataFrameWriter`` or ``DataFrameReader``, which have no accessors for them in 3.5."""
    jclass = jwrite.getClass()
    while jclass is not None:
        for field in jclass.getDeclaredFields():
            if field.getName() == name:
                field.setAccessible(True)
                return field.get(jwrite)
        jclass = jclass.getSuperclass()
    return None


def save_command(spark: Any, df: Any, jwrite: Any, path: str | None) -> Any:
    """Spark's analysed command for ``save(path)``; None where it is not one of files, and must run as plain Spark.

    Raises
    ------
    AnalysisException
        Spark's own refusals, as the plain call would raise them.
    """
    jvm, jsession = spark._jvm, spark._jsparkSession
    try:
        command = jwrite.saveCommand(option(jvm, path))
    except Py4JError as error:
        if "does not exist" not in str(error) or "saveCommand" not in str(error):
            raise
        command = _save_command_3(spark, df, jwrite, path)
    if command is None or simple_name(command) != FILE_COMMAND:
        return None
    execution = jsession.sessionState().executePlan(command, skip_commands(jvm))
    execution.assertAnalyzed()
    return execution.analyzed()


def _save_command_3(spark: Any, df: Any, jwrite: Any, path: str | None) -> Any:
    """What Spark 3.5 does inside ``DataFrameWriter.save`` for file formats (there is no ``saveCommand`` there)."""
    jvm, jsession = spark._jvm, spark._jsparkSession
    source = writer_field(jwrite, "source")
    options = writer_field(jwrite, "extraOptions")
    bucketed = (
        writer_field(jwrite, "numBuckets").isDefined() or writer_field(jwrite, "sortColumnNames").isDefined()
    )
    if bucketed or source.lower() == "hive" or (path is not None and options.contains("path")):
        return None  # plain Spark refuses these itself, or obeys its legacy setting
    sources = java_class(jvm, "org.apache.spark.sql.execution.datasources.DataSource")
    if sources.lookupDataSourceV2(source, jsession.sessionState().conf()).isDefined():
        return None
    original = options.originalMap()
    if path is not None:
        original = original.updated("path", path)
    partitioning = writer_field(jwrite, "partitioningColumns")
    nothing = option(jvm, None)
    no_names = jvm.PythonUtils.toSeq([])
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


def path_exists(spark: Any, command: Any) -> bool:
    """Whether a command's path exists now, asked as the command itself asks."""
    hadoop_conf = spark._jsparkSession.sessionState().newHadoopConfWithOptions(command.options())
    jpath = command.outputPath()
    return bool(jpath.getFileSystem(hadoop_conf).exists(jpath))


def path_exists_error(spark: Any, jpath: Any) -> Exception:
    """The error that Spark's command raises when it finds its path taken."""
    errors = scala_object(spark._jvm, "org.apache.spark.sql.errors.QueryCompilationErrors")
    return convert_exception(errors.outputPathAlreadyExistsError(jpath))


def check_format(spark: Any, df: Any, command: Any) -> None:
    """Have the file format refuse schema and options that it cannot write, as it would when the write starts.

    Spark asks the format on the driver, before the first task: on a Hadoop job that is thrown away here.
    """
    jvm = spark._jvm
    partitioned = {name.lower() for name in partition_columns(command)}
    fields = [field for field in df.schema.jsonValue()["fields"] if field["name"].lower() not in partitioned]
    schema = spark._jsparkSession.parseDataType(json.dumps({"type": "struct", "fields": fields}))
    file_format = command.fileFormat()
    utils = java_class(jvm, "org.apache.spark.sql.execution.datasources.DataSourceUtils")
    try:
        utils.verifySchema(file_format, schema)
    except Py4JError as error:
        if "verifySchema([" not in str(error):
            raise
        utils.verifySchema(file_format, schema, False)
    utils.checkFieldNames(file_format, schema)
    hadoop_conf = spark._jsparkSession.sessionState().newHadoopConfWithOptions(command.options())
    job = java_class(jvm, "org.apache.hadoop.mapreduce.Job").getInstance(hadoop_conf)
    insensitive = scala_object(jvm, "org.apache.spark.sql.catalyst.util.CaseInsensitiveMap").apply(
        command.options()
    )
    file_format.prepareWrite(spark._jsparkSession, job, insensitive, schema)


def partition_columns(command: Any) -> tuple[str, ...]:
    return tuple(column.name() for column in items(command.partitionColumns()))


def command_options(command: Any) -> dict[str, str]:
    """The writer's options, without the path and what Spark keeps among them for itself."""
    options = text_map(command.options())
    return {
        key: value for key, value in options.items() if key.lower() != "path" and not key.startswith("__")
    }


_MODES = {"Append": "append", "Overwrite": "overwrite", "ErrorIfExists": "errorifexists", "Ignore": "ignore"}


def command_mode(command: Any) -> str:
    return _MODES[command.mode().toString()]


def command_format(command: Any) -> str:
    """The short name under which a file format is registered."""
    file_format = command.fileFormat()
    try:
        return str(file_format.shortName())
    except Py4JError:
        return str(file_format.toString()).lower()


def is_observed(spark: Any, jplan: Any) -> bool:
    """Whether an analysed plan carries `observe(...)`."""
    patterns = java_class(spark._jvm, "org.apache.spark.sql.catalyst.trees.TreePattern")
    try:
        return bool(jplan.containsPattern(patterns.COLLECT_METRICS()))
    except Py4JError:  # Spark 3.5 has no such pattern
        return re.search(r"^[\s:+|-]*CollectMetrics ", jplan.treeString(), re.MULTILINE) is not None
