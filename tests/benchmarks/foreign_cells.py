"""Cells of other people's, plain and under `%%flinkgraph NAME --run`: what the magic breaks, loses or hurries.

With `--session` ours is the session mode: it is switched on, and the notebook runs.

What runs: `_foreign_cells`. Each notebook runs twice in one process on one session, in a fresh namespace and an empty
folder each time; between the two Spark's catalog, configuration, cache and streams are put back. A cell that fails
plainly tells nothing and is not counted. A notebook that differs runs five times more: what differs between plain
runs, too, or is once as in the first, is chance (the order of rows without a sort, say). An error never is.

Figures: `notebooks`, `cells` (those that end well in the plain run), `errors` (of them, those that end in an exception
under the magic), `values_lost` (the last line's value or the printed text differs), `settled_early` (writes that were
deployed before the cell's end: each is printed with its line and the reason that the record gives, and the reasons are
counted in the end), `not_runnable` (cells; each notebook is printed with what it lacks), `failing` (cells that fail
plainly; `failing_otherwise`: with another class under the magic), `chance` (cells that differ between plain runs),
`not_ended` (notebooks with a cell that takes longer than 40 s), `actions` (of the session mode), `seconds`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import flinkmagic
from flinkmagic.session import release_retained, retained
from tests.benchmarks._foreign_cells import (
    SPARK_MODULES,
    Notebook,
    beside,
    docstrings,
    packages_beside,
    spark_examples,
)
from tests.notebook_shell import CellTimeoutError, Left, NotebookShell, comparable, lines_kept

CELL_S = 40.0
AGAIN = (False, True, False, True, False)
"""How a notebook that differs runs again: under the magic or plainly."""


@dataclass
class Outcome:
    """What a cell left, in the form that is compared."""

    left: Left
    value: object

    @property
    def failed(self) -> bool:
        return self.left.error is not None


@dataclass
class Tally:
    """What was found."""

    figures: Counter[str] = field(default_factory=Counter)
    told: list[str] = field(default_factory=list)
    settled: Counter[str] = field(default_factory=Counter)

    def tell(self, text: str) -> None:
        print(text, flush=True)
        self.told.append(text)


class Bench:
    """Runs notebooks both ways.

    Parameters
    ----------
    notebooks : NotebookShell
        Where cells run.
    home : Path
        The folder in which they run; Spark resolves relative paths there, too.
    session : bool
        Whether ours is the session mode.
    """

    def __init__(self, notebooks: NotebookShell, home: Path, *, session: bool) -> None:
        self._shell, self._home, self._session = notebooks, home, session
        self._spark = flinkmagic.local_session("foreign-cells", master="local[2]", config=self._config())
        self._spark.sparkContext.setLogLevel("OFF")
        self._conf = self._settings()

    def _config(self) -> dict[str, str]:
        return {
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.default.parallelism": "2",
            "spark.driver.memory": "2g",
            "spark.sql.warehouse.dir": str(self._home / "warehouse"),
        }

    def _settings(self) -> dict[str, str]:
        conf = self._spark._jsparkSession.sessionState().conf().getAllConfs()
        return {pair._1(): pair._2() for pair in _scala(conf)}

    def session(self) -> Any:
        """The session; another one where the cells before have stopped it."""
        if self._spark.sparkContext._jsc is None or self._spark.sparkContext._jsc.sc().isStopped():
            self._spark = flinkmagic.local_session("foreign-cells", master="local[2]", config=self._config())
            self._spark.sparkContext.setLogLevel("OFF")
        return self._spark

    def run(self, notebook: Notebook, *, magic: bool) -> list[Outcome]:
        """What each cell left."""
        spark = self.session()
        self._clean()
        names: dict[str, Any] = {}
        if notebook.module is not None:
            module = sys.modules[notebook.module]
            names = {name: value for name, value in vars(module).items() if not name.startswith("__")}
            names |= {"spark": spark, "sc": spark.sparkContext, "temp_path": str(self._home / "tmp")}
        self._shell.begin(**names)
        argv, sys.argv = sys.argv, [notebook.name, *notebook.arguments]
        if magic and self._session:
            error = self._shell.run("%flinkgraph on").error
            if error is not None:  # two plain runs would be compared
                raise error
        try:
            return [
                self._cell(cell, f"%%flinkgraph c{number} --run\n" if magic and not self._session else "")
                for number, cell in enumerate(notebook.cells)
            ]
        finally:
            sys.argv = argv
            if magic and self._session:
                self._shell.run("%flinkgraph off")

    def _cell(self, cell: str, head: str) -> Outcome:
        left = self._shell.run(head + cell, seconds=CELL_S)
        try:
            value = comparable(left.value)
        except Exception as error:  # noqa: BLE001 - a value that cannot be computed is compared by why
            value = ("not computed", type(error).__name__)
        return Outcome(left, value)

    def _clean(self) -> None:
        """Put back what cells change: streams, retained results, cache, catalog, configuration, files."""
        spark = self.session()
        for query in spark.streams.active:
            query.stop()
        for graph in {one.graph for one in retained(spark)}:
            release_retained(spark, graph)
        spark.catalog.clearCache()
        catalog = spark._jsparkSession.sessionState().catalog()
        for view in [one.name for one in spark.catalog.listTables() if one.isTemporary]:
            spark.catalog.dropTempView(view)
        spark.sql("USE spark_catalog.default")
        for database in [one.name for one in spark.catalog.listDatabases() if one.name != "default"]:
            spark.sql(f"DROP DATABASE `{database}` CASCADE")
        for table in spark.catalog.listTables("default"):
            kind = "VIEW" if table.tableType == "VIEW" else "TABLE"
            spark.sql(f"DROP {kind} IF EXISTS spark_catalog.default.`{table.name}`")
        catalog.reset()
        now = self._settings()
        for key in now.keys() - self._conf.keys():
            spark._jsparkSession.sessionState().conf().unsetConf(key)
        for key, value in self._conf.items():
            if now.get(key) != value:
                spark._jsparkSession.sessionState().conf().setConfString(key, value)
        for path in self._home.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif not path.is_symlink():
                path.unlink()
        (self._home / "tmp").mkdir()


def _scala(pairs: Any) -> Iterator[Any]:
    iterator = pairs.iterator()
    while iterator.hasNext():
        yield iterator.next()


def compare(bench: Bench, notebook: Notebook, tally: Tally) -> None:
    """Run a notebook both ways and count what differs."""
    plain = bench.run(notebook, magic=False)
    ours = bench.run(notebook, magic=True)
    differing = [number for number, pair in enumerate(zip(plain, ours, strict=True)) if _differs(*pair)]
    others = [bench.run(notebook, magic=magic) for magic in AGAIN] if differing else []
    for number, (before, after) in enumerate(zip(plain, ours, strict=True)):
        where = f"{notebook.name}[{number}]"
        tally.figures["failing" if before.failed else "cells"] += 1
        tally.figures["actions"] += len(after.left.reports)
        for settlement in after.left.settlements:
            tally.figures["settled_early"] += len(settlement.writes)
            tally.settled[settlement.cause] += len(settlement.writes)
            tally.tell(f"settled {where}: {settlement.cause}: {settlement.location.code}")
        if number not in differing:
            continue
        again = [(magic, other[number]) for magic, other in zip(AGAIN, others, strict=True)]
        broken = after.failed and not before.failed and not any(one.failed for magic, one in again if not magic)
        # Plain runs that differ are chance, and so is a run of ours that is as plain.
        if not broken and any(_differs(before, one) is not magic for magic, one in again):
            tally.figures["chance"] += 1
            continue
        if before.failed:
            tally.figures["failing_otherwise"] += 1
            tally.tell(f"other class {where}: {before.left.error_class} / {after.left.error_class}")
        elif after.failed:
            tally.figures["errors"] += 1
            tally.tell(f"error {where}: {after.left.error_class}: {str(after.left.error)[:300]}")
        else:
            tally.figures["values_lost"] += 1
            what = "value" if before.value != after.value else "text"
            pair = (before.value, after.value) if what == "value" else (before.left.stdout, after.left.stdout)
            tally.tell(f"lost {where}: {what}\n  plain {pair[0]!s:.300}\n  ours  {pair[1]!s:.300}")


def _differs(plain: Outcome, other: Outcome) -> bool:
    if plain.left.error_class != other.left.error_class:
        return True
    return plain.value != other.value or not lines_kept(plain.left.stdout, other.left.stdout)


def notebooks(options: argparse.Namespace) -> list[Notebook]:
    """What is asked for; of the long modules every so-manieth docstring."""
    found = list(beside())
    if options.beside_only:
        return [one for one in found if options.only in one.name]
    found += [] if options.docstrings_only else spark_examples()
    by_module: dict[str, list[Notebook]] = {}
    for notebook in docstrings(options.module or SPARK_MODULES):
        by_module.setdefault(notebook.module or "", []).append(notebook)
    for several in by_module.values():
        found += several[:: max(1, len(several) // options.most)]
    return [one for one in found if options.only in one.name]


def main(arguments: list[str]) -> dict[str, float | int | str]:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks foreign-cells")
    parser.add_argument("--only", default="", help="notebooks whose name contains this")
    parser.add_argument("--module", action="append", help="docstrings of this module (several: again)")
    parser.add_argument("--docstrings-only", action="store_true", help="leave Spark's example files out")
    parser.add_argument("--beside-only", action="store_true", help="only the packages that are installed beside")
    parser.add_argument("--session", action="store_true", help="compare the session mode, not the cell magic")
    parser.add_argument("--most", type=int, default=20, help="about so many docstrings a module (%(default)s)")
    options = parser.parse_args(arguments)
    start = time.monotonic()
    tally = Tally()
    chosen = notebooks(options)
    names = [str(one.metadata["Name"]) for one in packages_beside()]
    print("installed beside PySpark:", ", ".join(names) or "nothing", flush=True)
    with tempfile.TemporaryDirectory() as folder, NotebookShell() as shell:
        home = Path(folder).resolve()
        _link_data(home)
        before = Path.cwd()
        os.chdir(home)
        try:
            bench = Bench(shell, home, session=options.session)
            for notebook in chosen:
                if notebook.lacks:
                    tally.figures["not_runnable"] += len(notebook.cells)
                    tally.tell(f"not run {notebook.name}: {notebook.lacks}")
                    continue
                try:
                    compare(bench, notebook, tally)
                    tally.figures["notebooks"] += 1
                except CellTimeoutError as error:
                    tally.figures["not_ended"] += 1
                    tally.tell(f"not ended {notebook.name}: {error}")
            bench.session().stop()
        finally:
            os.chdir(before)
    for reason, number in tally.settled.most_common():
        print(f"settled early, {reason}: {number}")
    names = "notebooks cells errors values_lost settled_early not_runnable failing failing_otherwise chance not_ended"
    figures = {name: tally.figures[name] for name in [*names.split(), "actions"]}
    return {**figures, "seconds": round(time.monotonic() - start)}


def _link_data(home: Path) -> None:
    """Lay the data that the package ships where its examples look for them."""
    import pyspark

    (home / "data").symlink_to(Path(pyspark.__file__).parent / "data")
