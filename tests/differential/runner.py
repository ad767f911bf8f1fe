"""Runs a notebook in several ways and says what differs from the plain one.

The others are: compiled and then run, `%%flinkgraph NAME --run`, plain cells with the session mode on. All share one
process and one session. Each has a folder of its own, which is taken out of all texts, and a database of its own in
that folder. What is compiled first may instead be refused, if that leaves each file and each table either as it was
before the cell or as the plain run leaves it; files that lines before the refused one have made may be there.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flinkmagic.capturing.program import Program
from flinkmagic.errors.base import FlinkMagicError
from flinkmagic.session.actions.action_report import ONE_STAGE
from flinkmagic.session.actions.session_actions import OBSERVED, ONLY_SPARK, STREAMING
from tests.differential.cells_file import Notebook
from tests.differential.state import SessionState, files
from tests.notebook_shell import CellTimeoutError, Left, NotebookShell, comparable, lines_kept, steady

CELL_S = 60.0
FAILED = "ran as plain Spark, because flinkmagic failed"
NOT_DRIVEN = frozenset({ONE_STAGE, OBSERVED, STREAMING, ONLY_SPARK})
WAYS = ("plain", "compile", "run", "session")
PRELUDE = """\
import os, pathlib, shutil, subprocess, sqlite3, socket, tempfile, threading, json, glob, io
from pyspark.sql import Row, Window, functions as F
"""


@dataclass
class StepLeft:
    """What one cell of a notebook left."""

    value: object
    stdout: str
    error: str
    told: str
    abandoned: bool = False
    """Whether its capture ended in an exception, so that its writes are not going to run."""
    refused: bool = False
    """Whether that exception is one of this package's."""
    fallbacks: tuple[str, ...] = ()
    """What plain Spark has run because something of ours failed."""
    defers: bool = True
    """Whether its capture left writes that nothing in it needed, and has run nothing."""


@dataclass
class WayLeft:
    """What a notebook left.

    Attributes
    ----------
    steps : list of StepLeft
        By cell, up to the first that was abandoned.
    before, after : dict
        Files, tables and settings, as they were before the last captured cell and in the end.
    """

    steps: list[StepLeft] = field(default_factory=list)
    before: dict[str, object] = field(default_factory=dict)
    after: dict[str, object] = field(default_factory=dict)

    @property
    def only_defers(self) -> bool:
        """Whether no cell did more than to defer its writes: ``--run`` deploys the very same at the end of the cell."""
        return all(step.defers for step in self.steps)


class Runner:
    """Runs notebooks; to be used as a context manager.

    Parameters
    ----------
    session : callable
        Gives the running session, or another one where a cell has stopped it.
    home : Path
        An empty folder.

    Attributes
    ----------
    actions : Counter of str
        With the session mode on: how many actions were driven, fell back, or were not driven, by the reason.
    """

    def __init__(self, session: Callable[[], Any], home: Path) -> None:
        self._session, self._home = session, home
        self._spark = session()
        self._shell = NotebookShell()
        self._state = SessionState(self._spark)
        self._template = home / "template"
        self.actions: Counter[str] = Counter(driven=0, fallbacks=0)

    def __enter__(self) -> Runner:
        self._shell.__enter__()
        self._lay_out()
        return self

    def __exit__(self, *raised: object) -> None:
        self._shell.__exit__()
        self._renew()
        self._state.end()

    @property
    def _alive(self) -> bool:
        context = self._spark.sparkContext
        return context._jsc is not None and not context._jsc.sc().isStopped()

    def _renew(self) -> None:
        if not self._alive:
            self._spark = self._session()
            self._state = SessionState(self._spark)

    def _lay_out(self) -> None:
        """What every notebook finds: `a` and `b` (parquet), `c` (CSV), `j` (JSON), `p` (by `k`), two text files."""
        spark, at = self._spark, str(self._template)
        rows = spark.range(0, 6, 1, 1).selectExpr("id", "id % 2 AS k", "concat('v', id) AS v")
        rows.write.parquet(f"{at}/a")
        rows.selectExpr("id + 10 AS id", "k", "v").write.parquet(f"{at}/b")
        rows.write.option("header", True).csv(f"{at}/c")
        rows.write.json(f"{at}/j")
        rows.write.partitionBy("k").parquet(f"{at}/p")
        (self._template / "lines.txt").write_text("one\ntwo\ntwo\n", encoding="utf-8")
        (self._template / "factor.txt").write_text("2", encoding="utf-8")

    def differences(self, notebook: Notebook, ways: Sequence[str], *, is_each_run: bool = False) -> Iterator[str]:
        """What the other ways leave otherwise than the plain one; nothing where all is well.

        ``run`` repeats ``compile`` where a notebook's cells only defer: it is left out there unless each way is to run.
        """
        left: dict[str, WayLeft] = {}
        for way in WAYS:
            repeats = way == "run" and "compile" in left and left["compile"].only_defers and not is_each_run
            if way == "plain" or (way in ways and not repeats):
                left[way] = self._run(notebook, way)
        for way in list(left)[1:]:
            yield from (f"{way}: {told}" for step in left[way].steps for told in step.fallbacks)
            judge = _refused if left[way].steps[-1].abandoned else _against
            yield from (f"{way}: {one}" for one in judge(left["plain"], left[way], notebook))

    def _run(self, notebook: Notebook, way: str) -> WayLeft:
        folder = Path(tempfile.mkdtemp(prefix="way", dir=self._home)).resolve()
        left = WayLeft()
        self._renew()
        here = Path.cwd()
        try:
            shutil.copytree(self._template, folder, dirs_exist_ok=True)
            self._state.begin(folder)
            self._shell.begin(spark=self._spark, sc=self._spark.sparkContext)
            self._shell.run(PRELUDE)
            self._shell.magics.session = way == "session"
            for step in notebook.steps:
                if step.graph and way != "plain":
                    left.before = self._everything(folder)
                text = step.text.replace("@/", f"{folder}/")
                done = self._step(text, step.graph, way, folder)
                done.abandoned &= way == "compile" or (notebook.refuses and done.refused)
                left.steps.append(done)
                if left.steps[-1].abandoned:
                    break
            left.after = self._everything(folder)
            return left
        finally:
            self._shell.magics.session = False
            os.chdir(here)
            shutil.rmtree(folder, ignore_errors=True)

    def _everything(self, folder: Path) -> dict[str, object]:
        return {**files(folder), **(self._state.read() if self._alive else {"session": "stopped"})}

    def _cell(self, text: str) -> Left:
        """What a cell left; of one that does not end, that it does not."""
        try:
            return self._shell.run(text, seconds=CELL_S)
        except CellTimeoutError as late:
            return Left(error=late)

    def _step(self, text: str, graph: str, way: str, folder: Path) -> StepLeft:
        name = "" if graph == "?" else graph
        head = "" if way in ("plain", "session") or not graph else f"%%flinkgraph {name}{' --run' * (way == 'run')}\n"
        known = dict(self._shell.magics.graphs)
        left = self._cell(head + text)
        errors, printed = [left.error], left.stdout
        made = [one for one, made in self._shell.magics.graphs.items() if known.get(one) is not made]
        if way == "compile" and graph and left.error is None and made:
            ran = self._cell(f"%flinkrun {made[-1]}")
            errors.append(ran.error)
            printed += ran.stdout
        error = next((one for one in errors if one is not None), None)
        said = steady(printed.replace(str(folder), "@"))
        try:
            value = comparable(left.value)
        except Exception as lost:  # noqa: BLE001 - a value that cannot be computed is compared by why
            value = ("not computed", type(lost).__name__)
        value = _without(value, folder)
        abandoned = bool(head) and left.error is not None
        refused = isinstance(left.error, FlinkMagicError)
        defers = not head or (error is None and all(map(_only_defers, left.programs)))
        told, fallbacks = _without(str(error), folder)[:400], tuple(self._fallbacks(left))
        return StepLeft(value, said, _class(error), told, abandoned, refused, fallbacks, defers)

    def _fallbacks(self, left: Left) -> Iterator[str]:
        """Count what became of a cell's actions; return what plain Spark has run though nothing was in the way."""
        for report in left.reports:
            plainly = report.reason if report.reason in NOT_DRIVEN else "fallbacks"
            how = "driven" if report.is_driven else "answered again" if report.kept_at else plainly
            self.actions[how] += 1
            if how == "fallbacks" and report.status == "FINISHED" and FAILED not in left.stderr:
                yield f"{report.location}: {report.text} ran as plain Spark: {report.reason}"
        yield from (line for line in left.stderr.splitlines() if FAILED in line)


def _only_defers(program: Program) -> bool:
    ran = (program.eager.settlements, program.eager.statements, program.eager.skipped, program.results)
    return bool(program.writes) and not any(ran)


def _against(plain: WayLeft, ours: WayLeft, notebook: Notebook) -> Iterator[str]:
    for number, (before, after) in enumerate(zip(plain.steps, ours.steps, strict=True)):
        if before.error != after.error:
            yield f"cell {number} raised {after.error or 'nothing'} ({after.told}), plain {before.error or 'nothing'}"
        if before.value != after.value:
            yield f"cell {number} has the value {after.value!s:.300}, plain {before.value!s:.300}"
        if not lines_kept(before.stdout, after.stdout):
            yield f"cell {number} printed {after.stdout!r:.400}, plain {before.stdout!r:.400}"
    for key in sorted(plain.after.keys() | ours.after.keys()):
        if key.split("/")[0] in notebook.departs:
            continue
        if plain.after.get(key) != ours.after.get(key):
            yield f"{key} is {ours.after.get(key)!s:.300}, plain {plain.after.get(key)!s:.300}"


def _refused(plain: WayLeft, ours: WayLeft, notebook: Notebook) -> Iterator[str]:
    """What an abandoned cell raised that is neither ours nor the plain run's, and what it left half done."""
    last = ours.steps[-1]
    if not last.refused and last.error != plain.steps[len(ours.steps) - 1].error:
        yield f"raised {last.error} ({last.told}), plain {plain.steps[len(ours.steps) - 1].error or 'nothing'}"
    for key in sorted(ours.before.keys() | plain.after.keys() | ours.after.keys()):
        made = key not in ours.before and not _is_sparks(key)  # by a line before the refused one
        if made or key.split("/")[0] in notebook.earlier:
            continue
        if ours.after.get(key) not in (ours.before.get(key), plain.after.get(key)):
            yield f"refused ({last.told}), but {key} is {ours.after.get(key)!s:.300}"


def _is_sparks(key: str) -> bool:
    """Whether an entry is of Spark's making: part files, what a committer leaves, tables and settings."""
    return "/*." in key or key.rsplit("/", 1)[-1].startswith("_") or "_temporary" in key or "/" not in key


def _without(value: Any, folder: Path) -> Any:
    """A value without the folder's name in any of its texts."""
    if isinstance(value, str):
        return value.replace(str(folder), "@")
    if isinstance(value, (tuple, list)):
        return type(value)(_without(one, folder) for one in value)
    return value


def _class(error: BaseException | None) -> str:
    """An exception's class, and Spark's own condition where it has one."""
    if error is None:
        return ""
    condition = getattr(error, "getCondition", None) or getattr(error, "getErrorClass", None)
    name = condition() if callable(condition) else None
    return f"{type(error).__name__}{f'[{name}]' if name else ''}"
