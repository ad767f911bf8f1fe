"""What is split is one stage whose rows are kept, and its selections and side outputs are on the edges behind it."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from flinkmagic.capturing.capture import capture
from flinkmagic.capturing.splits import side_output, split
from flinkmagic.display.views import stream_view
from flinkmagic.graph.transformations import OutputTag
from flinkmagic.options import JobOptions
from flinkmagic.planning import plan


@pytest.fixture
def four_ways(spark):
    """Cheap rows, which no cost rule would keep, split and with a side output."""
    with capture(spark) as program:
        rows = spark.range(0, 100, 1, 4).withColumn("r", F.rand(3))
        parts = split(rows, {"even": "id % 2 = 0", "odd": "id % 2 = 1"})
        even, every = parts.select("even").where("r < 0.9"), parts.select("even", "odd")
        main, late = side_output(rows, OutputTag("late"), "r > 0.5")
    return program, (rows, even, every, main, late)


def words(job):
    graph = job.environment.get_stream_graph()
    return graph, {
        (edge.selected_names, edge.output_tag.id if edge.output_tag else None)
        for edge in graph.edges
        if edge.dataset_id is not None
    }


def test_names_and_tags_are_on_the_edges_of_one_kept_result(four_ways, compiled):
    job = plan(four_ways[0], JobOptions(parallelism=2))
    graph, on_edges = words(job)
    assert on_edges == {(("even",), None), (("even", "odd"), None), ((), None), (None, "late")}
    assert [(stage.variable, stage.why) for stage in job.shared] == [("rows", "it is split")]
    facts = {fact for edge in stream_view(graph).edges for fact in edge.facts}
    assert {("selected", "even"), ("selected", "even, odd"), ("side output", "late")} <= facts
    vertices = compiled(job).vertices.values()
    assert [len(vertex.produced) for vertex in vertices if vertex.produced] == [1]
    [kept] = [dataset for vertex in vertices for dataset in vertex.produced]
    assert kept.result_type.is_persistent
    assert len(kept.consumers) == 4
    assert job.warnings == ()


def test_rows_are_right_and_the_parent_runs_once(four_ways, runner, status):
    program, (rows, even, every, main, late) = four_ways
    with status.watch() as ran:
        found = runner.run(plan(program, JobOptions(parallelism=2)))
    assert sorted(found) == ["even", "every", "late", "main"]
    for name, plain in (("even", even), ("every", every), ("main", main), ("late", late)):
        assert sorted(found[name]) == sorted(plain.collect()), name
    assert ran.jobs == 5
    del rows


def test_two_selections_in_one_sink_share_too_and_self_joins_know_them(spark, runner):
    with capture(spark) as program:
        rows = spark.range(0, 60, 1, 3).select("id", F.expr("id % 7").alias("k"))
        one, two = rows.randomSplit([0.4, 0.6], 11)
        both = one.join(two, "k")
        whole = one.union(two)
    for results in ({"both": both}, {"whole": whole}):
        program.results = results
        job = plan(program, JobOptions(parallelism=2))
        _, on_edges = words(job)
        assert on_edges == {(("part 1 of 2",), None), (("part 2 of 2",), None)}, results
        [(name, rows_found)] = runner.run(job).items()
        assert sorted(rows_found) == sorted(results[name].collect())


def test_one_selection_alone_is_no_reason_to_keep_rows(spark):
    with capture(spark) as program:
        late = side_output(spark.range(9), OutputTag("late"), "id > 3")[1]
    del late
    job = plan(program)
    assert job.boundaries == ()


def test_share_never_is_obeyed_and_said(four_ways):
    job = plan(four_ways[0], JobOptions(share="never"))
    assert job.boundaries == ()
    [warning] = job.warnings
    assert warning.startswith("rows is split, and is computed for each selection, because nothing is shared")


@pytest.mark.long
def test_what_the_user_has_cached_is_left_to_sparks_cache(spark, runner):
    with capture(spark) as program:
        rows = spark.range(0, 40, 1, 2).groupBy((F.col("id") % 5).alias("k")).count().cache()
        parts = split(rows, {"low": "k < 2", "high": "k >= 2"})
        low, high = parts.select("low"), parts.select("high")
    try:
        job = plan(program, JobOptions(parallelism=2))
        assert job.boundaries == ()
        assert sum(len(found) for found in runner.run(job).values()) == 5
        assert [warning for warning in job.warnings if "split" in warning] == []
    finally:
        rows.unpersist()
    del low, high
