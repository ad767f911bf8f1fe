"""Writes rows that Spark holds to Parquet files, and reads them again: the same rows in the same partitions and order.

A file has the rows of one partition; partitions without rows have none. A column is written as the bits that Spark's
rows hold of it, under a type of these bits: doubles as integers, for example. So nothing of a value depends on what
Parquet, or a setting, makes of its type: the bits of a NaN, dates before 1582, intervals, and values of users' types
come back as they were. Names, nullability, metadata and the types themselves are not in the files: whoever reads them
has the columns from its own plan.

What has another form in rows than in files is not written: calendar intervals, variants, and columns without a type or
without fields.

Seen on Spark 3.5.9 and 4.3.0.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flinkmagic.jvm.contexts import kept_for_context
from flinkmagic.jvm.java import dataset_of, java_class, option, scala_object, scala_seq
from flinkmagic.reuse.java_classes import CLASSES

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext

_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",  # rows would be missing
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.maxRecordsPerFile": "0",
    "spark.sql.parquet.compression.codec": "snappy",
    "spark.sql.parquet.fieldId.read.enabled": "false",
    "spark.sql.parquet.fieldId.write.enabled": "false",
    "spark.sql.parquet.output.committer.class": "org.apache.parquet.hadoop.ParquetOutputCommitter",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.sources.commitProtocolClass": (
        "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol"
    ),
    # Spark would list many files by a job.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": str(2**31 - 1),
    "spark.sql.sources.useV1SourceList": "parquet",
}
"""What must not be as users may have set it."""

_BITS = {
    **{kind: kind for kind in ("binary", "boolean", "byte", "integer", "long", "short", "string")},
    "date": "integer", "double": "long", "float": "integer", "timestamp": "long", "timestamp_ntz": "long",
}  # fmt: skip
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_LONG_DIGITS = 18
"""Decimals of so many digits are integers in rows (`Decimal.MAX_LONG_DIGITS`)."""
_MONTHS = re.compile(r"interval (?:year|month)(?: to month)?")
_MICROSECONDS = re.compile(r"interval (?:day|hour|minute|second)(?: to (?:hour|minute|second))?")

_REHEARSED = 200_000
"""How many rows are read, at most, to be ready for others: so many that the JVM compiles the loops over them."""


class NotStorableError(Exception):
    """Says which type cannot be written. Users never see it: their rows are computed again."""


def stored_schema(schema_json: str) -> str:
    """Return the schema of the files for rows of a schema, both as Spark's JSON.

    Raises
    ------
    NotStorableError
        If a column has a type whose values files would not hold as rows do.
    """
    kinds = [field["type"] for field in json.loads(schema_json)["fields"]]
    return json.dumps(_struct(kinds))


def _struct(kinds: Sequence[Any]) -> dict[str, Any]:
    if not kinds:
        raise NotStorableError("there are no columns, or a column has no fields")
    fields = [
        {"name": f"c{place}", "type": _bits(kind), "nullable": True, "metadata": {}} for place, kind in enumerate(kinds)
    ]
    return {"type": "struct", "fields": fields}


def _bits(kind: Any) -> Any:
    if isinstance(kind, dict):
        return _nested(kind)
    decimal = _DECIMAL.fullmatch(kind)
    if kind in _BITS:
        return _BITS[kind]
    if decimal is not None:
        return "long" if int(decimal[1]) <= _LONG_DIGITS else kind
    if _MONTHS.fullmatch(kind):
        return "integer"
    if _MICROSECONDS.fullmatch(kind):
        return "long"
    raise NotStorableError(f"a column is of type {kind}")


def _nested(kind: dict[str, Any]) -> Any:
    if kind["type"] == "struct":
        return _struct([field["type"] for field in kind["fields"]])
    if kind["type"] == "array":
        return {"type": "array", "elementType": _bits(kind["elementType"]), "containsNull": True}
    if kind["type"] == "map":
        bits = {"keyType": _bits(kind["keyType"]), "valueType": _bits(kind["valueType"])}
        return {"type": "map", **bits, "valueContainsNull": True}
    if kind["type"] == "udt":
        return _bits(kind["sqlType"])
    raise NotStorableError(f"a column is of type {kind['type']}")


class RowFiles:
    """Writes and reads rows in a session of its own, to whose queries no listener of the user's listens.

    Parameters
    ----------
    session : py4j.java_gateway.JavaObject
        Any Java session of the context.
    """

    def __init__(self, sc: SparkContext, session: JavaObject) -> None:
        self._sc = sc
        self._session = session.newSession()
        self._session.listenerManager().clear()
        conf = self._session.sessionState().conf()
        for name, value in _SETTINGS.items():
            conf.setConfString(name, value)
        self._java: Any = CLASSES.shared_instance(sc._gateway, "RowFiles")

    def rows(self, plan: JavaObject) -> JavaObject:
        """Return the ``RDD`` of the rows that a logical plan reads from what is kept; start nothing."""
        return dataset_of(self._sc._jvm, self._session, plan).queryExecution().toRdd()

    def some(self, rows: JavaObject, first: int, number: int) -> JavaObject:
        """Return some neighbouring partitions of rows."""
        return self._java.some(rows, first, number)

    def write(self, rows: JavaObject, schema: str, folder: str) -> None:
        """Write rows to a new folder: a partition's file has its number after ``part-``.

        Parameters
        ----------
        schema : str
            As `stored_schema` returns it for that of the rows.
        """
        columns = self._session.parseDataType(schema)
        frame = self._session.internalCreateDataFrame(rows, columns, False)
        frame.write().mode("overwrite").parquet(folder)

    def read(self, paths: Sequence[str], schema: str, partitions: int) -> JavaObject:
        """Return the rows that were written (``RowFiles.Stored``); start nothing.

        Parameters
        ----------
        paths : sequence of str
            A folder, or files, whose names have the number of their partition as the first one.
        """
        jvm: Any = self._sc._jvm
        reader = self._session.read().schema(self._session.parseDataType(schema)).option("__globPaths__", "false")
        read = reader.parquet(scala_seq(jvm, list(paths)))
        return self._java.stored(self._session.sessionState(), read.queryExecution().analyzed(), partitions)

    def rehearse(self, rows: JavaObject, schema: str) -> None:
        """Keep some rows that are read, count them by a job, and drop them: a JVM's first such job takes seconds."""
        jvm: Any = self._sc._jvm
        columns = self._session.parseDataType(schema)
        frame = self._session.internalCreateDataFrame(rows, columns, False).limit(_REHEARSED)
        level = java_class(jvm, "org.apache.spark.storage.StorageLevel").MEMORY_ONLY()
        relations = scala_object(jvm, "org.apache.spark.sql.execution.columnar.InMemoryRelation")
        relation = relations.apply(level, frame.queryExecution(), option(jvm, None))
        try:
            dataset_of(jvm, self._session, relation).where("c0 IS NOT NULL").count()
        finally:
            relation.cacheBuilder().clearCache(False)


@kept_for_context
def _known(sc: SparkContext) -> list[RowFiles]:
    return []


def row_files(sc: SparkContext, session: JavaObject) -> RowFiles:
    """Return what writes and reads the rows of a SparkContext, which has sessions like this one."""
    known = _known(sc)
    if not known:
        known.append(RowFiles(sc, session))
    return known[0]
