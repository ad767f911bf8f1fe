"""Ordinary notebooks, written without knowledge of flinkmagic, with the session mode on against plain.

Each run has a kernel of its own with `local[2]` and begins with an empty folder; `%load_ext flinkmagic` and
`%flinkgraph on` stand in the cell that starts the session, which is not timed. The notebooks and their data are frozen.
Three rounds a notebook; the expert's version runs in the first, and all cells run again in the second. Two more rounds
for a notebook whose ratio is near its bound, as long as there is time. `notebook.py` says what stands in a notebook,
`runs.py` what is compared with what.

Figures:

- `ratio_NAME`: seconds of all cells, on to plain: the median over the rounds. `geomean` and `worst` are over all
  notebooks, `controls` is the worst of the three that have nothing to reuse. Targets: at most 0.8; at most 1.05, or
  `plain_plain_worst` and 0.02; at most 1.03.
- `median_is`, `median_plain_s`, `median_ours_s`: the notebook in the middle by its ratio, and its seconds; `worst_is`
  and so on: the worst one. The README tells of these.
- `plain_plain_worst`: the same of plain runs to each other.
- `expert_geomean`: on to the plain run of what an expert would write, with `cache` and `unpersist`. Target: at most
  0.95.
- `worst_cell`: the largest over all cells of on to what a cell may take, by medians: 1.3 times plain, or 150 ms more.
  Target: at most 1.
- `again`: all cells a second time in the same kernel, on to plain, the geometric mean over the notebooks. Target: at
  most 0.3.
- `errors`, `differ`: cells that fail, or leave another output, under the mode only; `plain_differ`: the same between
  plain runs, the expert's included. Targets: none.
- `failing`: cells that fail plainly, which tell nothing. Target: none.
- `out_of_memory`: cells under the mode that tell of it; `plain_out_of_memory` without.
- `notebooks`, `pairs` (rounds that every notebook has), `minutes`.
"""

from __future__ import annotations

import argparse
import importlib
import math
import pkgutil
import statistics
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.benchmarks.notebooks import data
from tests.benchmarks.notebooks.notebook import load, names
from tests.benchmarks.notebooks.runs import AGAIN_ROUND, EXPERT_ROUND, Differences, Runs, seconds

QUICK = (
    "branch_deliveries",
    "clickstream",
    "data_quality",
    "ecommerce_etl",
    "loans_eda",
    "retail_sql",
    "web_logs",
)
NEAR = 0.04
"""How far from its bound a notebook's ratio is near it."""


def make_data(folder: Path) -> None:
    """All tables of all notebooks."""
    for module in pkgutil.iter_modules(data.__path__):
        if module.name != "tables":
            importlib.import_module(f"{data.__name__}.{module.name}").make(folder)


def differences(runs: Runs) -> tuple[Differences, Differences]:
    """Those under the mode, and those between plain runs."""
    ours, plain = Differences(), Differences()
    ours.add(runs.notebook, runs.plain[0], runs.on)
    if runs.again:
        # A second run may rightly leave something else than the first, a list of all views, say.
        ours.add(runs.notebook, runs.again[0], [runs.again[1]])
    plain.add(runs.notebook, runs.plain[0], [*runs.plain[1:], *([runs.expert] if runs.expert else [])])
    return ours, plain


def failing(runs: Runs) -> dict[int, str]:
    """Cells that fail plainly, and how."""
    return {number: cell.error for run in runs.without for number, cell in enumerate(run) if cell.error}


def tell(runs: Runs, *, cells: bool) -> None:
    """Print what a notebook's runs came to."""
    cell, number = runs.worst_cell
    again = f", again {runs.again_ratio:.3f}" if runs.again_ratio is not None else ""
    print(
        f"{runs.notebook.name}: plain {statistics.median(map(seconds, runs.plain)):.1f} s, on/plain {runs.ratio:.3f}, "
        f"expert/plain {runs.plain_expert_ratio:.3f}, on/expert {runs.expert_ratio:.3f}{again}, "
        f"plain/plain {runs.plain_ratio:.3f}, worst cell [{number}] {cell:.2f}",
        flush=True,
    )
    for kind, found in zip(("on", "plain"), differences(runs), strict=True):
        for line in (*found.errors.values(), *found.outputs.values()):
            print(f"  {kind}: {line}", flush=True)
    for number, error in failing(runs).items():
        print(f"  fails plainly: [{number}] {error}", flush=True)
    if cells:
        for number, text in enumerate(runs.notebook.cells):
            plain, on = (statistics.median(run[number].seconds for run in some) for some in (runs.plain, runs.on))
            last = text.strip().splitlines()[-1]
            print(
                f"  [{number}] {plain:6.2f} {on:6.2f}  {last[:60]!r}  {runs.on[-1][number].shown[:110]!r}", flush=True
            )


def near_bound(all_runs: Iterable[Runs]) -> list[Runs]:
    """Those whose ratio may be on either side of its bound, the nearest first."""
    away = {id(runs): abs(runs.ratio - (1.03 if runs.notebook.control else 1.05)) for runs in all_runs}
    return sorted((runs for runs in all_runs if away[id(runs)] < NEAR), key=lambda runs: away[id(runs)])


def geomean(values: Iterable[float]) -> float:
    return math.exp(statistics.fmean(math.log(value) for value in values))


def figures(all_runs: Sequence[Runs], minutes: float) -> dict[str, float | int | str]:
    """What the last line says."""
    found = [differences(runs) for runs in all_runs]
    again = [runs.again_ratio for runs in all_runs if runs.again_ratio is not None]
    controls = [runs.ratio for runs in all_runs if runs.notebook.control]
    cell, number, name = max((*runs.worst_cell, runs.notebook.name) for runs in all_runs)
    by_ratio = sorted(all_runs, key=lambda runs: runs.ratio)
    told = {"median": by_ratio[(len(by_ratio) - 1) // 2], "worst": by_ratio[-1]}
    on = [cell for runs in all_runs for run in runs.under_mode for cell in run]
    plain = [cell for runs in all_runs for run in runs.without for cell in run]
    return {
        "geomean": round(geomean(runs.ratio for runs in all_runs), 3),
        "expert_geomean": round(geomean(runs.expert_ratio for runs in all_runs), 3),
        "worst": round(max(runs.ratio for runs in all_runs), 3),
        **({"controls": round(max(controls), 3)} if controls else {}),
        **{f"{which}_is": runs.notebook.name for which, runs in told.items()},
        **{f"{which}_plain_s": round(statistics.median(map(seconds, runs.plain)), 1) for which, runs in told.items()},
        **{f"{which}_ours_s": round(statistics.median(map(seconds, runs.on)), 1) for which, runs in told.items()},
        "worst_cell": round(cell, 3),
        "worst_cell_is": f"{name}[{number}]",
        "errors": sum(len(ours.errors) for ours, _ in found),
        "differ": sum(len(ours.outputs) for ours, _ in found),
        **({"again": round(geomean(again), 3)} if again else {}),
        "plain_plain_worst": round(max(runs.plain_ratio for runs in all_runs), 3),
        "plain_differ": sum(len(others.errors) + len(others.outputs) for _, others in found),
        "failing": sum(len(failing(runs)) for runs in all_runs),
        "out_of_memory": sum(cell.out_of_memory for cell in on),
        "plain_out_of_memory": sum(cell.out_of_memory for cell in plain),
        "notebooks": len(all_runs),
        "pairs": min(len(runs.plain) for runs in all_runs),
        "minutes": round(minutes, 1),
        **{f"ratio_{runs.notebook.name}": round(runs.ratio, 3) for runs in all_runs},
    }


def main(arguments: list[str]) -> dict[str, float | int | str]:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks notebooks")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names())}; all, if none is given")
    parser.add_argument("--quick", action="store_true", help="one pair, and seven notebooks if none is named")
    parser.add_argument("--pairs", type=int, default=3, help="rounds of each notebook (%(default)s)")
    parser.add_argument("--memory", default="2g", help="the driver's memory (%(default)s; Spark's own default is 1g)")
    parser.add_argument("--minutes", type=float, default=43, help="no round beyond the pairs after these (%(default)s)")
    parser.add_argument("--cells", action="store_true", help="print the seconds of each cell")
    options = parser.parse_args(arguments)
    chosen = options.names or (QUICK if options.quick else names())
    pairs = 1 if options.quick else options.pairs
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        tables = Path(folder) / "data"
        make_data(tables)
        all_runs = [Runs(load(name)) for name in chosen]

        def add_round(runs: Runs) -> None:
            number = len(runs.plain)
            again = number == min(AGAIN_ROUND, pairs - 1)
            runs.add_round(tables, options.memory, again=again, expert=number == EXPERT_ROUND)

        for runs in all_runs:
            for _ in range(pairs):
                add_round(runs)
            tell(runs, cells=options.cells)
        for runs in near_bound(all_runs) if pairs > 1 else []:
            if time.monotonic() - start < 60 * options.minutes:
                add_round(runs)
                add_round(runs)
                tell(runs, cells=False)
    return figures(all_runs, (time.monotonic() - start) / 60)
