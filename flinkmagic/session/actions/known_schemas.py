"""Remembers the schemas that Spark has inferred from files, so that it need not read the files again to infer them.

Spark reads one file or all of them to find the columns of Parquet, JSON and CSV. If a cell reads the same files again,
the DataFrame is made with the schema that was inferred before, which reads nothing. The user gets it only if its query
equals the former one: in the files (by path, length and modification time, local ones also by inode and change time),
the options, the settings and the columns. Else the call is made as it is.

With a durable store, later processes find schemas, too, by how the files were read. A stored one is used by the same
rule. A type of the user's names a module to import: schemas with one are neither stored nor read.
"""

from __future__ import annotations

import inspect
import json
import logging
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql.types import StructType

from flinkmagic.capturing.writes.writer_calls import declared_field, writer_field
from flinkmagic.jvm.java import execution_of
from flinkmagic.reuse.durable_keys import durable_keys
from flinkmagic.reuse.durable_store import DurableEntry
from flinkmagic.reuse.result_keys import NoKey, ResultKeys
from flinkmagic.reuse.retained_answers import retained_answers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from flinkmagic.capturing.capture_listener import ReadCall
    from flinkmagic.reuse.durable_store import DurableStore

_LOG = logging.getLogger(__name__)

_INFERRING = frozenset({"csv", "json", "load", "orc", "parquet", "xml"})
_MOST = 200


@dataclass(frozen=True)
class KnownSchema:
    """An inferred schema, and the key of the query for which it was inferred."""

    schema: StructType
    digest: str
    is_durable: bool = False
    """Whether the key holds in later processes."""


def read_files(call: ReadCall, durable: DurableStore | None = None) -> DataFrame:
    """Make a DataFrame of files as plain PySpark does, but infer no schema that is known."""
    try:
        name = _name_of(call)
    except Py4JError as error:  # the call finds out by itself what is wrong
        _LOG.debug("nothing is known for %s: %s", call.method, error)
        name = None
    if name is None:
        return call.run_plainly()
    sc = call.reader._spark.sparkContext
    known = retained_answers(sc).schemas
    stored_as = durable_keys(sc).of_text(name) if durable is not None else ""
    former: KnownSchema | None = known.pop(name, None)
    if former is None and durable is not None:
        former = _stored(durable, stored_as)
    if former is not None:
        made = _made_with(call, former)
        if made is not None:
            known[name] = former
            return made
    began = time.time()
    df = call.run_plainly()
    seconds = time.time() - began
    found = _schema_of(df, began)
    if found is not None:
        known[name] = found
        if durable is not None and found.is_durable:
            durable.store_later(lambda: _entry(stored_as, call.method, found, seconds), seconds)
        while len(known) > _MOST:
            known.pop(next(iter(known)), None)
    return df


def _name_of(call: ReadCall) -> str | None:
    """Return a text that is equal for equal calls; None if Spark infers nothing for the call."""
    if call.method not in _INFERRING:
        return None
    try:
        bound = inspect.signature(call.original).bind(call.reader, *call.args, **call.kwargs)
        given = json.dumps([list(bound.args[1:]), bound.kwargs], sort_keys=True)
    except (TypeError, ValueError):  # a wrong call, whose own error tells the user, or one that reads an RDD
        return None
    jreader: Any = call.reader._jreader
    if bound.arguments.get("schema") is not None or writer_field(jreader, "userSpecifiedSchema").isDefined():
        return None
    options, source = (writer_field(jreader, one) for one in ("extraOptions", "source"))
    return json.dumps([call.method, given, options.toString(), str(source)])


def _made_with(call: ReadCall, former: KnownSchema) -> DataFrame | None:
    """Return a DataFrame made with a known schema, if it reads what the schema was inferred from."""
    try:
        with _schema_given(call, former.schema):
            df = call.run_plainly()
        key = ResultKeys(df.sparkSession.sparkContext).of_read(execution_of(df))
    except (Py4JError, PySparkException) as error:  # files are gone, for example: the plain call's error says so
        _LOG.debug("a known schema is of no use: %s", error)
        return None
    return df if not isinstance(key, NoKey) and key.digest == former.digest else None


@contextmanager
def _schema_given(call: ReadCall, schema: StructType) -> Iterator[None]:
    """Set a reader's schema during the block; what else the call sets stays set, as in plain PySpark."""
    jreader: Any = call.reader._jreader
    field = declared_field(jreader, "userSpecifiedSchema")
    before = field.get(jreader)
    call.reader.schema(schema)
    try:
        yield
    finally:
        field.set(jreader, before)


def _schema_of(df: DataFrame, began: float) -> KnownSchema | None:
    """Return the schema that Spark has inferred, if the files are still those that it was inferred from."""
    try:
        keys = ResultKeys(df.sparkSession.sparkContext)
        key = keys.of_read(execution_of(df))
        if isinstance(key, NoKey) or not key.files or keys.changed_file(key.files):
            return None
        return KnownSchema(df.schema, key.digest, key.is_durable and keys.settled(key, began))
    except Py4JError as error:  # to know a schema only saves work
        _LOG.debug("a schema is not kept: %s", error)
        return None


def _entry(key: str, method: str, known: KnownSchema, seconds: float) -> DurableEntry | None:
    """Return what is stored of a schema; None if it would not be read as the same."""
    content = json.dumps({"schema": known.schema.jsonValue(), "digest": known.digest}).encode()
    again = _read(content)
    if again is None or again.schema != known.schema:
        return None
    return DurableEntry(key, f"{method}()", seconds, time.time(), content)


def _stored(durable: DurableStore, key: str) -> KnownSchema | None:
    """Return a schema that another process has stored."""
    entry = durable.find(key)
    return None if entry is None else _read(entry.content)


def _read(content: bytes) -> KnownSchema | None:
    try:
        told = json.loads(content)
        if _names_a_class(told):
            return None
        return KnownSchema(StructType.fromJson(told["schema"]), str(told["digest"]))
    except (LookupError, RecursionError, TypeError, ValueError) as error:
        _LOG.debug("a stored schema is of no use: %s", error)
        return None


def _names_a_class(told: object) -> bool:
    """Return whether JSON of a schema holds a type of the user's, which PySpark would import."""
    if isinstance(told, dict):
        return "udt" in told.values() or "pyClass" in told or any(map(_names_a_class, told.values()))
    return isinstance(told, list) and any(map(_names_a_class, told))
