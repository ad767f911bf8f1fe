"""Does a job with a fault say so, at the right line, and does one without it keep silent?

Each job of `_planted` runs as it stands, captured, and so does its twin without the fault, each in a session of its
own over one context of two cores. Then a job of four stages runs with and without the collecting of what findings need,
in turn, in pairs.

Figures: `planted`; `found` (the fault is the first or the second finding, at its line); `by_rule` (it is any of them,
at any line); `silent` (twins without any finding), `quiet` (twins without one of the fault's own rules); `loud`, the
findings of twins, each with its job; `overhead` (median of the pairs' ratios), `lowest` and `highest` of them, `load`.
What was found is printed job by job.
"""

from __future__ import annotations

import argparse
import linecache
import os
import re
import statistics
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import flinkmagic
from flinkmagic.capturing.source_code.source_location import CellSource
from flinkmagic.deployment.stages import stage_runner
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.session.findings.finding import Finding
from tests.benchmarks._planted import PLANTED, Planted, lay_out

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from flinkmagic.session import Job


def run_cell(
    spark: SparkSession, cell: str, data: Path, out: Path, options: Mapping[str, Any], runs: int = 1
) -> tuple[Job, str]:
    """Run a cell as a captured one; return its last job, and the name of the cell."""
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
    """Runs planted jobs and their twins."""

    def __init__(self, spark: SparkSession, home: Path) -> None:
        self._spark, self._home = spark, home
        self._number = 0

    def session(self, conf: Mapping[str, str]) -> SparkSession:
        """A session of the context with settings of its own."""
        session = self._spark.newSession()
        for name, value in conf.items():
            session.conf.set(name, value)
        return session

    def findings(self, planted: Planted, *, with_fault: bool) -> tuple[tuple[Finding, ...], str, float]:
        """What is found, in which cell, and how long the job took."""
        self._number += 1
        out = self._home / f"job{self._number}"
        cell = planted.faulty if with_fault else planted.healthy
        options = planted.options if with_fault else planted.healthy_options
        session = self.session(planted.conf if with_fault else {})
        job, source = run_cell(session, cell, self._home / "data", out, {"retain": "job", **options}, planted.runs)
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
            times = [(collecting, seconds(collecting=collecting)) for collecting in order]
            found.append(sum(one for on, one in times if on) / sum(one for on, one in times if not on))
    finally:
        stage_runner._metrics = reads
    return found


def main(arguments: list[str]) -> dict[str, Any]:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks findings")
    parser.add_argument("--only", metavar="PATTERN", help="only jobs whose names this matches")
    parser.add_argument("--pairs", type=int, default=10, help="pairs of the overhead, at least one (%(default)s)")
    options = parser.parse_args(arguments)
    planted = [one for one in PLANTED if options.only is None or re.search(options.only, one.name)]
    spark = flinkmagic.local_session(
        "findings-benchmark",
        "local[2]",
        {"spark.ui.enabled": "false", "spark.driver.memory": "2g", "spark.ui.showConsoleProgress": "false"},
    )
    spark.sparkContext.setLogLevel("FATAL")
    found = by_rule = silent = quiet = 0
    loud: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder).resolve()
        (home / "data").mkdir()
        if planted:
            lay_out(spark, home / "data")
        twins = Twins(spark, home)
        run_cell(spark, _FOUR_STAGES, home, home / "warm", {})
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
        ratios = overheads(spark, home, options.pairs)
    spark.stop()
    return {
        "planted": len(planted),
        "found": found,
        "by_rule": by_rule,
        "silent": silent,
        "quiet": quiet,
        "loud": "; ".join(loud),
        "overhead": round(statistics.median(ratios), 3),
        "lowest": round(min(ratios), 3),
        "highest": round(max(ratios), 3),
        "pairs": options.pairs,
        "load": round(os.getloadavg()[0], 1),
    }
