"""Asks the driver what a capture has to know, with one gateway call for each question.

``java/CaptureReader.java`` answers; for the leaves of plans ``LeafReader.java``, for RDDs ``LineageReader.java``.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark import SparkContext

from flinkmagic.capturing.driver.java_classes import CLASSES
from flinkmagic.jvm.java import session_state

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import SparkSession


def output_ids(query_execution: JavaObject) -> tuple[int, ...]:
    """Return the expression ids of a query's output attributes; none for a query that is part of another."""
    return tuple(map(int, _reader().outputIds(query_execution).split()))


def is_part_of_another(query_execution: JavaObject) -> bool:
    """Return whether a query is analysed only as part of another, one of whose columns it names (`Column.outer`)."""
    return bool(_reader().isPartOfAnother(query_execution))


def session_facts(spark: SparkSession) -> bytes:
    """Return a session's current catalog, namespace and SQL configuration, and Hadoop's settings.

    Equal if nothing changed (see `as_json`). A session whose context is stopped has them too.
    """
    return _reader().state(session_state(spark), spark._jsparkSession.sparkContext())


def hadoop_settings() -> dict[str, str]:
    """Return what Spark or the user set in the context's Hadoop configuration; not Hadoop's own defaults."""
    context: Any = SparkContext._active_spark_context
    return as_json(_reader().hadoop(context._jsc.hadoopConfiguration()))


def hadoop_defaults(names: list[str]) -> dict[str, str | None]:
    """Return Hadoop's own defaults for settings; None for a setting that has none."""
    return as_json(_reader().hadoopDefaults(names)) if names else {}


@dataclass(frozen=True)
class Leaf:
    """A leaf of an analysed plan."""

    kind: str
    """The class's name, without the package."""
    paths: tuple[str, ...] | None
    """The folders of a relation of files that belongs to no table."""
    linked: tuple[str, ...]
    """What symbolic links in `paths` point to."""
    listed: bool
    """Whether those files were listed when the DataFrame was made."""
    flat: bool
    """Whether none of the listed files lies in a folder below those."""
    _plan: Any
    _place: int

    def jvm_leaf(self) -> JavaObject:
        """Return the leaf itself."""
        return _reader("LeafReader").leaf(self._plan, self._place)


def leaves_of(jplan: JavaObject) -> Iterator[Leaf]:
    """Return the leaves of an analysed Java plan, followed by those of its subqueries."""
    for place, leaf in enumerate(as_json(_reader("LeafReader").leaves(jplan))):
        paths = tuple(leaf["paths"]) if "paths" in leaf else None
        linked = tuple(leaf.get("linked", ()))
        yield Leaf(leaf["class"], paths, linked, leaf.get("listed", False), leaf.get("flat", False), jplan, place)


def rdd_paths(rdd: JavaObject) -> Iterator[tuple[str, bool]]:
    """Return the paths that a Java RDD reads, and whether its files have been listed; none for a checkpointed RDD.

    A DataFrame made from an RDD (``df.rdd.map(f).toDF()``) has no source in its plan, but still reads files. Only files
    that are certain to be read are returned: one file of each folder of a scan, the folders of a Hadoop input.
    """
    return ((path, listed) for path, listed in as_json(_reader("LineageReader").rddPaths(rdd)))


def lineage_holds(rdd: JavaObject, number: int) -> bool:
    """Return whether an RDD with this id is part of the lineage of a Java RDD."""
    return bool(_reader("LineageReader").lineageHolds(rdd, number))


def cached_relations(jplan: JavaObject) -> set[int]:
    """Return a number for each cache whose rows a plan reads, once Spark has put its cached data into the plan."""
    return set(map(int, _reader("LeafReader").cachedRelations(jplan).split()))


def java_types(jobject: JavaObject) -> tuple[str, ...]:
    """Return the names of an object's class and of all that it extends and implements."""
    return tuple(_reader().types(jobject).split())


def partitions_elsewhere(table: JavaObject, *jstate: JavaObject) -> list[str]:
    """Return the folders of a table's partitions that lie outside the table's own folder.

    Parameters
    ----------
    table : JavaObject
        A ``LogicalRelation``, or a ``CatalogTable`` and the state of the session that knows its catalog.
    """
    return as_json(_reader().partitionsElsewhere(table, *jstate))


def file_write(command: JavaObject, jstate: JavaObject) -> dict[str, Any]:
    """Return where and how an `InsertIntoHadoopFsRelationCommand` writes in a session with the state `jstate`.

    Returns
    -------
    dict
        ``path`` and its last part ``file``, ``mode`` (a ``SaveMode``), ``format`` (its short name), ``options``,
        ``columns`` (partition columns), ``dynamic`` (whether it replaces only the partitions that it writes), ``table``
        (whether it writes a catalog table's folder), ``elsewhere`` (the folders of the table's partitions that lie
        outside it).
    """
    return as_json(_reader().fileWrite(command, jstate))


def as_json(deflated: bytes) -> Any:
    """Return the reader's answer."""
    return json.loads(zlib.decompress(deflated))


def _reader(name: str = "CaptureReader") -> Any:
    return CLASSES.shared_instance(SparkContext._gateway, name)
