"""What the magic costs a cell that needs nothing of it: seconds of its actions, lazy lines, files past Spark.

Three pairs of cells, each plain and under `%%flinkgraph NAME --run`, interleaved (plain, ours, ours, plain), so that a
steady drift cancels:

- `capture_ratio`: 30 lines whose actions take at least 3 s. Target: at most 1.05.
- `capture_ms`: what 30 lazy lines of DataFrame calls cost more. Target: at most 150.
- `audit_ratio`: pandas writes and reads 100 files in a cell that has a write pending elsewhere; the cell times these
  lines itself, because the write takes as long as they do. Target: at most 1.05.

Further figures: the medians of the times themselves, `pairs`, `load`.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

import flinkmagic
from tests.notebook_shell import NotebookShell

LINES = 30


def actions_cell(rows: int) -> str:
    """A cell of 30 lines: lazy ones, and five that start Spark jobs."""
    lines = [
        "from pyspark.sql import functions as F",
        f"df = spark.range(0, {rows}, 1, 4)",
        "df = df.withColumn('k', F.pmod(F.hash('id'), F.lit(1000)))",
    ]
    for number in range(4):
        lines += [
            f"a{number} = df.withColumn('x', F.sha2(F.concat_ws('-', 'id', F.lit({number})), 256))",
            f"b{number} = a{number}.where(F.col('k') > {number})",
            f"c{number} = b{number}.groupBy('k').agg(F.max('x').alias('m'), F.count('*').alias('n'))",
            f"d{number} = c{number}.orderBy('k').limit(3)",
            f"found{number} = d{number}.collect()",
            f"size{number} = b{number}.where(F.col('x') > 'f').count()",
        ]
    lines += ["print(found0, size0)", "total = size0 + size1 + size2 + size3", "total"]
    assert len(lines) == LINES, len(lines)
    return "\n".join(lines) + "\n"


def lazy_cell() -> str:
    """30 lazy lines, the last of which says that no name is worth computing."""
    lines = ["from pyspark.sql import functions as F", "df = spark.range(1000)"]
    kinds = (
        "df = df.withColumn('c{0}', F.col('id') + {0})",
        "df = df.where(F.col('id') > {0})",
        "df = df.select('*', (F.col('id') * {0}).alias('m{0}'))",
    )
    lines += [kinds[number % len(kinds)].format(number) for number in range(LINES - 4)]
    lines += ["columns = len(df.columns)", "df = None"]
    assert len(lines) == LINES, len(lines)
    return "\n".join(lines) + "\n"


def files_cell(folder: Path, out: Path, files: int) -> str:
    """A write that stays pending, and pandas beside it, whose seconds the cell leaves under the name `seconds`."""
    return (
        "import time\nimport pandas as pd\n"
        f"spark.range(10).coalesce(1).write.mode('overwrite').parquet('{out}')\n"
        "start = time.perf_counter()\n"
        f"for n in range({files}):\n"
        f"    pd.DataFrame({{'x': range(2000)}}).to_csv(f'{folder}/{{n}}.csv')\n"
        f"total = sum(int(pd.read_csv(f'{folder}/{{n}}.csv')['x'].sum()) for n in range({files}))\n"
        "seconds = time.perf_counter() - start\n"
    )


class Pairs:
    """Times a cell both ways."""

    def __init__(self, notebooks: NotebookShell, spark: object) -> None:
        self._shell, self._spark = notebooks, spark

    def seconds(self, cell: str, *, magic: bool) -> float:
        self._shell.begin(spark=self._spark)
        start = time.perf_counter()
        left = self._shell.run(("%%flinkgraph ordinary --run --retain none\n" if magic else "") + cell)
        taken = time.perf_counter() - start
        if left.error is not None:
            raise left.error
        return float(self._shell.namespace.get("seconds", taken))

    def pair(self, cell: str) -> tuple[float, float]:
        """Plain and ours, each the mean of two."""
        first, ours, again, last = (self.seconds(cell, magic=magic) for magic in (False, True, True, False))
        return (first + last) / 2, (ours + again) / 2


def main(arguments: list[str]) -> dict[str, float]:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks ordinary")
    parser.add_argument("--pairs", type=int, default=5, help="counted pairs of each kind (%(default)s)")
    parser.add_argument("--rows", type=int, default=3_000_000, help="rows of the actions (%(default)s)")
    parser.add_argument("--files", type=int, default=100, help="files of pandas (%(default)s)")
    options = parser.parse_args(arguments)
    spark = flinkmagic.local_session(
        "ordinary-benchmark", config={"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "4"}
    )
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder, NotebookShell() as notebooks:
        home = Path(folder).resolve()
        (home / "files").mkdir()
        pairs = Pairs(notebooks, spark)
        cells = {
            "actions": actions_cell(options.rows),
            "lazy": lazy_cell(),
            "files": files_cell(home / "files", home / "out", options.files),
        }
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in cells}
        for number in range(options.pairs + 1):
            for name, cell in cells.items():
                pair = pairs.pair(cell)
                if number:  # the first warms up
                    times[name].append(pair)
    spark.stop()
    return {
        "capture_ratio": round(statistics.median(ours / plain for plain, ours in times["actions"]), 3),
        "capture_ms": round(1000 * statistics.median(ours - plain for plain, ours in times["lazy"]), 1),
        "audit_ratio": round(statistics.median(ours / plain for plain, ours in times["files"]), 3),
        "actions_s": round(statistics.median(plain for plain, _ in times["actions"]), 3),
        "files_s": round(statistics.median(plain for plain, _ in times["files"]), 3),
        "pairs": options.pairs,
        "load": round(os.getloadavg()[0], 1),
    }
