"""A cell to capture, and what plain Spark does with the same lines."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from flinkmagic.capturing.capture import capture
from flinkmagic.capturing.capture_listener import DeployingListener
from flinkmagic.capturing.capture_mode import CaptureMode
from flinkmagic.capturing.program import Program
from flinkmagic.capturing.source_code.source_location import CellSource

CELL_FILE = "/tmp/ipykernel_1/4242.py"


class Cell(DeployingListener):
    """Runs source text as a cell of a notebook would be run, plainly or captured."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.namespace: dict[str, Any] = {"spark": spark, "F": F, "at": self.at}
        self.deployed: list[str] = []

    def at(self, name: str) -> str:
        """A path in the test's own folder."""
        return str(self.folder / name)

    def plain(self, source: str) -> None:
        """Run lines without flinkmagic."""
        exec(compile(textwrap.dedent(source), CELL_FILE, "exec"), self.namespace)

    def capture(self, source: str, deploying: bool = False, **options: Any) -> Program:
        """Run lines captured; with `deploying`, lines that need a pending write get it."""
        source = textwrap.dedent(source)
        location = CellSource("cell 3", CELL_FILE, source)
        mode = CaptureMode.RUN if deploying else CaptureMode.BATCH
        with capture(
            self.spark, location=location, mode=mode, listener=self, namespace=self.namespace, **options
        ) as program:
            exec(compile(source, CELL_FILE, "exec"), self.namespace)
        return program

    def run_pending(self, program: Program) -> None:
        """Run a program's writes one after the other, each as Spark's own command."""
        everything = self.spark._jvm.org.apache.spark.sql.execution.CommandExecutionMode.ALL()
        for write in program.writes:
            state = self.spark._jsparkSession.sessionState()
            state.executePlan(write.command, everything).commandExecuted()
            self.deployed.append(write.name)

    def rows(self, name: str, file_format: str = "parquet") -> list[Any]:
        """The first column of what lies at a path, sorted."""
        df = self.spark.read.format(file_format).load(self.at(name))
        return sorted(row[0] for row in df.collect())

    def ids(self, table: str) -> list[int]:
        """The column `id` of a table, sorted."""
        return sorted(row["id"] for row in self.spark.table(table).collect())

    def files(self) -> dict[str, bytes]:
        """All files below the test's folder, and what is in them."""
        return {str(path): path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}

    def made(self, name: str = "") -> set[str]:
        """What lies in the test's folder, or in one below it."""
        return {path.name for path in (self.folder / name).iterdir()}


@pytest.fixture
def cell(spark: Any, tmp_path: Path) -> Cell:
    return Cell(spark, tmp_path)


@pytest.fixture
def numbers(cell: Cell) -> Callable[[str, int], str]:
    """Writes the numbers below n as parquet to a name, plainly."""

    def write(name: str, n: int) -> str:
        cell.spark.range(0, n, 1, 1).write.mode("overwrite").parquet(cell.at(name))
        return cell.at(name)

    return write


@pytest.fixture
def table(cell: Any) -> Iterator[Any]:
    """Makes tables of the numbers below n, and takes all tables of the test away."""

    def make(name: str, n: int) -> None:
        cell.plain(f"spark.range({n}).selectExpr('id', 'id % 2 AS k').write.partitionBy('k').saveAsTable('{name}')")

    before = {each.name for each in cell.spark.catalog.listTables() if not each.isTemporary}
    yield make
    for each in cell.spark.catalog.listTables():
        if not each.isTemporary and each.name not in before:
            cell.plain(f"spark.sql('DROP TABLE {each.name}')")
