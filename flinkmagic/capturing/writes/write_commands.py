"""Analyses and checks Spark's own write commands without running them.

Spark's own code refuses on the write's line what it would refuse there in a plain run: its analysis, its check of the
path, the format's checks of schema and options.
"""

from __future__ import annotations

import functools
import json
import re
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors.exceptions.captured import convert_exception

from flinkmagic.jvm.java import java_class, query_execution, scala_object, scala_seq, session_state, static_method

_UTILS = "org.apache.spark.sql.execution.datasources.DataSourceUtils"


def analysed(spark: Any, command: Any) -> Any:
    """Return Spark's command, analysed and not run.

    Raises
    ------
    AnalysisException
        Spark's own refusals, as the plain call would raise them.
    """
    execution = query_execution(spark._jvm, session_state(spark), command)
    execution.assertAnalyzed()
    return execution.analyzed()


def path_exists(spark: Any, command: Any) -> bool:
    """Return whether a command's path exists now, asked as the command itself asks."""
    hadoop_conf = session_state(spark).newHadoopConfWithOptions(command.options())
    jpath = command.outputPath()
    return bool(jpath.getFileSystem(hadoop_conf).exists(jpath))


def refusal(spark: Any, name: str, *arguments: Any) -> Exception:
    """Return an error with which Spark refuses a query, by the name of the method that makes it."""
    errors = scala_object(spark._jvm, "org.apache.spark.sql.errors.QueryCompilationErrors")
    return convert_exception(getattr(errors, name)(*arguments))


def check_format(spark: Any, df: Any, file_format: Any, options: Any, partition_by: tuple[str, ...]) -> None:
    """Have the file format refuse schema and options that it cannot write, as it would when the write starts.

    Spark asks the format on the driver, before the first task: on a Hadoop job that is thrown away here.
    """
    jvm = spark._jvm
    _check_names(spark, df.schema.names)
    schema = df._jdf.schema()
    if partition_by:
        partitioned = {name.lower() for name in partition_by}
        fields = [field for field in df.schema.jsonValue()["fields"] if field["name"].lower() not in partitioned]
        schema = spark._jsparkSession.parseDataType(json.dumps({"type": "struct", "fields": fields}))
    static_method(jvm, _UTILS, "verifySchema")(file_format, schema, *_more_to_verify(jvm))
    static_method(jvm, _UTILS, "checkFieldNames")(file_format, schema)
    hadoop_conf = session_state(spark).newHadoopConfWithOptions(options)
    job = static_method(jvm, "org.apache.hadoop.mapreduce.Job", "getInstance")(hadoop_conf)
    insensitive = scala_object(jvm, "org.apache.spark.sql.catalyst.util.CaseInsensitiveMap").apply(options)
    file_format.prepareWrite(spark._jsparkSession, job, insensitive, schema)


def _check_names(spark: Any, names: list[str]) -> None:
    """Have Spark refuse columns of equal names, as the first thing that its command does when it runs."""
    if len({name.lower() for name in names}) < len(names):
        columns = scala_seq(spark._jvm, names)
        is_case_sensitive = session_state(spark).conf().caseSensitiveAnalysis()
        check = static_method(spark._jvm, "org.apache.spark.sql.util.SchemaUtils", "checkColumnNameDuplication")
        check(columns, is_case_sensitive)


@functools.lru_cache(maxsize=4)
def _more_to_verify(jvm: Any) -> tuple[Any, ...]:
    """Return what `verifySchema` takes beside format and schema: on 4.x whether they are only read; on 3.5 nothing."""
    try:
        return (getattr(scala_object(jvm, _UTILS), "verifySchema$default$3")(),)
    except Py4JError:
        return ()


def is_observed(sc: Any, jplan: Any) -> bool:
    """Return whether an analysed plan carries `observe(...)`."""
    pattern = _metrics_pattern(sc._jvm)
    if pattern is None:
        return re.search(r"^[\s:+|-]*CollectMetrics ", jplan.treeString(), re.MULTILINE) is not None
    return bool(jplan.containsPattern(pattern))


@functools.lru_cache(maxsize=4)
def _metrics_pattern(jvm: Any) -> Any:
    """Return the pattern by which Spark's trees say that they hold `CollectMetrics`; None on Spark 3.5."""
    try:
        return java_class(jvm, "org.apache.spark.sql.catalyst.trees.TreePattern").COLLECT_METRICS()
    except Py4JError:
        return None
