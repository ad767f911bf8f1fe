"""Loops of 15 supersteps against the same loops written in plain PySpark, with as many partitions.

PageRank, connected components by labels, and k-means, each with a test of convergence in every superstep. A plain loop
plans and runs all that came before in each of its tests, so its time grows with the square of its length.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

PARTS = ("loops", "lazy", "superstep")
"""The ratios to loops that test in each superstep and to those that do not, and the time of a small superstep."""


@dataclass
class Loop:
    """A loop: what it reads, what it begins with, its step and its test."""

    data: Any
    state: Any
    step: Callable[[Any, Any], Any]
    until: Callable[[Any, Any], Any]


def main(arguments: list[str]) -> dict[str, Any]:
    """Figures: `ratio_total`, `components_ratio` and `kmeans_ratio` to the plain loop that tests in each superstep.

    `ratio_lazy` is PageRank's to the plain loop that tests nothing and has one action at the end, here without tests as
    well: the median of pairs, at ten times as many nodes. `ratio_lazy_small` is the same with as many nodes as the
    other loops; there a superstep takes a quarter of a second, nearly all of it the driver's. `planning_growth` is the
    time of planning its last three supersteps by that of its second to fourth (medians: the first one reads other
    inputs). `superstep_ms` is what a superstep with one shuffle and a test takes over 1,000 rows, and
    `superstep_plain_ms` the same in a plain loop that collects its state in each.
    """
    import flinkmagic

    parser = argparse.ArgumentParser(prog="iterate", description=__doc__)
    parser.add_argument("--supersteps", type=int, default=15)
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--only", nargs="*", choices=PARTS, default=PARTS, help="only these figures")
    options = parser.parse_args(arguments)
    config = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "4"}
    spark = flinkmagic.local_session("iterate", "local[2]", config)
    spark.sparkContext.setLogLevel("ERROR")
    try:
        figures: dict[str, Any] = {}
        if "loops" in options.only:
            figures |= _measure(spark, options.supersteps, options.nodes)
        for name, nodes in (("ratio_lazy_small", options.nodes), ("ratio_lazy", 10 * options.nodes)):
            if "lazy" in options.only:
                figures[name] = _lazy(_page_rank(spark, nodes), options.supersteps, options.pairs)
        return figures | _small(spark) if "superstep" in options.only else figures
    finally:
        spark.stop()


def _measure(spark: Any, supersteps: int, nodes: int) -> dict[str, Any]:
    import flinkmagic

    loops = {"": _page_rank(spark, nodes), "components": _components(spark, nodes), "kmeans": _kmeans(spark, nodes)}
    figures: dict[str, Any] = {}
    for name, loop in loops.items():
        _ours(loop, 3)  # a notebook's JVM has run something before, too
        ours, state = _ours(loop, supersteps)
        planning = [one.planning_seconds for one in flinkmagic.iterations()[-1].supersteps]
        plain, plain_state = _plain(loop, supersteps)
        _same(state, plain_state)
        figures[f"{name}_ratio" if name else "ratio_total"] = round(ours / plain, 3)
        figures |= {f"{name or 'pagerank'}_seconds": round(ours, 2), f"{name or 'pagerank'}_plain": round(plain, 2)}
        if not name:
            growth = statistics.median(planning[-3:]) / statistics.median(planning[1:4])
            figures["planning_growth"] = round(growth, 2)
        loop.data.unpersist()
    return figures


_FEW, _MANY = 5, 25


def _small(spark: Any) -> dict[str, float]:
    from pyspark.sql import functions as F

    rows = spark.range(0, 1000, 1, 2).selectExpr("id % 10 / 10.0D AS x", "id % 10 * 0.3D AS y").persist()
    rows.count()

    def step(rows: Any, weights: Any) -> Any:
        slope = F.avg((F.col("x") * F.col("w") - F.col("y")) * F.col("x"))
        moved = rows.crossJoin(F.broadcast(weights)).groupBy("w").agg(slope.alias("slope"))
        return moved.select((F.col("w") - F.col("slope") * 0.5).alias("w"))

    def until(before: Any, after: Any) -> Any:
        old = before.withColumnRenamed("w", "old")
        return old.crossJoin(after).select((F.abs(F.col("w") - F.col("old")) < 1e-12).alias("converged"))

    loop = Loop(rows, spark.createDataFrame([(0.0,)], "w DOUBLE"), step, until)

    def plain(supersteps: int) -> None:
        weight = 0.0
        for _ in range(supersteps):
            state = spark.createDataFrame([(weight,)], "w DOUBLE")
            before, weight = weight, step(loop.data, state).first()[0]
            assert abs(weight - before) >= 1e-12

    def a_superstep(run: Callable[[int], Any]) -> float:
        seconds = []
        for supersteps in (_FEW, _FEW, _MANY):
            started = time.perf_counter()
            run(supersteps)
            seconds.append(time.perf_counter() - started)
        return round(1000 * (seconds[2] - seconds[1]) / (_MANY - _FEW), 1)

    return {
        "superstep_ms": a_superstep(lambda supersteps: _ours(loop, supersteps)),
        "superstep_plain_ms": a_superstep(plain),
    }


def _lazy(loop: Loop, supersteps: int, pairs: int) -> float:
    """Return the median ratio of pairs without tests, of which each other one begins with the plain loop."""
    _ours(loop, supersteps, tests=False), _plain(loop, supersteps, tests=False)
    ratios = []
    for number in range(pairs):
        first, second = (_ours, _plain) if number % 2 else (_plain, _ours)
        times = {first: first(loop, supersteps, tests=False), second: second(loop, supersteps, tests=False)}
        _same(times[_ours][1], times[_plain][1])
        ratios.append(times[_ours][0] / times[_plain][0])
    loop.data.unpersist()
    return round(statistics.median(ratios), 3)


def _ours(loop: Loop, supersteps: int, *, tests: bool = True) -> tuple[float, list[Any]]:
    import flinkmagic

    started = time.perf_counter()
    until = loop.until if tests else None
    result = flinkmagic.co_iterate(loop.data, loop.state, loop.step, max_iterations=supersteps, until=until)
    rows = result.collect()
    return time.perf_counter() - started, rows


def _plain(loop: Loop, supersteps: int, *, tests: bool = True) -> tuple[float, list[Any]]:
    started = time.perf_counter()
    state = loop.state
    for _ in range(supersteps):
        before, state = state, loop.step(loop.data, state)
        if tests and loop.until(before, state).first()[0]:
            break
    rows = state.collect()
    return time.perf_counter() - started, rows


def _same(ours: list[Any], plain: list[Any]) -> None:
    """Compare rows by their key, the first column, and to six digits: sums of doubles depend on their order."""
    assert len(ours) == len(plain), (len(ours), len(plain))
    for one, other in zip(sorted(ours), sorted(plain), strict=True):
        assert all(abs(a - b) <= 1e-6 * max(1.0, abs(a)) for a, b in zip(one, other, strict=True)), (one, other)


def _edges(spark: Any, nodes: int) -> Any:
    skewed = f"CAST(pow((id * 7919 % {5 * nodes}) / {5.0 * nodes}, 2) * {nodes} AS BIGINT)"
    return spark.range(0, 5 * nodes, 1, 4).selectExpr(f"id % {nodes} AS src", f"{skewed} AS dst").distinct()


def _page_rank(spark: Any, nodes: int) -> Loop:
    from pyspark.sql import functions as F

    edges = _edges(spark, nodes)
    links = edges.join(edges.groupBy("src").agg(F.count("*").alias("degree")), "src").persist()
    links.count()

    def step(links: Any, ranks: Any) -> Any:
        given = links.join(ranks, links.src == ranks.node)
        given = given.select(F.col("dst").alias("node"), (F.col("rank") / F.col("degree")).alias("part"))
        return given.groupBy("node").agg((F.sum("part") * 0.85 + 0.15).alias("rank"))

    def until(before: Any, after: Any) -> Any:
        moved = before.withColumnRenamed("rank", "old").join(after, "node")
        delta = F.max(F.abs(F.col("rank") - F.col("old")))
        return moved.agg((delta < 1e-9).alias("converged"), delta.alias("delta"))

    ranks = links.select(F.col("src").alias("node")).distinct().withColumn("rank", F.lit(1.0))
    return Loop(links, ranks, step, until)


def _components(spark: Any, nodes: int) -> Loop:
    from pyspark.sql import functions as F

    chain = spark.range(0, nodes, 1, 4).selectExpr("id AS src", "IF(id % 100 = 99, id - 50, id + 1) AS dst")
    # A node is its own neighbour, so that a step reads the labels once: the plain loop's plan would double each time.
    itself = chain.selectExpr("src", "src AS dst")
    links = chain.union(chain.select("dst", "src")).union(itself).distinct().persist()
    links.count()

    def step(links: Any, labels: Any) -> Any:
        offered = links.join(labels, links.src == labels.node).select(F.col("dst").alias("node"), "label")
        return offered.groupBy("node").agg(F.min("label").alias("label"))

    def until(before: Any, after: Any) -> Any:
        both = before.withColumnRenamed("label", "old").join(after, "node")
        changed = F.count_if(F.col("label") != F.col("old"))
        return both.agg((changed == 0).alias("converged"), changed.alias("changed"))

    return Loop(links, spark.range(0, nodes, 1, 4).selectExpr("id AS node", "id AS label"), step, until)


def _kmeans(spark: Any, nodes: int) -> Loop:
    from pyspark.sql import functions as F

    points = spark.range(0, nodes, 1, 4).selectExpr(
        "id", "(id * 7919 % 1000) / 100.0D + id % 5 * 20 AS x", "(id * 104729 % 1000) / 100.0D + id % 3 * 15 AS y"
    )
    points = points.persist()
    points.count()

    def step(points: Any, centroids: Any) -> Any:
        pairs = points.crossJoin(F.broadcast(centroids))
        away = (F.col("x") - F.col("cx")) ** 2 + (F.col("y") - F.col("cy")) ** 2
        nearest = pairs.groupBy("id", "x", "y").agg(F.min_by("k", away).alias("k"))
        return nearest.groupBy("k").agg(F.avg("x").alias("cx"), F.avg("y").alias("cy"))

    def until(before: Any, after: Any) -> Any:
        old = before.select("k", F.col("cx").alias("ox"), F.col("cy").alias("oy"))
        moved = F.max(F.abs(F.col("cx") - F.col("ox")) + F.abs(F.col("cy") - F.col("oy")))
        return old.join(after, "k").agg((moved < 1e-12).alias("converged"), moved.alias("moved"))

    first = points.limit(8).select(F.col("id").cast("int").alias("k"), F.col("x").alias("cx"), F.col("y").alias("cy"))
    return Loop(points, spark.createDataFrame(first.collect(), first.schema), step, until)
