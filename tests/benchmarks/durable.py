"""Ordinary notebooks run again in a new kernel, with answers and rows that the first one has stored.

A notebook of the benchmark `notebooks` runs in a kernel with the session mode on, in one that also stores small answers
and kept rows, and again, in the folder of that one, in a third; what the cells wrote is gone by then, as their first
run expects. All cells are timed, without the one that starts the session. Each kernel is killed 2 s after its last one.
The mode is on before the session begins, and an earlier kernel has left its JVM's classes (`reuse.class_archive`).

Figures:

- `restart_ratio`: seconds of the third run to the second, the geometric mean over the notebooks; `restart_NAME` of
  each.
- `first_ratio`: seconds of the second run to the first, likewise; `paused_ratio`: if a user looks 2 s at each output,
  of the first notebooks alone.
- `hit_ms`: from when a kernel's first action is sent, some seconds after the mode is on, until it has the rows that
  another one has stored as its answer, of nearly 1 MiB; `hit_10_ms`: until it has a pandas frame of 10 MB that another
  one has stored likewise. Target of both: 200.
- `rows_10_ms`, `rows_100_ms`: until it has answered another question about rows of so many megabytes that another one
  has stored. Target of the second: 1,000.
- `kills`, `killed_wrong`: kernels that were killed at chance moments while they stored rows, and how many of their
  results were wrong in the next one (`tests.session.actions.test_durable_rows`).
- `stale`: changes between two processes after which a stored answer was given, or another answer than plain Spark's,
  of `changes`; `missed`: changes that do not matter after which none was given, of `others`
  (`tests.session.actions.test_durable_answers`).
- `differ`: cells that leave another output in the third run than in the first.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from platformdirs import user_cache_path

from flinkmagic.magics.session_mode import PAUSE_S
from tests.benchmarks.notebooks import QUICK, make_data
from tests.benchmarks.notebooks.kernel import NotebookKernel, NotedCell
from tests.benchmarks.notebooks.notebook import Notebook, load, names
from tests.session.actions import test_durable_answers as mutations
from tests.session.actions import test_durable_rows as rows

PARTS = ("restarts", "pauses", "hits", "changes", "kills")
KILLS = 50

STORED = "--durable stored"
PAUSED = 3
"""How many notebooks run with pauses."""
LOOK_S = 4.0
"""How long a user looks at the cell that starts the session, or reads the next one, before its first action."""
SMALL = (
    "small = spark.range(0, 6_000, 1, 2).selectExpr('id', 'id * 3 AS m').orderBy('m')",
    "small.collect()[-1]",
)
"""Rows of nearly 1 MiB, and the action whose answer they are."""
LARGE = (
    "wide = spark.range(0, {rows}, 1, 2).selectExpr('id', '{costly} AS text').repartition(2, 'text')",
    "wide.count()",
    "wide.agg({'text': 'max'}).collect()",
)
"""Rows of 70 bytes each that take long to compute, and two actions after which they are kept."""
FRAME = "frame = wide.toPandas()"
CHAINS, HASHES = 4, 30
"""How many chains of how many hashes a row takes: as many as make the rows worth storing."""
ROW_BYTES = 70
NEXT = "wide.where('id % 7 = {chance}').count()"


def seconds(cells: list[NotedCell]) -> float:
    return sum(cell.seconds for cell in cells)


def run(
    data: Path,
    cells: tuple[str, ...],
    memory: str,
    folder: Path,
    *,
    durable: str,
    before_s: float = 0.0,
    between_s: float = 0.0,
    after_s: float = 2.0,
) -> list[NotedCell]:
    """Run cells in a kernel in a folder, with pauses; only its data and what it has stored stay there."""
    folder.mkdir(exist_ok=True)
    with NotebookKernel(data, on=True, memory=memory, durable=durable, folder=folder, mode_first=True) as kernel:
        time.sleep(before_s)
        done = []
        for cell in cells:
            done += kernel.run([cell])
            time.sleep(between_s)
        time.sleep(after_s)
    for path in folder.iterdir():
        if path.name not in ("data", "stored"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return done


def leave_classes(data: Path, notebook: Notebook, memory: str) -> None:
    """Run a notebook in a kernel whose user then pauses, until the classes of its JVM are kept."""
    with NotebookKernel(data, on=True, memory=memory, mode_first=True) as kernel:
        kernel.run(notebook.cells)
        time.sleep(PAUSE_S + 2)
    while list((user_cache_path("flinkmagic") / "classes").glob("*.making")):
        time.sleep(1)


def restarts(data: Path, notebook: Notebook, memory: str) -> tuple[float, float, int]:
    """Return the ratios of a restart and of the first run, and how many outputs differ."""
    folder = data.parent / notebook.name
    plain = run(data, notebook.cells, memory, folder, durable="")
    first = run(data, notebook.cells, memory, folder, durable=STORED)
    again = run(data, notebook.cells, memory, folder, durable=STORED)
    shutil.rmtree(folder)
    differ = [
        number
        for number, (one, other) in enumerate(zip(plain, again, strict=True))
        if number not in notebook.unordered and not one.same_output(other)
    ]
    restart, cost = seconds(again) / seconds(first), seconds(first) / seconds(plain)
    print(f"{notebook.name}: restart/first {restart:.3f}, first/plain {cost:.3f}, differ {differ}", flush=True)
    for number in differ:
        print(f"  [{number}] {plain[number].text!r:.300} {plain[number].error} | {again[number].text!r:.300} "
              f"{again[number].error}", flush=True)  # fmt: skip
    return restart, cost, len(differ)


def restarted(data: Path, chosen: Sequence[str], memory: str) -> dict[str, float | int]:
    """Restart all notebooks."""
    found = {name: restarts(data, load(name), memory) for name in chosen}

    def mean(place: int) -> float:
        return round(statistics.geometric_mean(one[place] for one in found.values()), 3)

    return {
        "restart_ratio": mean(0),
        "first_ratio": mean(1),
        "differ": sum(one[2] for one in found.values()),
        "notebooks": len(found),
        **{f"restart_{name}": round(one[0], 3) for name, one in found.items()},
    }


def paused(data: Path, chosen: Sequence[str], memory: str) -> dict[str, float]:
    """Run notebooks with pauses, without and with storing."""
    ratios = []
    for name in chosen[:PAUSED]:
        cells, folder = load(name).cells, data.parent / name
        plain, first = (
            seconds(run(data, cells, memory, folder, durable=durable, between_s=2.0)) for durable in ("", STORED)
        )
        shutil.rmtree(folder)
        print(f"{name}: with pauses {first:.2f} s, without storing {plain:.2f} s", flush=True)
        ratios.append(first / plain)
    return {"paused_ratio": round(statistics.geometric_mean(ratios), 3)}


def wide_rows(megabytes: int) -> str:
    """Return the line that makes rows."""
    each = (HASHES * "sha2(" + f"CAST(id + {chain} AS string)" + HASHES * ", 256)" for chain in range(CHAINS))
    costly = f"sha2(concat({', '.join(each)}), 256)"
    return LARGE[0].replace("{costly}", costly).replace("{rows}", str(megabytes * 10**6 // ROW_BYTES))


def hits(data: Path, memory: str) -> dict[str, float]:
    """Return the milliseconds of a kernel's first action that finds what another kernel has stored."""
    told = {}
    for name, first, *actions in (
        ("hit_ms", *SMALL),
        ("hit_10_ms", wide_rows(10), FRAME),
        *((f"rows_{size}_ms", wide_rows(size), *LARGE[1:]) for size in (10, 100)),
    ):
        folder = data.parent / name
        run(data, (first, *actions), memory, folder, durable=STORED, after_s=10)
        found = []
        for chance in range(3):
            # Another question each time: its answer is not known, the rows are.
            last = actions[0] if name.startswith("hit") else NEXT.format(chance=chance)
            found.append(run(data, (first, last), memory, folder, durable=STORED, before_s=LOOK_S)[-1])
        if not all("another kernel" in cell.shown for cell in found):
            raise RuntimeError(f"{name}: nothing was stored: {[cell.shown for cell in found]}")
        told[name] = round(1000 * statistics.median(cell.seconds for cell in found), 1)
        shutil.rmtree(folder)
    return told


def mutated(folder: Path) -> dict[str, int]:
    """Try what changes, and what does not matter, between two processes."""
    told = {}
    for name, cases in (("changes", mutations.CHANGES), ("others", mutations.NOTHING)):
        at = folder / name
        changed = mutations.in_two_kernels(at, cases)
        told[name] = len(cases)
        wrong = [one for one, answer in changed.items() if answer["answer"] != answer["plain"]]
        if name == "changes":
            stale = {*wrong, *(one for one, answer in changed.items() if answer["is_other_s"])}
            told["stale"] = len(stale)
        else:
            told["stale"] += len(wrong)
            told["missed"] = sum(not answer["is_other_s"] for answer in changed.values())
    return told


def main(arguments: list[str]) -> dict[str, float | int]:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks durable")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names())}; seven, if none is given")
    parser.add_argument("--only", choices=PARTS, action="append", help="parts of it; all, if none is given")
    parser.add_argument("--memory", default="2g", help="the driver's memory (%(default)s)")
    options = parser.parse_args(arguments)
    chosen = options.names or QUICK
    with tempfile.TemporaryDirectory() as folder:
        data, parts = Path(folder) / "data", options.only or PARTS
        make_data(data)
        told: dict[str, float | int] = {}
        if {"restarts", "pauses", "hits"} & {*parts}:
            leave_classes(data, load(chosen[0]), options.memory)
        if "restarts" in parts:
            told |= restarted(data, chosen, options.memory)
        if "pauses" in parts:
            told |= paused(data, chosen, options.memory)
        if "hits" in parts:
            told |= hits(data, options.memory)
        if "changes" in parts:
            told |= mutated(Path(folder) / "mutations")
        if "kills" in parts:
            wrong, _ = rows.after_kills(Path(folder) / "kills", KILLS)
            told |= {"kills": KILLS, "killed_wrong": len(wrong)}
    return told
