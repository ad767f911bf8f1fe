"""Spark's own write commands, analysed and checked without running them.

What Spark would refuse on the write's line is refused there, by Spark's own code: its analysis, its check of the path,
the format's own checks of schema and options.
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
    scala_object,
    skip_commands,
    text_map,
)


def analysed(spark: Any, command: Any) -> Any:
    """Spark's command, analysed and not run.

    Raises
    ------
    AnalysisException
        Spark's own refusals, as the plain call would raise them.
    """
    execution = spark._jsparkSession.sessionState().executePlan(command, skip_commands(spark._jvm))
    execution.assertAnalyzed()
    return execution.analyzed()


def path_exists(spark: Any, command: Any) -> bool:
    """Whether a command's path exists now, asked as the command itself asks."""
    hadoop_conf = spark._jsparkSession.sessionState().newHadoopConfWithOptions(command.options())
    jpath = command.outputPath()
    return bool(jpath.getFileSystem(hadoop_conf).exists(jpath))


def path_exists_error(spark: Any, jpath: Any) -> Exception:
    """The error that Spark's command raises when it finds its path taken."""
    errors = scala_object(spark._jvm, "org.apache.spark.sql.errors.QueryCompilationErrors")
    return convert_exception(errors.outputPathAlreadyExistsError(jpath))


def check_format(
    spark: Any, df: Any, file_format: Any, options: Any, partition_by: tuple[str, ...]
) -> None:
    """Have the file format refuse schema and options that it cannot write, as it would when the write starts.

    Spark asks the format on the driver, before the first task: on a Hadoop job that is thrown away here.
    """
    jvm = spark._jvm
    partitioned = {name.lower() for name in partition_by}
    fields = [field for field in df.schema.jsonValue()["fields"] if field["name"].lower() not in partitioned]
    schema = spark._jsparkSession.parseDataType(json.dumps({"type": "struct", "fields": fields}))
    utils = java_class(jvm, "org.apache.spark.sql.execution.datasources.DataSourceUtils")
    try:
        utils.verifySchema(file_format, schema)
    except Py4JError as error:
        if "verifySchema([" not in str(error):
            raise
        utils.verifySchema(file_format, schema, False)
    utils.checkFieldNames(file_format, schema)
    hadoop_conf = spark._jsparkSession.sessionState().newHadoopConfWithOptions(options)
    job = java_class(jvm, "org.apache.hadoop.mapreduce.Job").getInstance(hadoop_conf)
    insensitive = scala_object(jvm, "org.apache.spark.sql.catalyst.util.CaseInsensitiveMap").apply(options)
    file_format.prepareWrite(spark._jsparkSession, job, insensitive, schema)


def partition_columns(command: Any) -> tuple[str, ...]:
    return tuple(column.name() for column in items(command.partitionColumns()))


def command_options(command: Any) -> dict[str, str]:
    """The writer's options, without the path and what Spark keeps among them for itself."""
    options = text_map(command.options())
    return {
        key: value for key, value in options.items() if key.lower() != "path" and not key.startswith("__")
    }


def format_name(file_format: Any) -> str:
    """The short name under which a file format is registered."""
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
