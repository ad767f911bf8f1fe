"""Names places outside file systems and catalogs, as comparable text: tables of databases, other sources."""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from flinkmagic.capturing.driver.sql_reader import nodes_of
from flinkmagic.jvm.java import java_class, scala_object

_PART = r"""(?:"[^"]+"|`[^`]+`|\[[^\]]+\]|[^\s().,"`\[\]]+)"""
_NAME = re.compile(rf"\s*({_PART}(?:\.{_PART})*)\s*")
_NAMES_PLACE = re.compile(
    r"path|url|uri|table|folder|dir|file|location|host|server|bucket|topic|database|schema|collection|keyspace|index"
    r"|container|namespace|name"
)


def jdbc_paths(url: str, table_or_query: str) -> Iterator[str]:
    """Return the tables of a database that a table's name or a query refers to, each as a path.

    Settings of the connection are left out, so that one place is one path. A table's own name comes first and its
    schema below, so that one that is named without its schema overlaps all of that name. A query that Spark's parser
    does not understand may read any table of its database.
    """
    database, tables = _database(url), _tables(table_or_query)
    if tables is None:
        yield database
    for parts in tables or ():
        yield "/".join([database, *(urllib.parse.quote(part.lower(), safe="") for part in reversed(parts))])


def jdbc_reads(options: Any) -> Iterator[str]:
    """Return the tables that a JDBC read reads, each as a path; for a view, all of its database.

    Parameters
    ----------
    options : JavaObject
        Spark's ``JDBCOptions``.
    """
    url, read = options.url(), options.tableOrQuery()
    if any(_may_be_view(options, url, parts[-1]) for parts in _tables(read) or ()):
        yield _database(url)
    else:
        yield from jdbc_paths(url, read)


_views: dict[tuple[str, str], bool] = {}


def _may_be_view(options: Any, url: str, name: str) -> bool:
    """Return whether a database has a view with a name in any schema, or does not tell."""
    if (url, name) not in _views:
        try:
            _views[url, name] = _has_view(options, name)
        except Py4JError:  # the read will meet the same error, or its driver has no such list
            return True
    return _views[url, name]


def _has_view(options: Any, name: str) -> bool:
    jvm: Any = SparkContext._jvm
    gateway: Any = SparkContext._gateway
    with jdbc_connection(jvm, options) as connection:
        kinds = gateway.new_array(jvm.java.lang.String, 2)
        kinds[0], kinds[1] = "VIEW", "MATERIALIZED VIEW"
        # A database keeps unquoted names in upper or in lower case.
        spellings = {name, name.upper(), name.lower()}
        return any(connection.getMetaData().getTables(None, None, one, kinds).next() for one in spellings)


def jdbc_connection(jvm: Any, options: Any) -> closing[Any]:
    """Return a connection as Spark's ``JDBCOptions`` say, for a ``with`` statement to close."""
    dialect = java_class(jvm, "org.apache.spark.sql.jdbc.JdbcDialects").get(options.url())
    return closing(dialect.createConnectionFactory(options).apply(-1))


def jdbc_path(url: str, table: str) -> str:
    """Return the place of a table that is written."""
    return next(jdbc_paths(url, table), _database(url))


def _database(url: str) -> str:
    return "jdbc://" + urllib.parse.quote(re.split(r"[;?]", url, maxsplit=1)[0].lower(), safe="")


def _tables(table_or_query: str) -> list[list[str]] | None:
    """Return the parts of the tables' names; None if a database may understand more by a query than we do."""
    name = _NAME.fullmatch(table_or_query)
    if name:
        return [[part.strip('"`[]') for part in re.findall(_PART, name[1])]]
    jvm: Any = SparkContext._jvm
    parser = scala_object(jvm, "org.apache.spark.sql.catalyst.parser.CatalystSqlParser")
    try:
        nodes = nodes_of(parser.parsePlan(f"SELECT * FROM {_ansi_quotes(table_or_query)}"))
    except (PySparkException, Py4JError):
        return None
    if any(node.kind == "UnresolvedTableValuedFunction" or node.is_statement for node in nodes):
        return None
    return [node.name for node in nodes if node.kind == "UnresolvedRelation" and node.name is not None]


def _ansi_quotes(query: str) -> str:
    """Put names in double quotes, which Spark's parser takes for texts, into its own quotes; leave texts alone."""
    return re.sub(
        r"""'(?:[^']|'')*'|"([^"]+)\"""", lambda found: found[0] if found[1] is None else f"`{found[1]}`", query
    )


def source_place(kind: str, options: Mapping[str, str]) -> str:
    """Return a source that has no catalog, with the options that say where it is: another value is another place."""
    said = {key.lower(): value for key, value in options.items() if _NAMES_PLACE.search(key.lower())}
    return "&".join([kind.lower(), *(f"{key}={urllib.parse.quote(said[key], safe='')}" for key in sorted(said))])


def are_elsewhere(one: str, other: str) -> bool:
    """Return whether two such sources are at different places: an option that both have differs."""
    here, there = (dict(part.partition("=")[::2] for part in text.split("&")[1:]) for text in (one, other))
    return any(_differ(here[key], there[key]) for key in here.keys() & there.keys())


def _differ(one: str, other: str) -> bool:
    """Return whether two values differ; a folder is not a different place from the one above it."""
    first, second = (urllib.parse.unquote(text).rstrip("/") for text in (one, other))
    return first != second and not (first + "/").startswith(second + "/") and not (second + "/").startswith(first + "/")
