"""What a cell leaves outside of its own output: files, tables, the session's settings."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

from flinkmagic.jvm.java import java_class

DATABASE = "differential"


def files(folder: Path) -> dict[str, object]:
    """What lies in a folder: of Spark's part files the rows by folder, of other files the text, of folders the name.

    How many part files there are and how they are called is Spark's affair, and differs with the number of tasks.
    """
    found: dict[str, object] = {}
    for here, folders, names in os.walk(folder):
        at = Path(here)
        place = at.relative_to(folder).as_posix()
        if not folders and not names:
            found[f"{place}/"] = "empty"
        rows: dict[str, list[str]] = {}
        types: dict[str, set[str]] = {}
        for name in sorted(names):
            if name.startswith(".") and name.endswith(".crc"):
                continue
            if name.startswith("part-"):
                kind = name.rsplit(".", 1)[-1]
                kind = name.split(".", 1)[-1].split(".c000.")[-1] if kind in ("gz", "zst", "bz2") else kind
                kinds, several = _rows(at / name)
                rows.setdefault(kind, []).extend(several)
                types.setdefault(kind, set()).add(kinds)
            elif (at / name).is_symlink():
                found[f"{place}/{name}"] = "a link"
            else:
                found[f"{place}/{name}"] = _text(at / name)
        for kind, several in rows.items():
            found[f"{place}/*.{kind}"] = (sorted(types[kind]), sorted(several))
    return found


def _rows(path: Path) -> tuple[str, list[str]]:
    """The columns of a part file, where its format knows them, and its rows."""
    name = path.name
    if name.endswith((".parquet", ".orc")):
        from pyarrow import orc, parquet

        table = parquet.ParquetFile(path).read() if name.endswith(".parquet") else orc.read_table(path)
        return ", ".join(f"{one.name} {one.type}" for one in table.schema), [str(row) for row in table.to_pylist()]
    if name.endswith(".gz"):
        return "", gzip.decompress(path.read_bytes()).decode().splitlines()
    return "", _text(path).splitlines()


def _text(path: Path) -> str:
    data = path.read_bytes()
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"{len(data)} bytes"


class SessionState:
    """The session's catalog and settings, read and put back.

    Parameters
    ----------
    spark : SparkSession
        The session.
    """

    def __init__(self, spark: Any) -> None:
        self._spark = spark
        self._settings = self._conf()
        self._hadoop = spark._jvm.java.io.ByteArrayOutputStream()
        spark._jsc.hadoopConfiguration().write(spark._jvm.java.io.DataOutputStream(self._hadoop))

    def _conf(self) -> dict[str, str]:
        text = self._spark._jsparkSession.sessionState().conf().getAllConfs().mkString("\x01")
        pairs = (pair.partition(" -> ") for pair in text.split("\x01"))
        return {key: value for key, _, value in pairs}

    def begin(self, folder: Path) -> None:
        """Leave nothing of what ran before, and use a new database in the folder."""
        from flinkmagic.session import release_retained, retained

        spark = self._spark
        for query in spark.streams.active:
            query.stop()
        for graph in {one.graph for one in retained(spark)}:
            release_retained(spark, graph)
        spark.catalog.clearCache()
        catalog = spark._jsparkSession.sessionState().catalog()
        catalog.clearTempTables()
        catalog.setCurrentDatabase("default")
        conf, now = spark._jsparkSession.sessionState().conf(), self._conf()
        for key in now.keys() - self._settings.keys():
            conf.unsetConf(key)
        for key, value in self._settings.items():
            if now.get(key) != value:
                conf.setConfString(key, value)
        data, bytes_of = (java_class(spark._jvm, f"java.io.{name}InputStream") for name in ("Data", "ByteArray"))
        spark._jsc.hadoopConfiguration().readFields(data(bytes_of(self._hadoop.toByteArray())))
        # Not by SQL: that is a query each time, with a plan and all its listeners.
        catalog.dropDatabase(DATABASE, True, True)
        definition = catalog.getDatabaseMetadata("default")
        parts = [definition.productElement(number) for number in range(definition.productArity())]
        location = java_class(spark._jvm, "java.io.File")(str(folder / "tables")).toURI()
        catalog.createDatabase(definition.copy(DATABASE, parts[1], location, *parts[3:]), False)
        catalog.setCurrentDatabase(DATABASE)

    def end(self) -> None:
        """Forget the database."""
        self._spark._jsparkSession.sessionState().catalog().setCurrentDatabase("default")
        self._spark._jsparkSession.sessionState().catalog().dropDatabase(DATABASE, True, True)

    def read(self) -> dict[str, object]:
        """The tables of the database, temporary views, the current database, settings that differ."""
        catalog = self._spark._jsparkSession.sessionState().catalog()
        found: dict[str, object] = {"current database": catalog.getCurrentDatabase()}
        external = catalog.externalCatalog()
        for database in external.listDatabases().mkString(",").split(","):
            if database != "default":
                found[f"database {database}"] = True
        if catalog.databaseExists(DATABASE):
            for name in filter(None, external.listTables(DATABASE).mkString(",").split(",")):
                table = external.getTable(DATABASE, name)
                found[f"table {name}"] = (
                    table.tableType().name(),
                    table.provider().toString(),
                    table.schema().json(),
                    table.partitionColumnNames().mkString(","),
                    table.comment().toString(),
                )
        found["temporary views"] = catalog.listLocalTempViews("*").mkString(",")
        now = self._conf()
        changed = {key for key in now.keys() | self._settings.keys() if now.get(key) != self._settings.get(key)}
        found["settings"] = {key: now.get(key) for key in sorted(changed)}
        return found
