"""Asks a session for the facts of DataFrames, files and settings, for the table of cells."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError
from pyspark import SparkContext

from flinkmagic.capturing.driver.capture_reader import hadoop_settings
from flinkmagic.capturing.session_snapshot import SessionSnapshot, read_conf
from flinkmagic.capturing.writes.targets import resolve_uri
from flinkmagic.jvm.java import execution_of, is_gone
from flinkmagic.reuse.result_keys import ListedFiles, QueryFacts, ResultKeys, relevant_settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_UNKNOWN = QueryFacts("")


class FrameFacts:
    """The facts of DataFrames; each is asked once, since its plan does not change."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[DataFrame, QueryFacts] = WeakKeyDictionary()
        self._keys: ResultKeys | None = None

    def rest(self) -> None:
        """End a moment: release what the JVM holds for it; the next one looks modules up again."""
        self._keys = None

    def knows(self, df: DataFrame) -> bool:
        """Return whether a DataFrame has been asked."""
        return df in self._known

    def of(self, df: DataFrame) -> QueryFacts:
        """Return the facts of a DataFrame's query; none if its session is gone."""
        known = self._known.get(df)
        if known is None:
            known = self._known[df] = self._asked(df)
        return known

    def _asked(self, df: DataFrame) -> QueryFacts:
        sc = df.sparkSession.sparkContext
        if sc is not SparkContext._active_spark_context:
            return _UNKNOWN
        try:
            if self._keys is None:
                self._keys = ResultKeys(sc)
            return self._keys.of_query(execution_of(df).analyzed())
        except (Py4JError, OSError):
            if not is_gone(df.sparkSession):
                raise
            return _UNKNOWN


def settings_then(snapshot: SessionSnapshot | None) -> Mapping[str, str]:
    """Return those settings of a session, as it was then, that can affect rows."""
    return {} if snapshot is None else relevant_settings(snapshot.conf, snapshot.hadoop)


def settings_now(spark: SparkSession) -> Mapping[str, str]:
    """Return the settings that can affect rows."""
    return relevant_settings(read_conf(spark._jsparkSession), hadoop_settings())


class FilesNow:
    """Compares lists of files with those that exist now; each root is listed once."""

    def __init__(self, spark: SparkSession) -> None:
        self._keys = ResultKeys(spark.sparkContext)
        self._there: dict[str, dict[str, str]] = {}

    def changed(self, listed: ListedFiles) -> str:
        """Return a change of listed files, such as ``file data/x.csv changed``; empty if there is none."""
        then = _by_path(listed.files)
        now: dict[str, str] = {}
        for root in listed.roots:
            now.update(self._listing(root))
        for path, facts in then.items():
            if path not in now:
                return f"file {_shown(path)} is gone"
            if now[path] != facts:
                return f"file {_shown(path)} changed"
        new = next((path for path in now if path not in then and _is_read(path, listed)), None)
        return "" if new is None else f"file {_shown(new)} is new"

    def _listing(self, root: str) -> dict[str, str]:
        if root not in self._there:
            self._there[root] = _by_path(self._keys.listing(root) or [])
        return self._there[root]


def _by_path(lines: Iterable[str]) -> dict[str, str]:
    """Return the length and the modification time of files, by their paths."""
    return {path: f"{length}|{modified}" for path, length, modified in (line.rsplit("|", 2) for line in lines)}


def _is_read(path: str, listed: ListedFiles) -> bool:
    """Return whether a new file would be listed, as far as its path tells."""
    root = next((root for root in listed.roots if path.startswith(f"{root.rstrip('/')}/")), None)
    if root is None:
        return False
    parts = path.removeprefix(root).strip("/").split("/")
    if any(part.startswith(".") or (part.startswith("_") and "=" not in part) for part in parts):
        return False  # Spark treats it as hidden
    files = [one.rsplit("|", 2)[0] for one in listed.files]
    is_flat = all(os.path.dirname(one) == root.rstrip("/") for one in files if one.startswith(root))
    if files and is_flat and len(parts) > 1:
        return False
    return not listed.is_filtered or any(os.path.splitext(one)[1] == os.path.splitext(path)[1] for one in files)


def _shown(path: str) -> str:
    """Return a path in the form that the user would type."""
    resolved = resolve_uri(path)
    if not resolved.startswith("file:"):
        return path
    local, here = resolved.removeprefix("file:"), os.getcwd()
    return os.path.relpath(local, here) if local.startswith(here + os.sep) else local
