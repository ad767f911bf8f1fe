"""TPC-H: its tables at any scale, and its 22 queries with the specification's validation parameters."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")

QUERIES = {path.stem: path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.glob("q*.sql"))}
"""``q01`` to ``q22``, as SQL."""


def generate(folder: Path, scale: float) -> None:
    """Write the tables as parquet files; scale 1 is a gigabyte of text."""
    command = Path(sys.executable).parent / "tpchgen-cli"
    subprocess.run(
        [command, "parquet", "--scale-factor", str(scale), "--output-dir", folder], check=True, capture_output=True
    )


def register(spark: SparkSession, folder: Path) -> None:
    """Make the tables temporary views of a session."""
    for table in TABLES:
        spark.read.parquet(str(folder / f"{table}.parquet")).createOrReplaceTempView(table)
