"""Loops over DataFrames, run as jobs: rows as in a plain loop, one superstep repeated after a failure, cancelled."""

from __future__ import annotations

import functools
import gc
import signal
import threading
import time

import numpy as np
import pytest
from pyspark.sql import functions as F

import flinkmagic
from flinkmagic.capturing.capture_listener import DeployingListener
from flinkmagic.errors.iterations import IterationArgumentsError, IterationCancelledError, SuperstepFailedError
from flinkmagic.errors.usage import InvalidValueError
from flinkmagic.planning.clones import SessionClones
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.session.iterations import superstep
from flinkmagic.session.iterations.loop_view import convergence
from flinkmagic.session.iterations.superstep import Superstep, release_unused
from tests.status_store import StatusStore


def doubled(df):
    """A step with a shuffle."""
    return df.groupBy((F.col("id") % 3).alias("id")).agg((F.sum("v") * 2).alias("v"))


@pytest.fixture
def begin(spark):
    return spark.range(0, 30, 1, 3).select("id", F.col("id").alias("v"))


@pytest.fixture
def no_copies(monkeypatch):
    """Let no state be so small that the driver holds a copy."""
    monkeypatch.setattr(superstep, "MOST_ROWS", -1)


def values(df):
    return sorted(tuple(row) for row in df.collect())


def after(supersteps, df):
    for _ in range(supersteps):
        df = doubled(df)
    return values(df)


def cached(spark):
    return set(spark.sparkContext._jsc.getPersistentRDDs())


@pytest.fixture(params=["copied", "kept"])
def copied(request):
    """Whether the driver holds copies of small states."""
    if request.param == "kept":
        request.getfixturevalue("no_copies")
    return request.param == "copied"


@pytest.mark.long
def test_rows_are_those_of_a_plain_loop(spark, begin, copied):
    before = cached(spark)
    result = flinkmagic.iterate(begin, doubled, max_iterations=6, name="doubling", parallelism=2)
    assert values(result) == after(6, begin)
    assert result.columns == ["id", "v"]
    loop = flinkmagic.iterations()[-1]
    assert (loop.name, loop.status, loop.converged, loop.outcome) == (
        "doubling", JobStatus.FINISHED, False, "6 supersteps",
    )  # fmt: skip
    assert [step.number for step in loop.supersteps] == [1, 2, 3, 4, 5, 6]
    graph = loop.stream_graph()
    assert {(edge.source.name, edge.target.name) for edge in graph.edges} == {
        ("Source: initial", "doubled"),
        ("IterationSource-2", "doubled"),
        ("doubled", "IterationSink-2"),
        ("doubled", "Sink: result"),
    }
    assert "6 supersteps" in loop.to_svg()
    assert [line.partition(":")[0] for line in loop.summary().splitlines()] == [
        "doubling", "  1", "  2", "  3", "  4", "  5", "  6",
    ]  # fmt: skip
    assert {step.tasks for step in loop.supersteps[1:]} == {4}, "each superstep runs its own two stages"
    held = cached(spark) - before
    assert len(held) == (1 if copied else 2), "the last rows, and those from which Spark makes them again"
    used = result.groupBy().sum("v")
    del result
    gc.collect()
    spark._jvm.System.gc()
    release_unused()
    assert used.first()[0] == sum(row[1] for row in after(6, begin)), "rows are kept for what is made of them"
    del used
    for _ in range(50):
        gc.collect()
        spark._jvm.System.gc()
        release_unused()
        if not cached(spark) - before:
            break
        spark.range(1).count()
    assert not cached(spark) - before


def test_until_is_asked_once_a_superstep_and_its_columns_are_recorded(begin):
    asked = []

    def until(previous, current):
        asked.append(len(asked))
        total = current.agg(F.sum("v").alias("total"))
        return total.select((F.col("total") > 3000).alias("enough"), "total")

    result = flinkmagic.iterate(begin, doubled, max_iterations=20, until=until)
    loop = flinkmagic.iterations()[-1]
    assert asked == [0, 1, 2]
    assert [dict(step.measures) for step in loop.supersteps] == [
        {"enough": False, "total": 870},
        {"enough": False, "total": 1740},
        {"enough": True, "total": 3480},
    ]
    assert (loop.converged, loop.outcome) == (True, "3 supersteps, converged")
    assert values(result) == after(3, begin)
    flinkmagic.iterate(begin, doubled, max_iterations=5, until=lambda before, now: np.bool_(now.count() == 3))
    assert flinkmagic.iterations()[-1].outcome == "1 superstep, converged"


@pytest.mark.long
def test_the_graph_that_goes_on_from_a_loop_has_it_as_one_loop(spark, begin, tmp_path):
    def until(previous, current):
        return current.agg((F.sum("v") > 3000).alias("enough"), F.sum("v").alias("total"))

    names = {}
    with flinkmagic.capture(spark, namespace=names) as program:
        names["last"] = flinkmagic.iterate(begin, doubled, max_iterations=9, until=until, name="doubling")
        names["last"].where("id > 0").write.parquet(f"{tmp_path}/some")
        names["last"].agg(F.sum("v").alias("v")).write.parquet(f"{tmp_path}/sum")
    graph = flinkmagic.compile(program, name="after", parallelism=2)
    view = graph.view("stream")
    assert view.summary.endswith(", after doubling: 3 supersteps, converged")
    named = {node.id: node for node in view.nodes}
    edges = {(named[edge.source].name, named[edge.target].name, edge.partitioner) for edge in view.edges}
    assert {edge for edge in edges if "doubled" in edge or "FEEDBACK" in edge} == {
        ("Source: initial", "doubled", "FORWARD"),
        ("IterationSource-2", "doubled", "FORWARD"),
        ("doubled", "IterationSink-2", "FORWARD"),
        ("IterationSink-2", "IterationSource-2", "FEEDBACK"),
        ("doubled", "CacheRead: last", "FORWARD"),
    }
    [step] = [node for node in view.nodes if node.name == "doubled"]
    assert [line.operator for line in step.operators] == ["total 870 → 1.74e+03 → 3.48e+03", "3 supersteps, converged"]
    assert [fact[1].partition("tasks, ")[2] for fact in step.facts if fact[0].startswith("superstep ")] == [
        "enough False, total 870",
        "enough False, total 1740",
        "enough True, total 3480",
    ]
    assert {node.name for node in graph.view("job").nodes}.isdisjoint({"doubled"})
    assert graph.run().status is JobStatus.FINISHED
    assert "doubling: 3 supersteps, converged" in graph.to_svg(view="stream")
    assert spark.read.parquet(f"{tmp_path}/sum").first() == (3480,)


def test_until_that_joins_both_states_compiles_no_code_once_two_supersteps_have_run(spark, begin):
    compiled = []
    times = spark._jvm.org.apache.spark.metrics.source.CodegenMetrics.METRIC_COMPILATION_TIME()
    never = -1 - time.time_ns() % 10**9  # code of its own: other code may be known, also from an earlier run

    def until(previous, current):
        compiled.append(times.getCount())
        both = previous.withColumnRenamed("v", "old").join(current, "id")
        return both.select((F.max(F.abs(F.col("v") - F.col("old"))) < never).alias("converged"))

    one = begin.where("id = 1").coalesce(1)
    flinkmagic.iterate(one, doubled, max_iterations=5, until=lambda a, b: until(a, b).crossJoin(b.select("v")))
    assert compiled[-1] == compiled[2] > compiled[0]


def test_until_that_joins_few_rows_of_both_states_starts_no_spark_job(spark, begin):
    store, jobs = StatusStore(spark), []

    def until(before, after):
        jobs[:] = [store.jobs()]
        old = before.withColumnRenamed("v", "old")
        return old.join(after, "id").where("v - old < 5").select((F.col("v") > 3).alias("enough"), "old", "v")

    flinkmagic.iterate(begin.where("id = 1").coalesce(1), doubled, max_iterations=9, until=until)
    measures = [dict(one.measures) for one in flinkmagic.iterations()[-1].supersteps]
    assert measures == [{"enough": False, "old": 1, "v": 2}, {"enough": True, "old": 2, "v": 4}]
    assert jobs == [store.jobs()]


@pytest.mark.long
def test_supersteps_are_planned_on_one_clone_of_the_session_until_its_settings_change(spark, begin, monkeypatch):
    made = []
    make = SessionClones._made
    monkeypatch.setattr(SessionClones, "_made", lambda *given: made.append(make(*given)) or made[-1])
    flinkmagic.iterate(begin, doubled, max_iterations=3, until=lambda _, after: after.selectExpr("max(v) < 0 AS done"))
    assert len(made) == 1

    def step(df, superstep):
        if superstep == 2:
            spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        return doubled(df).withColumn("v", F.col("v") + F.hour(F.timestamp_seconds(F.lit(0))))

    spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        rows = flinkmagic.iterate(begin.select("id", "v"), step, max_iterations=2).collect()
    finally:
        spark.conf.unset("spark.sql.session.timeZone")
    assert len(made) == 3
    assert sorted(row.v for row in rows) == [549, 589, 629]


def test_a_long_loops_measures_are_told_by_its_ends():
    steps = [Superstep(number, 1.0, 0.1, 2, {"done": False, "moved": 1 / number}) for number in range(1, 21)]
    assert convergence(steps) == ["moved 1 → 0.5 → 0.333 → 0.25 → … → 0.0588 → 0.0556 → 0.0526 → 0.05"]
    assert convergence([Superstep(1, 1.0, 0.1, 2, {"converged": True})]) == []


@pytest.mark.long
def test_a_state_of_another_type_than_the_data(spark):
    points = spark.createDataFrame([(x,) for x in (1.0, 2.0, 3.0, 11.0, 12.0, 13.0)], "x double")
    calls = []

    def closer(data, centroids):
        calls.append(data)
        pairs = data.crossJoin(centroids).withColumn("d", F.abs(F.col("x") - F.col("at")))
        nearest = pairs.groupBy("x").agg(F.min_by("k", "d").alias("k"))
        return nearest.groupBy("k").agg(F.avg("x").alias("at"))

    begin = spark.createDataFrame([(0, 0.0), (1, 5.0)], "k int, at double")
    same = lambda a, b: a.exceptAll(b).count() == 0  # noqa: E731
    found = flinkmagic.co_iterate(points, begin, closer, max_iterations=10, until=same, parallelism=2)
    assert values(found) == [(0, 2.0), (1, 12.0)]
    loop = flinkmagic.iterations()[-1]
    assert loop.converged
    assert {(edge.source.name, edge.target.name) for edge in loop.stream_graph().edges} == {
        ("Source: data", "closer"),
        ("Source: state", "closer"),
        ("IterationSource-3", "closer"),
        ("closer", "IterationSink-3"),
        ("closer", "Sink: result"),
    }
    assert all(one is calls[0] for one in calls)
    assert calls[0] is not points, "the data are computed once, and kept"
    points.persist()
    flinkmagic.co_iterate(points, begin, closer, max_iterations=1)
    assert calls[-1] is points, "what the user has cached is read from there"
    points.unpersist()


def test_a_step_takes_several_data_and_the_number_of_its_superstep(spark, begin):
    by_two, by_ten = spark.range(3).selectExpr("id", "2 AS a"), spark.range(3).selectExpr("id", "10 AS b")
    numbers = []

    def step(first, second, state, superstep):
        numbers.append(superstep)
        both = state.join(first, "id").join(second, "id")
        return both.select("id", (F.col("v") * F.col("a") + F.col("b") + superstep).cast("bigint").alias("v"))

    state = spark.createDataFrame([(0, 1), (1, 2), (5, 9)], "id long, v long")
    found = flinkmagic.co_iterate([by_two, by_ten], state, step, max_iterations=3)
    assert numbers == [1, 2, 3]
    assert values(found) == [(0, 8 * 1 + 4 * 11 + 2 * 12 + 13), (1, 8 * 2 + 4 * 11 + 2 * 12 + 13)]
    edges = {(edge.source.name, edge.target.name) for edge in flinkmagic.iterations()[-1].stream_graph().edges}
    assert {("Source: data 1", "step"), ("Source: data 2", "step"), ("Source: state", "step")} <= edges
    plus = functools.partial(lambda df, superstep: df.select("id", (F.col("v") + superstep).alias("v")), superstep=7)
    assert values(flinkmagic.iterate(state, plus, max_iterations=2)) == [(0, 15), (1, 16), (5, 23)], "it is given"


@pytest.mark.long
@pytest.mark.parametrize("kind", ["iterate", "co_iterate"])
def test_a_step_with_a_union_has_no_more_tasks_each_time(spark, kind, copied):
    state = spark.range(0, 8, 1, 4).select("id", F.lit(1).cast("long").alias("v"))
    more = spark.range(8, 12, 1, 3).select("id", F.lit(1).cast("long").alias("v"))
    if kind == "iterate":
        last = flinkmagic.iterate(state, lambda df: df.union(df), max_iterations=6)
        expected = {(id,): 64 for id in range(8)}
    else:
        last = flinkmagic.co_iterate(more, state, lambda data, df: df.union(data), max_iterations=6)
        expected = {(id,): 1 if id < 8 else 6 for id in range(12)}
    tasks = [step.tasks for step in flinkmagic.iterations()[-1].supersteps]
    assert tasks[0] == (8 if kind == "iterate" else 7)
    # A copy is read with as many tasks as there are slots, whatever the superstep before had.
    slots = spark.sparkContext.defaultParallelism
    assert tasks[1:] == [(2 * slots if kind == "iterate" else slots + 3) if copied else tasks[0]] * 5
    assert last.rdd.getNumPartitions() == tasks[-1]
    assert {tuple(row)[:1]: row[1] for row in last.groupBy("id").agg(F.sum("v")).collect()} == expected


def test_a_step_that_chooses_its_partitions_has_them(spark, begin, copied):
    last = flinkmagic.iterate(begin, lambda df: df.repartition(13), max_iterations=3)
    assert [step.tasks for step in flinkmagic.iterations()[-1].supersteps][1:] == [
        13 + (spark.sparkContext.defaultParallelism if copied else 13)
    ] * 2
    assert last.rdd.getNumPartitions() == 13


def test_an_interrupt_shows_the_users_line_and_none_of_ours(begin):
    def interrupted(df):
        if len(flinkmagic.iterations()[-1].supersteps) == 1:
            raise KeyboardInterrupt
        return doubled(df)

    with pytest.raises(KeyboardInterrupt) as raised:
        flinkmagic.iterate(begin, interrupted, max_iterations=3, name="stopped")
    assert raised.value.__notes__ == ["It has cancelled the loop 'stopped' after 1 finished superstep."]
    assert flinkmagic.iterations()[-1].status is JobStatus.CANCELED
    frames = [entry.frame for entry in raised.traceback[1:]]
    assert all(frame.f_locals.get("__tracebackhide__") for frame in frames), "IPython leaves them out"


def test_an_alarm_cancels_a_loop_as_an_interrupt_does(begin):
    def rings(number, frame):
        raise TimeoutError("rang")

    before = signal.signal(signal.SIGALRM, rings)
    try:
        with pytest.raises(TimeoutError, match="rang"):
            flinkmagic.iterate(begin, lambda df: signal.raise_signal(signal.SIGALRM), max_iterations=3, name="rung")
    finally:
        signal.signal(signal.SIGALRM, before)
    assert flinkmagic.iterations()[-1].status is JobStatus.CANCELED


def test_few_rows_of_a_state_are_broadcast_without_a_task(spark, begin):
    def step(data, weights):
        return data.crossJoin(F.broadcast(weights)).groupBy("w").agg(F.sum("v").alias("v")).selectExpr("w + v AS w")

    def until(before, after):
        return before.withColumnRenamed("w", "old").crossJoin(after).selectExpr("w = old AS same", "w")

    data, weights = begin.persist(), spark.createDataFrame([(1,)], "w LONG").coalesce(1)
    data.count()
    result = flinkmagic.co_iterate(data, weights, step, max_iterations=4, until=until)
    assert values(result) == [(1 + 4 * 435,)]
    supersteps = flinkmagic.iterations()[-1].supersteps
    assert [dict(one.measures) for one in supersteps] == [
        {"same": False, "w": 1 + number * 435} for number in (1, 2, 3, 4)
    ]
    assert [one.tasks - supersteps[0].tasks for one in supersteps] == [0, -1, -1, -1]
    data.unpersist()


def test_few_rows_of_a_state_are_those_of_a_plain_loop(spark, begin):
    def step(df):
        return df.select("id", "v", F.transform("list", lambda each: each + 1).alias("list"), "pair", "day", "none")

    kinds = begin.select(
        "id",
        (F.col("v") / 7).cast("decimal(20, 9)").alias("v"),
        F.array("id", F.lit(None).cast("long")).alias("list"),
        F.struct("v", F.concat(F.lit("v"), "v").alias("text")).alias("pair"),
        F.date_add(F.lit("2026-01-01").cast("date"), F.col("id").cast("int")).alias("day"),
        F.lit(None).cast("string").alias("none"),
    )
    result = flinkmagic.iterate(kinds, step, max_iterations=3)
    assert result.collect() == step(step(step(kinds))).collect()


def test_a_step_that_spark_cannot_compute_while_it_plans_names_its_superstep(begin):
    def step(df, superstep):
        return df if superstep == 1 else df.select("id", F.expr("if(id < 0, v, raise_error('odd'))").alias("v"))

    with pytest.raises(SuperstepFailedError, match=r"Superstep 2 of the loop 'raising' failed\.\n.*odd"):
        flinkmagic.iterate(begin, step, max_iterations=3, name="raising")


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"max_iterations": 0}, IterationArgumentsError, "max_iterations must be a whole number from 1 on, not 0"),
        ({"max_iterations": True}, IterationArgumentsError, "from 1 on, not True"),
        ({"step": 3}, IterationArgumentsError, "step must be a function, not 3"),
        ({"until": "x"}, IterationArgumentsError, "until must be a function, not 'x'"),
        ({"initial": [1]}, IterationArgumentsError, "initial of iterate must be a DataFrame, not list"),
        ({"restart": "sometimes"}, InvalidValueError, "restart"),
        ({"step": lambda df: 7}, IterationArgumentsError, "in superstep 1 must be a DataFrame, not int"),
        (
            {"step": lambda df: df.select("id")},
            IterationArgumentsError,
            r"given \(id bigint, v bigint\), not 'id bigint'",
        ),
        ({"until": lambda a, b: 1}, IterationArgumentsError, "returns must be a bool, or a DataFrame of one row"),
        ({"until": lambda a, b: b}, IterationArgumentsError, "whose first column is boolean"),
        (
            {"until": lambda a, b: b.selectExpr("true")},
            IterationArgumentsError,
            "DataFrame of one row .*, not '2 rows'",
        ),
    ],
)
def test_what_is_refused(begin, arguments, error, text):
    given = {"initial": begin, "step": doubled, "max_iterations": 2, **arguments}
    with pytest.raises(error, match=text):
        flinkmagic.iterate(given.pop("initial"), given.pop("step"), **given)


@pytest.fixture
def raising(tmp_path):
    """A step whose function raises once, in its second superstep."""
    marker = tmp_path / "raised"
    steps = []

    def step(df):
        steps.append(df)
        number, place = len(steps), str(marker)

        def check(v):
            import os

            if number == 2 and not os.path.exists(place):
                open(place, "w").close()
                raise ValueError("once")
            return v

        return doubled(df.withColumn("v", F.udf(check, "long")("v")).coalesce(1))

    return step, steps


def test_a_function_that_raises_once_repeats_its_superstep_only(begin, raising):
    step, steps = raising
    result = flinkmagic.iterate(begin, step, max_iterations=3, parallelism=2)
    assert values(result) == after(3, begin)
    assert len(steps) == 3
    assert [one.number for one in flinkmagic.iterations()[-1].supersteps] == [1, 2, 3]


def test_without_a_restart_the_error_names_the_superstep(spark, begin, raising):
    before = cached(spark)
    with pytest.raises(SuperstepFailedError, match=r"Superstep 2 of the loop 'once' failed\.\n.*ValueError: once"):
        flinkmagic.iterate(begin, raising[0], max_iterations=3, name="once", restart="none")
    assert flinkmagic.iterations()[-1].status is JobStatus.FAILED
    assert cached(spark) <= before  # what earlier tests kept may go meanwhile


def test_lost_rows_are_computed_again_from_the_superstep_before(begin, no_copies):
    def step(df):
        loop = flinkmagic.iterations()[-1]
        if len(loop.supersteps) == 3:
            loop._rows[-1]._builder().cachedColumnBuffers().unpersist(True)  # as if their executor were gone
        return doubled(df)

    assert values(flinkmagic.iterate(begin, step, max_iterations=5)) == after(5, begin)


def test_a_step_that_clears_sparks_cache_drops_no_superstep(spark, begin, no_copies):
    computed = spark.sparkContext.accumulator(0)

    @F.udf("long")
    def noted(value):
        computed.add(1)
        return value

    def step(df):
        spark.catalog.clearCache()
        made = doubled(df)
        return made.select("id", noted("v").alias("v"))

    result = flinkmagic.iterate(begin, step, max_iterations=4)
    assert values(result) == after(4, begin)
    assert computed.value == 4 * 3, "each superstep has computed its three rows once"
    spark.catalog.clearCache()
    assert values(result) == after(4, begin)
    assert computed.value == 4 * 3


def test_a_state_has_the_schema_that_the_step_gives_it(begin, copied):
    def step(df):
        return doubled(df).select("id", F.col("v").alias("v", metadata={"unit": "s"}), F.lit(1).alias("sure"))

    def noting(df):
        seen.append(df.schema)
        return step(df)

    seen, first = [], begin.withColumn("sure", F.lit(1))
    result = flinkmagic.iterate(first, noting, max_iterations=3)
    made = step(first).schema
    assert [field.nullable for field in made] == [True, True, False]
    assert made["v"].metadata == {"unit": "s"}
    assert seen == [first.schema, made, made]
    assert result.schema == made


def test_cancel_between_and_within_supersteps(spark, begin):
    before = cached(spark)

    def cancelling(previous, current):
        flinkmagic.iterations()[-1].cancel()
        return False

    with pytest.raises(IterationCancelledError, match="'between' was cancelled after 1 finished superstep"):
        flinkmagic.iterate(begin, doubled, max_iterations=9, until=cancelling, name="between")
    assert flinkmagic.iterations()[-1].status is JobStatus.CANCELED

    def endless(df):
        def wait(v):
            time.sleep(60)
            return v

        return doubled(df.withColumn("v", F.udf(wait, "long")("v")))

    timer = threading.Timer(2.0, lambda: flinkmagic.iterations()[-1].cancel())
    timer.start()
    started = time.monotonic()
    with pytest.raises(IterationCancelledError, match="after 0 finished"):
        flinkmagic.iterate(begin, endless, max_iterations=3)
    assert time.monotonic() - started < 50
    assert cached(spark) <= before  # what earlier tests kept may go meanwhile


def test_another_run_goes_on_from_the_last_superstep(begin, tmp_path):
    def broken(previous, current):
        if len(flinkmagic.iterations()[-1].supersteps) == 2:
            raise RuntimeError("the kernel dies")
        return False

    where = {"name": "long", "checkpoint_dir": str(tmp_path), "parallelism": 2}
    with pytest.raises(RuntimeError, match="the kernel dies"):
        flinkmagic.iterate(begin, doubled, max_iterations=4, until=broken, **where)
    [folder] = tmp_path.iterdir()
    assert sorted(path.name for path in folder.iterdir()) == ["2.parquet", "superstep.json"]
    other = flinkmagic.iterate(begin.where("id > 3"), doubled, max_iterations=1, **(where | {"name": "another"}))
    assert values(other) == after(1, begin.where("id > 3"))
    result = flinkmagic.iterate(begin, doubled, max_iterations=4, **where)
    assert [step.number for step in flinkmagic.iterations()[-1].supersteps] == [3, 4]
    assert flinkmagic.iterations()[-1].outcome == "4 supersteps"
    assert values(result) == after(4, begin)
    assert list(tmp_path.iterdir()) == [], "a loop that has ended leaves nothing"


@pytest.mark.long
def test_rows_of_another_loop_are_not_taken_up(begin, tmp_path):
    def broken(previous, current):
        raise RuntimeError

    where = {"name": "same", "checkpoint_dir": str(tmp_path), "max_iterations": 2}
    with pytest.raises(RuntimeError):
        flinkmagic.iterate(begin, doubled, until=lambda a, b: broken(a, b) if a is not begin else False, **where)
    result = flinkmagic.iterate(begin.where("id > 3"), doubled, **where)
    assert len(flinkmagic.iterations()[-1].supersteps) == 2
    assert values(result) == after(2, begin.where("id > 3"))


def test_in_a_captured_cell_it_runs_on_its_line_and_what_follows_is_deferred(spark, tmp_path):
    deployed = []

    class Runs(DeployingListener):
        def run_pending(self, program):
            deployed.append([write.name for write in program.writes])
            assert flinkmagic.compile(program, name="pending").run().status is JobStatus.FINISHED

    spark.range(0, 12, 1, 2).select("id", F.col("id").alias("v")).write.parquet(str(tmp_path / "in"))
    with flinkmagic.capture(spark, mode="run", listener=Runs()) as program:
        begin = spark.read.parquet(str(tmp_path / "in"))
        begin.where("id > 5").write.parquet(str(tmp_path / "first"))
        result = flinkmagic.iterate(begin, doubled, max_iterations=3, name="inside")
        result.where("id > 0").groupBy().sum("v").write.parquet(str(tmp_path / "out"))
    assert deployed == [], "the loop reads nothing that is pending"
    assert len(flinkmagic.iterations()[-1].supersteps) == 3
    assert not (tmp_path / "out").exists()
    assert [call.text for call in program.lineage.calls if call.method == "iterate"] == [
        'iterate(begin, doubled, max_iterations=3, name="inside"): 3 supersteps'
    ]
    graph = flinkmagic.compile(program, name="cell")
    assert "3 supersteps" in graph.to_dot("stream")
    assert graph.run().status is JobStatus.FINISHED
    expected = sum(v for id, v in after(3, spark.read.parquet(str(tmp_path / "in"))) if id > 0)
    assert spark.read.parquet(str(tmp_path / "out")).first()[0] == expected
