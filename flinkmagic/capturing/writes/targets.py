"""Makes places that are written or read comparable.

Two paths are the same place if Hadoop's FileSystem qualifies them to the same URI and, for local files, symbolic links
lead to the same file. A place overlaps the folders above it and all that lies below it, so partitions and subfolders
are covered. Tables are compared by catalog identity, and by the folder in which they lie.
"""

from __future__ import annotations

import fnmatch
import functools
import os
import re
import sys
import urllib.parse
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flinkmagic.capturing.driver.capture_reader import Leaf, java_types, leaves_of, partitions_elsewhere, rdd_paths
from flinkmagic.capturing.writes.outside_places import are_elsewhere, jdbc_reads, source_place
from flinkmagic.jvm.java import items, java_class, session_state, simple_name, texts

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

_GLOB = re.compile(r"[*?\[{]")
_MOST_ALTERNATIVES = 500
_NOWHERE = "noop-table"
_CASE_BLIND = sys.platform in ("darwin", "win32")
_SAME_STORE = {"s3": "s3a", "s3n": "s3a", "wasbs": "wasb", "abfss": "abfs"}


@dataclass(frozen=True)
class Target:
    """A place to which something is written, or from which it is read."""

    path: str | None = None
    """Qualified and resolved; None for what is no file."""
    table: str | None = None
    """``catalog.database.table`` in lower case, where it is a table."""
    also: tuple[str, ...] = ()
    """Further paths that belong to it: partitions of a table outside the table's folder."""
    pattern: bool = False
    """Whether the path is one that a reader was given, in which ``*`` and the like are patterns. Writers take a path
    literally, and so does a plan whose files were found."""
    namespace: str | None = None
    """``catalog.database`` in lower case, where it is all tables of a database."""

    def overlaps(self, other: Target) -> bool:
        """Return whether the one is, holds, or lies in the other."""
        if self.table is not None and other.table is not None and _is_one_table(self.table, other.table):
            return True
        if self._names_all_with(other) or other._names_all_with(self):
            return True
        patterns = self.pattern, other.pattern
        return any(
            _paths_overlap(one, another, patterns)
            for one in self._paths
            for another in other._paths
            if self.reaches(another) and other.reaches(one)
        )

    def reaches(self, path: str) -> bool:
        """Return whether what lies at a path below this place belongs to it."""
        return True

    def _names_all_with(self, other: Target) -> bool:
        if self.namespace is None:
            return False
        return other.namespace == self.namespace or (other.table or "").startswith(self.namespace + ".")

    @property
    def _paths(self) -> tuple[str, ...]:
        return self.also if self.path is None else (self.path, *self.also)

    def holds(self, other: Target) -> bool:
        """Return whether `other` is a folder strictly below this one."""
        return self.path is not None and other.path is not None and _lies_below(other.path, self.path)

    def as_source(self) -> Source:
        """Return the place as one that is read."""
        return Source(path=self.path, table=self.table, also=self.also, namespace=self.namespace)

    def __str__(self) -> str:
        return (self.table or "").partition("&")[0] or self.namespace or urllib.parse.unquote(self.path or "?")


@dataclass(frozen=True)
class Source(Target):
    """A place that a query reads."""

    listed: bool = False
    """Whether the query's plan has held the list of the files since the DataFrame was made. Spark then does not see
    files that are appended later, and fails if listed ones are deleted."""
    flat: bool = False
    """Whether it is a folder from which only the files directly in it are read."""

    def reaches(self, path: str) -> bool:
        if not self.flat or self.path is None or not _lies_below(path, self.path):
            return True
        return _may_be_file_in(path, self.path)


def overlapping(sources: Iterable[Source], target: Target) -> Source | None:
    """Return the first source that overlaps a target; None if none does."""
    return next((source for source in sources if source.overlaps(target)), None)


@functools.lru_cache(maxsize=4096)
def _parts(path: str) -> tuple[str, ...]:
    if _CASE_BLIND:
        path = path.casefold()
    return tuple(path.rstrip("/").split("/"))


def _is_one_table(one: str, other: str) -> bool:
    if one == other or "&" not in one + other:
        return one == other
    return one.partition("&")[0] == other.partition("&")[0] and not are_elsewhere(one, other)


def _lies_below(path: str, folder: str) -> bool:
    parts, above = _parts(path), _parts(folder)
    return len(parts) > len(above) and parts[: len(above)] == above


def _may_be_file_in(path: str, folder: str) -> bool:
    """Return whether a path may be one of a folder's files; in other file systems files have a suffix, as Spark's."""
    if len(_parts(path)) != len(_parts(folder)) + 1:
        return False
    return os.path.isfile(path.removeprefix("file:")) if path.startswith("file:") else "." in _parts(path)[-1]


@functools.lru_cache(maxsize=4096)
def _is_pattern(path: str) -> bool:
    return _GLOB.search(path) is not None


def _paths_overlap(one: str, other: str, patterns: tuple[bool, bool]) -> bool:
    """Return whether two paths overlap; `patterns` says which of them may hold Hadoop's glob patterns."""
    if one == other:
        return True
    globs = patterns[0] and _is_pattern(one), patterns[1] and _is_pattern(other)
    if not any(globs):
        parts, others = _parts(one), _parts(other)
        shorter = min(len(parts), len(others))
        return parts[:shorter] == others[:shorter]
    return any(
        all(_part_matches(part, another, globs) for part, another in zip(_parts(first), _parts(second), strict=False))
        for first in (_alternatives(one) if globs[0] else (one,))
        for second in (_alternatives(other) if globs[1] else (other,))
    )


@functools.lru_cache(maxsize=1024)
def _alternatives(pattern: str) -> tuple[str, ...]:
    """Expand ``{a,b}`` in a glob pattern: return all that it may be, the first braces first."""
    braces = _innermost_braces(pattern)
    if braces is None:
        return (pattern,)
    start, end = braces
    found: dict[str, None] = {}
    for choice in pattern[start + 1 : end].split(","):
        found.update(dict.fromkeys(_alternatives(pattern[:start] + choice + pattern[end + 1 :])))
        if len(found) > _MOST_ALTERNATIVES:
            return (pattern[:start].rpartition("/")[0],)  # all that lies in the folder before them
    return tuple(found)


def _innermost_braces(pattern: str) -> tuple[int, int] | None:
    """Return where the first braces are that hold no others."""
    match = re.search(r"(?<!\\)\{((?:[^{}\\]|\\.)*)\}", pattern)
    return None if match is None else (match.start(), match.end() - 1)


def _part_matches(one: str, other: str, globs: tuple[bool, bool]) -> bool:
    if one == other:
        return True
    for is_glob, pattern, name in ((globs[0], one, other), (globs[1], other, one)):
        # Hadoop negates a set of characters by ^, fnmatch by !; it takes the sign after a backslash literally.
        if is_glob and fnmatch.fnmatchcase(name, re.sub(r"\\(.)", r"[\1]", pattern).replace("[^", "[!")):
            return True
    return False


def resolve_uri(uri: str) -> str:
    """Return a qualified Hadoop path in the one form that all paths of its place share.

    Local files: symbolic links are followed as far as the path exists (the driver's JVM and this process share a
    file system). Object stores that answer to several schemes get one of them. The text is that of Hadoop's
    ``Path``, in which nothing is percent-encoded.
    """
    scheme, authority, path = _split(uri)
    if scheme in ("", "file"):
        return "file:" + os.path.realpath(path)
    return f"{_SAME_STORE.get(scheme, scheme)}://{authority}{path}".rstrip("/")


def _split(uri: str) -> tuple[str, str, str]:
    match = re.match(r"(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/]*))?(.*)", uri, re.DOTALL)
    assert match is not None
    return (match[1] or "").lower(), match[2] or "", match[3]


class PathResolver:
    """Qualifies the paths of one session through Hadoop's FileSystem."""

    def __init__(self, spark: Any) -> None:
        self._jvm = spark._jvm
        self._hadoop_conf = session_state(spark).newHadoopConf()

    def target(self, path: str) -> Target:
        """Return the target that a path of the user's names; it need not exist, and may hold glob patterns."""
        scheme, authority, _ = _split(path)
        if scheme == "file" or (scheme and authority):
            return Target(path=resolve_uri(path))
        jpath = java_class(self._jvm, "org.apache.hadoop.fs.Path")(path)
        qualified = jpath.getFileSystem(self._hadoop_conf).makeQualified(jpath)
        return Target(path=resolve_uri(qualified.toString()))


def sources_of(jplan: Any) -> tuple[Source, ...]:
    """Return what an analysed Java plan reads: files, tables, and the same for its subqueries and the RDDs below it.

    Rows that come from the driver or from a checkpoint have no source here.
    """
    return tuple(dict.fromkeys(source for leaf in leaves_of(jplan) for source in sources_of_leaf(leaf)))


def sources_of_leaf(leaf: Leaf) -> Iterator[Source]:
    """Return what one leaf of an analysed plan reads."""
    if leaf.paths is not None:
        for path in leaf.paths:
            yield Source(path=resolve_uri(path), listed=leaf.listed, flat=leaf.flat)
        for path in leaf.linked:
            yield Source(path=resolve_uri(path), listed=leaf.listed)
    elif leaf.kind == "LogicalRelation":
        yield from relation_sources(leaf.jvm_leaf())
    elif leaf.kind == "HiveTableRelation":
        yield table_of(leaf.jvm_leaf().tableMeta())
    elif leaf.kind.startswith("DataSourceV2"):
        yield from _v2_sources(leaf.jvm_leaf())
    elif leaf.kind == "InMemoryRelation":
        yield from _kept_sources(leaf.jvm_leaf().cacheBuilder())
    elif leaf.kind in ("LogicalRDD", "ExternalRDD"):
        yield from rdd_sources(leaf.jvm_leaf().rdd())


def rdd_sources(rdd: JavaObject) -> Iterator[Source]:
    """Return what a Java RDD reads."""
    for path, listed in rdd_paths(rdd):
        yield Source(path=resolve_uri(path), listed=listed, pattern=not listed)


def _kept_sources(builder: Any) -> Iterator[Source]:
    """Return what retained rows were computed from: if some are lost, Spark reads it again."""
    if builder.productArity() > 4:  # from 4.0 on it keeps the logical plan
        yield from sources_of(builder.logicalPlan())
        return
    for scan in items(builder.cachedPlan().collectLeaves()):
        if simple_name(scan) == "FileSourceScanExec":
            yield from _root_sources(scan.relation().location().rootPaths(), listed=True)


def relation_sources(leaf: Any) -> Iterator[Source]:
    """Return what a relation of version 1 reads that is no relation of files without a table."""
    catalog_table = leaf.catalogTable()
    if catalog_table.isDefined():
        yield table_of(catalog_table.get())
    relation = leaf.relation()
    if simple_name(relation) == "JDBCRelation":
        yield from _jdbc_sources(relation.jdbcOptions())
    elif simple_name(relation) == "HadoopFsRelation":
        yield from _root_sources(relation.location().rootPaths(), listed=False)
        for path in partitions_elsewhere(leaf):
            yield Source(path=resolve_uri(path))
    elif not catalog_table.isDefined():
        yield Source(table=f"{simple_name(relation)}:{relation}".lower())


def table_of(catalog_table: Any) -> Source:
    """Return a table of the session's own catalog, and the folder in which it lies."""
    name = catalog_table.identifier().unquotedString().lower()
    location = catalog_table.storage().locationUri()
    path = resolve_uri(location.get().getPath()) if location.isDefined() else None
    if location.isDefined() and location.get().getScheme() not in (None, "file"):
        path = resolve_uri(location.get().toString())
    return Source(path=path, table=name if name.count(".") == 2 else f"spark_catalog.{name}")


def _v2_sources(leaf: Any) -> Iterator[Source]:
    catalog, identifier = leaf.catalog(), leaf.identifier()
    if catalog.isDefined() and identifier.isDefined():
        parts = [*identifier.get().namespace(), identifier.get().name()]
        yield Source(table=".".join([catalog.get().name(), *parts]).lower())
    table = leaf.table()
    # Only FileTable, the base of Spark's own version-2 file sources, says which files it reads.
    if "org.apache.spark.sql.execution.datasources.v2.FileTable" in java_types(table):
        yield from _root_sources(table.fileIndex().rootPaths(), listed=False)
    elif simple_name(table) == "JDBCTable":
        yield from _jdbc_sources(table.jdbcOptions())
    elif not catalog.isDefined() and table.name() != _NOWHERE:
        path = leaf.options().get("path")
        if path is not None:
            yield Source(path=resolve_uri(os.path.abspath(path) if path.startswith(".") else path))
        else:
            options = {str(key): str(value) for key, value in dict(leaf.options()).items()}
            yield Source(table=source_place(f"{simple_name(table)}:{table.name()}", options))


def _jdbc_sources(options: Any) -> Iterator[Source]:
    return (Source(path=path) for path in jdbc_reads(options))


def relation_target(leaf: Any) -> Target:
    """Return the place that a relation of version 2 represents; nowhere for the source `noop`."""
    path = table = None
    for source in _v2_sources(leaf):
        path, table = path or source.path, table or source.table
    return Target(path=path, table=table)


def _root_sources(root_paths: Any, listed: bool) -> Iterator[Source]:
    for path in texts(root_paths):
        yield Source(path=resolve_uri(path), listed=listed)


def temp_views_of(jplan: Any) -> set[str]:
    """Return names of the temporary views that an analysed plan goes through."""
    names: set[str] = set()
    open_ = [jplan, *items(jplan.subqueriesAll())]
    while open_:
        plan = open_.pop()
        if simple_name(plan) == "View" and plan.isTempView():
            names.add(plan.desc().identifier().table().lower())
        open_ += items(plan.children())
    return names
