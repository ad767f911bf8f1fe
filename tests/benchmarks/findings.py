"""Does a job with a fault say so, at the right line, and does one without it keep silent?

Each job of `_planted` runs as it stands, captured, and so does its twin without the fault, each in a session of its
own over one context of two cores. Then jobs run in which nobody has planted a fault: those of the tutorials, those of
the ordinary notebooks of the benchmark `notebooks` with the session mode on, each notebook in a kernel of its own, and
the 22 queries of TPC-H, each written in a cell of its own. At last a job of four stages runs with and without the
collecting of what findings need, in turn, in pairs.

Whether a finding is wrong only a reader can say. `_judged` has what one has said of each, and why; a finding of which
it says nothing counts as a wrong one until somebody has read it, and is printed with what its job has measured. The
last stage of an action, which the session mode leaves to Spark, is not looked at, nor is a query of one stage.

Figures: `planted`; `found` (the fault is the first or the second finding, at its line); `by_rule` (it is any of them,
at any line); `silent` (twins without any finding), `quiet` (twins without one of the fault's own rules); `loud`, the
findings of twins, each with its job; `jobs` in which nobody has planted a fault, of which a task has run, that are
over, without streams; `findings` in them, also `per_job`; `wrong` and `unjudged` ones, and `false`, both for each
job (target: at most 0.1), `false_by_rule`; `scale` of TPC-H; `overhead` (median of the pairs' ratios), `lowest` and
`highest` of them, `load`. What was found is printed job by job.
"""

from __future__ import annotations

import argparse
import itertools
import linecache
import os
import re
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import flinkmagic
from flinkmagic.capturing.source_code.source_location import CellSource
from flinkmagic.deployment.stages import stage_runner
from flinkmagic.display.findings import Finding
from flinkmagic.scheduling.job_status import JobStatus
from tests import saved_notebooks, tpch
from tests.benchmarks._judged import VERDICTS
from tests.benchmarks._planted import PLANTED, Planted, lay_out
from tests.benchmarks._unplanted import RECORD, JobFound, job_found, recorded
from tests.benchmarks.notebooks import make_data
from tests.benchmarks.notebooks import notebook as notebooks
from tests.benchmarks.notebooks.kernel import NotebookKernel

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from flinkmagic.session import Job

PARTS = ("planted", "tutorials", "notebooks", "tpch", "overhead")

Chosen = Callable[[str], bool]
"""Whether a job, a notebook or a query of some name is to run."""


def session(conf: Mapping[str, str] | None = None) -> SparkSession:
    """Return the session of this process, with more settings if it has none yet."""
    known = {"spark.ui.enabled": "false", "spark.driver.memory": "2g", "spark.ui.showConsoleProgress": "false"}
    spark = flinkmagic.local_session("findings-benchmark", "local[2]", {**known, **(conf or {})})
    spark.sparkContext.setLogLevel("FATAL")
    return spark


def run_cell(
    spark: SparkSession, cell: str, data: Path, out: Path, options: Mapping[str, Any], runs: int = 1, later: str = ""
) -> tuple[Job, str]:
    """Run a cell as a captured one, and then a later one; return the first one's last job, and its text."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    name = out.name
    file_name = f"<{name}>"
    source = cell.lstrip("\n")
    linecache.cache[file_name] = (len(source), None, source.splitlines(keepends=True), file_name)
    namespace = {"spark": spark, "F": F, "Window": Window, "data": str(data), "out": str(out)}
    location = CellSource(name, file_name, source)
    with flinkmagic.capture(spark, name=name, location=location, namespace=namespace) as program:
        exec(compile(source, file_name, "exec"), namespace)
    graph = flinkmagic.compile(program, name, **options)
    for _ in range(runs):
        job = graph.run()
    if job.status is not JobStatus.FINISHED:
        raise RuntimeError(f"{name} is {job.status}: {job.exceptions()}")
    exec(later, namespace)
    return job, source


def line_of_fault(source: str) -> int:
    """The line that has the fault, from 1."""
    return next(number for number, line in enumerate(source.splitlines(), start=1) if line.endswith("# fault"))


def rank_of(findings: tuple[Finding, ...], rules: tuple[str, ...], line: int | None = None) -> int:
    """The place of the first finding of some rules, at a line if one is given, from 1; 0 if there is none."""
    numbered = enumerate(findings, start=1)
    return next((n for n, one in numbered if one.rule in rules and line in (None, one.line)), 0)


def told(finding: Finding) -> str:
    return f"{finding.rule} at line {finding.line}, {finding.cost_s:.2f} s ({finding.certainty})"


class Twins:
    """Runs planted jobs and their twins, over what they read in a folder."""

    def __init__(self, spark: SparkSession, home: Path) -> None:
        self._spark, self._home = spark, home
        self._number = 0
        (home / "data").mkdir()
        lay_out(spark, home / "data")
        run_cell(spark, _FOUR_STAGES, home, home / "warm", {})

    def session(self, conf: Mapping[str, str]) -> SparkSession:
        """A session of the context with settings of its own."""
        session = self._spark.newSession()
        for name, value in conf.items():
            session.conf.set(name, value)
        return session

    def run(self, planted: Planted, *, with_fault: bool) -> tuple[Job, str]:
        """A job that is over, and its cell."""
        self._number += 1
        out = self._home / f"job{self._number}"
        cell = planted.faulty if with_fault else planted.healthy
        options = planted.options if with_fault else planted.healthy_options
        session = self.session(planted.conf if with_fault else {})
        more = {"retain": "job", **options}
        return run_cell(session, cell, self._home / "data", out, more, planted.runs, planted.later)

    def findings(self, planted: Planted, *, with_fault: bool) -> tuple[tuple[Finding, ...], str, float]:
        """What is found, in which cell, and how long the job took."""
        job, source = self.run(planted, with_fault=with_fault)
        path = job.critical_path()
        found = job.findings()
        job.release()
        return found, source, 0.0 if path is None else path.elapsed_s


_FOUR_STAGES = """
rows = spark.range(0, 300000, 1, 4).withColumn("k", F.col("id") % 1000)
sums = rows.groupBy("k").agg(F.sum("id").alias("s"))
counts = rows.where("id % 3 = 0").groupBy("k").agg(F.count("*").alias("n"))
sums.join(counts, "k").orderBy("s").write.parquet(out)
"""

_TURNS = 5
"""How often each half of a pair runs twice: single runs of the job differ by more than collecting takes."""


def overheads(spark: SparkSession, home: Path, pairs: int) -> list[float]:
    """The time of a job that collects what findings need by that of one that does not, pair by pair."""
    reads = stage_runner._metrics
    number = 0

    def seconds(*, collecting: bool) -> float:
        nonlocal number
        number += 1
        stage_runner._metrics = reads if collecting else lambda handle: ()
        start = time.perf_counter()
        job, _ = run_cell(spark, _FOUR_STAGES, home, home / f"four{number}", {"retain": "none"})
        if collecting:
            job.findings()
        taken = time.perf_counter() - start
        job.release()
        return taken

    try:
        for _ in range(3):
            seconds(collecting=True)
        found = []
        for number_of_pair in range(pairs):
            order = (True, False, False, True) if number_of_pair % 2 else (False, True, True, False)
            times = [(collecting, seconds(collecting=collecting)) for collecting in order * _TURNS]
            found.append(sum(one for on, one in times if on) / sum(one for on, one in times if not on))
    finally:
        stage_runner._metrics = reads
    return found


def with_faults(spark: SparkSession, home: Path, planted: Sequence[Planted]) -> dict[str, Any]:
    """Run jobs with a fault, and their twins."""
    twins = Twins(spark, home)
    found = by_rule = silent = quiet = 0
    loud: list[str] = []
    for one in planted:
        findings, source, took = twins.findings(one, with_fault=True)
        line = line_of_fault(source)
        is_found = rank_of(findings, one.rules, line) in (1, 2)
        found, by_rule = found + is_found, by_rule + bool(rank_of(findings, one.rules))
        print(f"{'found ' if is_found else 'MISSED'} {one.name} (line {line}, {took:.1f} s)")
        print("".join(f"    {told(each)}: {each.what}\n" for each in findings), end="", flush=True)
        findings, _, took = twins.findings(one, with_fault=False)
        silent, quiet = silent + (not findings), quiet + (not rank_of(findings, one.rules))
        loud += [f"{one.name}: {each.rule}" for each in findings]
        print(f"       twin ({took:.1f} s)")
        print("".join(f"    {told(each)}: {each.what}\n" for each in findings), end="", flush=True)
    return {
        "planted": len(planted),
        "found": found,
        "by_rule": by_rule,
        "silent": silent,
        "quiet": quiet,
        "loud": "; ".join(loud),
    }


def of_tutorials(home: Path, chosen: Chosen) -> Iterator[JobFound]:
    """Execute the tutorials, each in a kernel of its own."""
    for path in saved_notebooks.paths():
        if chosen(path.stem):
            record, folder = home / f"{path.stem}.jsonl", home / path.stem
            folder.mkdir()
            saved_notebooks.executed(path, folder, also=RECORD.format(path=str(record)))
            yield from recorded(record)


def of_notebooks(home: Path, chosen: Chosen) -> Iterator[JobFound]:
    """Run the ordinary notebooks with the session mode on, each in a kernel of its own."""
    make_data(home / "tables")
    for name in filter(chosen, notebooks.names()):
        record = home / f"{name}.jsonl"
        also = RECORD.format(path=str(record))
        with NotebookKernel(home / "tables", on=True, memory="2g", also=also) as kernel:
            kernel.run(notebooks.load(name).cells)
        yield from recorded(record)


def of_tpch(home: Path, chosen: Chosen, scale: float) -> Iterator[JobFound]:
    """Run the queries of TPC-H, each captured in a cell of its own, over tables that are a file each."""
    spark = session()
    tpch.generate(home / "tpch", scale)
    tpch.register(spark, home / "tpch")
    run_cell(spark, _FOUR_STAGES, home, home / "before", {})
    for name in filter(chosen, tpch.QUERIES):
        cell = f'spark.sql("""{tpch.QUERIES[name]}""").write.parquet(out)'
        job, _ = run_cell(spark, cell, home, home / name, {"retain": "none"})
        found = job_found(name, job)
        if found is not None:
            yield found
        job.release()


def judged(jobs: Iterable[JobFound]) -> dict[str, Any]:
    """Print what is found in jobs in which no fault was planted, and count what is wrong by `VERDICTS`."""
    n_jobs = n_found = wrong = unjudged = 0
    by_rule: Counter[str] = Counter()
    for one in jobs:
        n_jobs, n_found = n_jobs + 1, n_found + len(one.findings)
        if one.findings:
            print(f"{one.source}: {one.job} ({one.elapsed_s:.1f} s, {one.slots} slots)")
        is_new = False
        for found in one.findings:
            verdict = VERDICTS.get((one.source, found["rule"], found["code"]))
            is_new |= verdict is None
            wrong, unjudged = wrong + (verdict is not None and verdict.is_wrong), unjudged + (verdict is None)
            if verdict is None or verdict.is_wrong:
                by_rule[found["rule"]] += 1
            word = "UNJUDGED" if verdict is None else "WRONG" if verdict.is_wrong else "right"
            why = "" if verdict is None else f" -- {verdict.why}"
            print(f"    {word} {found['rule']} at {found['cell']}, line {found['line']}, {found['cost_s']:.2f} s "
                  f"({found['certainty']}): {found['what']}{why}\n        {found['code']}")  # fmt: skip
        print("".join(f"        {line}\n" for line in one.facts if is_new), end="", flush=True)
    return {
        "jobs": n_jobs,
        "findings": n_found,
        "per_job": round(n_found / max(1, n_jobs), 3),
        "wrong": wrong,
        "unjudged": unjudged,
        "false": round((wrong + unjudged) / max(1, n_jobs), 3),
        "false_by_rule": ", ".join(f"{rule} {number}" for rule, number in by_rule.most_common()),
    }


def main(arguments: list[str]) -> dict[str, Any]:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks findings")
    parser.add_argument("--only", choices=PARTS, action="append", help="parts of it; all, if none is given")
    parser.add_argument("--names", metavar="PATTERN", default="", help="only jobs that are called so")
    parser.add_argument("--scale", type=float, default=1, help="of TPC-H (%(default)s)")
    parser.add_argument("--pairs", type=int, default=10, help="pairs of the overhead, at least one (%(default)s)")
    options = parser.parse_args(arguments)
    parts, pattern = options.only or PARTS, re.compile(options.names)

    def chosen(name: str) -> bool:
        return pattern.search(name) is not None

    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder).resolve()
        kinds: list[Iterable[JobFound]] = []
        if "tutorials" in parts:
            kinds.append(of_tutorials(home, chosen))
        if "notebooks" in parts:
            kinds.append(of_notebooks(home, chosen))
        if "tpch" in parts:
            kinds.append(of_tpch(home, chosen, options.scale))
            figures["scale"] = options.scale
        if kinds:
            figures |= judged(itertools.chain(*kinds))
        if "planted" in parts:
            figures |= with_faults(session(), home, [one for one in PLANTED if chosen(one.name)])
        if "overhead" in parts:
            ratios = overheads(session(), home, options.pairs)
            figures |= {
                "overhead": round(statistics.median(ratios), 3),
                "lowest": round(min(ratios), 3),
                "highest": round(max(ratios), 3),
                "pairs": options.pairs,
            }
        if not {"tpch", "planted", "overhead"}.isdisjoint(parts):
            session().stop()
    return {**figures, "load": round(os.getloadavg()[0], 1)}
