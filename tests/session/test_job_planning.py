"""Options that a session cannot honour are refused in a line, before anything is planned."""

from __future__ import annotations

import pytest

import flinkmagic
from flinkmagic.errors.graph import PipelinedExchangeError
from flinkmagic.session.job_planning import check_pipelined


@pytest.fixture
def setting(spark):
    """Set one of the context's settings for a test."""
    conf, changed = spark.sparkContext._conf, []

    def change(key, value):
        changed.append((key, conf.get(key, "false")))
        conf.set(key, value)

    yield change
    for key, before in changed:
        conf.set(key, before)


@pytest.mark.parametrize("key", ["spark.dynamicAllocation.enabled", "spark.speculation"])
def test_pipelined_exchanges_are_refused_with_what_spark_refuses_them_with(spark, setting, key):
    setting(key, "true")
    with pytest.raises(PipelinedExchangeError, match=f"Spark refuses them with {key}=true. Leave the option out"):
        flinkmagic.compile({"r": spark.range(5).repartition(2)}, exchange="pipelined")
    assert flinkmagic.compile({"r": spark.range(5).repartition(2)}).options.exchange == "blocking"


def test_a_stream_s_exchanges_are_spark_s(spark):
    with pytest.raises(PipelinedExchangeError, match="in mode streaming Spark itself decides"):
        check_pipelined(spark.sparkContext, "streaming")


def test_the_notes_say_what_a_region_needs_and_is_for(spark):
    graph = flinkmagic.compile({"r": spark.range(0, 9, 1, 1).repartition(1)}, exchange="pipelined")
    note = "Sink: r and 1 vertex before it are one pipelined region of 2 tasks that run simultaneously"
    assert note in graph.summary()
    assert "it waits" not in graph.summary()
    wide = flinkmagic.compile({"r": spark.range(0, 9, 1, 4).repartition(3)}, exchange="pipelined")
    assert "It needs 7 slots, and there are 2: it waits until there are more" in wide.summary()


def test_the_picture_has_one_frame_for_the_vertices_of_a_region(spark):
    frames = {"r": spark.range(0, 9, 1, 1).repartition(1)}
    blocking, pipelined = (
        flinkmagic.compile(frames, exchange=one).view("regions") for one in ("blocking", "pipelined")
    )
    assert [len(view.clusters) for view in (blocking, pipelined)] == [2, 1]
