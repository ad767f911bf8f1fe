"""Cells of mode streaming."""

from __future__ import annotations

import signal
import time

import pytest

TICKS = "ticks = spark.readStream.schema('value long').csv(folder)\n"
QUERY = "q = ticks.writeStream.format('memory').queryName('{0}').start()\n"


@pytest.fixture
def streamed(notebook, tmp_path):
    """The notebook, with a folder of rows to stream."""
    (tmp_path / "rows.csv").write_text("1\n2\n3\n")
    notebook.names["folder"] = str(tmp_path)
    return notebook


def test_a_streaming_cell_is_shown_run_and_cancelled(streamed) -> None:
    cell = streamed.run("%%flinkgraph told --mode streaming\n" + TICKS + QUERY.format("told_rows"))
    assert cell.error is None
    assert streamed.names["spark"].streams.active == []
    refused = streamed.run("q.id")
    assert type(refused.error).__name__ == "StreamNotStartedError"
    assert "%flinkrun told" in str(refused.error)
    assert streamed.run("%flinkrun told").error is None
    assert streamed.run("q.processAllAvailable()").error is None
    assert streamed.names["spark"].table("told_rows").count() == 3
    assert "RUNNING" in streamed.run("%flinkjobs").stdout
    again = streamed.run("%flinkrun told")
    assert type(again.error).__name__ == "JobRunningError"
    began = time.monotonic()
    assert "told is CANCELED" in streamed.run("%flinkcancel told").stdout
    assert time.monotonic() - began < 3
    assert streamed.names["q"].isActive is False


def test_with_run_a_line_that_needs_the_query_starts_it(streamed) -> None:
    source = TICKS + QUERY.format("needed_rows") + "q.processAllAvailable()\nn = spark.table('needed_rows').count()\n"
    cell = streamed.run("%%flinkgraph needs --mode streaming --run\n" + source)
    assert cell.error is None
    assert streamed.names["n"] == 3
    assert streamed.names["q"].isActive
    assert "nothing to compile" not in cell.stdout
    assert "needs is CANCELED" in streamed.run("%flinkcancel needs").stdout


def test_without_the_option_a_stream_starts_and_the_text_names_it(streamed) -> None:
    cell = streamed.run("%%flinkgraph plain\n" + TICKS + QUERY.format("plain_rows"))
    assert cell.error is None
    assert streamed.names["q"].isActive
    streamed.names["q"].stop()
    assert "line 3: the stream has started. With --mode streaming" in cell.stdout


def test_a_table_of_a_query_can_be_read_on_the_next_line_and_in_the_next_cell(streamed) -> None:
    read = "n = spark.table('next_rows').count()\n"
    cell = streamed.run("%%flinkgraph at_once --mode streaming --run\n" + TICKS + QUERY.format("next_rows") + read)
    assert cell.error is None
    assert streamed.names["n"] in (0, 3)
    assert streamed.names["at_once"].jobs[-1].status.name == "RUNNING"
    assert streamed.run("%flinkcancel at_once").error is None
    streamed.run("%%flinkgraph later --mode streaming\n" + TICKS + QUERY.format("later_rows"))
    assert streamed.run("%flinkrun later").error is None
    assert streamed.run("spark.table('later_rows')").error is None
    assert streamed.run("later_job = later.jobs[-1]\n%flinkcancel later").error is None


def test_a_refused_start_raises_on_its_line_and_leaves_the_other_query_running(streamed) -> None:
    refused = "ticks.writeStream.format('parquet').start(folder + '/never')\n"
    cell = streamed.run(
        "%%flinkgraph refused --mode streaming --run\n"
        + TICKS
        + QUERY.format("kept_rows")
        + f"try:\n    {refused}except Exception as error:\n    caught = error\n"
        + refused
        + "reached = True\n"
    )
    assert type(cell.error).__name__ == type(streamed.names["caught"]).__name__ == "AnalysisException"
    assert "checkpointLocation" in str(cell.error)
    assert "reached" not in streamed.names
    assert streamed.names["q"].isActive
    assert [sink.name for sink in streamed.names["refused"].sinks] == ["kept_rows"]
    assert streamed.run("q.processAllAvailable()\nn = spark.table('kept_rows').count()").error is None
    assert streamed.names["n"] == 3
    assert "refused is CANCELED" in streamed.run("%flinkcancel refused").stdout


@pytest.mark.long
def test_a_deferred_start_that_spark_refuses_leaves_the_others_of_its_graph_alone(streamed) -> None:
    cell = streamed.run(
        "%%flinkgraph mixed --mode streaming\n"
        + TICKS
        + "bad = ticks.writeStream.format('nosuch').option('checkpointLocation', folder + '/checks').start()\n"
        + QUERY.format("mixed_rows")
    )
    assert cell.error is None
    ran = streamed.run("%flinkrun mixed")
    assert "nosuch" in str(ran.error)
    assert "line 3" in "".join(ran.error.__notes__)
    assert "nosuch has not started (" in streamed.names["mixed"].jobs[-1].snapshot().note
    assert streamed.run("q.processAllAvailable()\nn = spark.table('mixed_rows').count()").error is None
    assert streamed.names["n"] == 3
    assert "StreamNotStartedError" in type(streamed.run("bad.id").error).__name__
    assert "mixed is CANCELED" in streamed.run("%flinkcancel mixed").stdout


def test_a_cell_may_name_a_batch_frame_beside_a_query_that_it_waits_for(streamed) -> None:
    query = QUERY.format("beside_rows").replace(".start()", ".trigger(availableNow=True).start()")
    cell = streamed.run(
        "%%flinkgraph beside --mode streaming --run\n"
        "static = spark.range(3)\n" + TICKS + query + "q.awaitTermination()\n"
        "sums = spark.table('beside_rows').groupBy().sum('value')\n"
    )
    assert cell.error is None
    assert "nothing to compile" not in cell.stdout
    assert streamed.names["sums"].collect()[0][0] == 6
    assert streamed.names["beside"].jobs[-1].wait(30).name == "FINISHED"


def test_queries_of_which_no_graph_can_be_made_run_as_plain_spark_runs_them(streamed, monkeypatch) -> None:
    from flinkmagic.session import job_planning

    def fail(*_, **__):
        raise RuntimeError("no plan")

    monkeypatch.setattr(job_planning, "plan_streams", fail)
    query = QUERY.format("plainly_rows").replace(".start()", ".trigger(availableNow=True).start()")
    cell = streamed.run(
        "%%flinkgraph plainly --mode streaming --run\n" + TICKS + query + "ended = q.awaitTermination(60)\n"
    )
    assert cell.error is None
    assert "line 3: the stream runs as plain Spark, because no graph of it could be made" in cell.stdout
    assert streamed.names["ended"] is True
    assert streamed.names["spark"].table("plainly_rows").count() == 3


def test_an_alarm_that_rings_while_a_graph_is_made_is_raised_and_the_queries_run(streamed, monkeypatch) -> None:
    from flinkmagic.session import job_planning

    def rings(number, frame):
        raise TimeoutError("rang")

    before = signal.signal(signal.SIGALRM, rings)
    monkeypatch.setattr(job_planning, "plan_streams", lambda *_, **__: signal.raise_signal(signal.SIGALRM))
    try:
        cell = streamed.run("%%flinkgraph rung --mode streaming --run\n" + TICKS + QUERY.format("rung_rows"))
    finally:
        signal.signal(signal.SIGALRM, before)
    assert isinstance(cell.error, TimeoutError)
    assert "no graph of it could be made" not in cell.stdout
    assert streamed.names["q"].isActive
    streamed.names["q"].stop()


def test_a_cell_that_runs_again_replaces_queries_that_it_has_stopped_but_no_running_ones(streamed) -> None:
    cell = "%%flinkgraph again --mode streaming --run\n" + TICKS + QUERY.format("again_rows")
    assert streamed.run(cell).error is None
    first = streamed.names["q"]
    refused = streamed.run(cell)
    assert type(refused.error).__name__ == "JobRunningError"
    assert first.isActive
    assert streamed.run(cell.replace("ticks =", "q.stop()\nticks =")).error is None
    assert not first.isActive
    assert streamed.run("q.processAllAvailable()\nn = spark.table('again_rows').count()").error is None
    assert streamed.names["n"] == 3
    assert "again is CANCELED" in streamed.run("%flinkcancel again").stdout


@pytest.mark.long
def test_a_query_that_fails_before_its_job_takes_it_over_is_restarted(streamed, tmp_path) -> None:
    streamed.names["marker"] = str(tmp_path / "raised")
    cell = streamed.run(
        "%%flinkgraph fragile --mode streaming --run --restart fixed-delay:1:100ms\n"
        + TICKS
        + "def take(rows, number):\n"
        "    import pathlib\n"
        "    if not pathlib.Path(marker).exists():\n"
        "        pathlib.Path(marker).touch()\n"
        "        raise ValueError('torn')\n"
        "    rows.write.mode('append').json(folder + '/out')\n"
        "q = ticks.writeStream.foreachBatch(take).trigger(availableNow=True).start()\n"
        "query = q._jsq\n"
        "try:\n"
        "    query.awaitTermination()\n"
        "except Exception as error:\n"
        "    failed = str(error)\n"
        "q.awaitTermination()\n"
    )
    assert cell.error is None
    assert "torn" in streamed.names["failed"]
    assert streamed.names["fragile"].jobs[-1].wait(30).name == "FINISHED"
    assert streamed.names["spark"].read.json(str(tmp_path / "out")).count() == 3


PROGRAMS = {
    "windows": """
at = F.timestamp_seconds(F.col("value") * 60)
timed = ticks.withColumn("at", at).withWatermark("at", "1 minute")
sums = timed.groupBy(F.window("at", "2 minutes")).sum("value")
q = sums.writeStream.format("memory").queryName("NAME").trigger(availableNow=True).start()
q.awaitTermination()
out = sorted(row[1] for row in spark.table("NAME").collect())
""",
    "join": """
timed = ticks.withColumn("at", F.timestamp_seconds("value")).withWatermark("at", "1 minute")
others = timed.select(F.col("value").alias("other"), F.col("at").alias("then"))
pairs = timed.join(others, F.expr("value = other AND then BETWEEN at - INTERVAL 1 MINUTE AND at"))
q = pairs.writeStream.format("memory").queryName("NAME").trigger(availableNow=True).start()
out = [q.awaitTermination(90), sorted((row.value, row.other) for row in spark.table("NAME").collect())]
""",
    "restart": """
def load():
    writer = ticks.writeStream.option("checkpointLocation", place + "/checks").trigger(availableNow=True)
    return writer.start(place + "/out", format="parquet").awaitTermination()
load()
first = spark.read.parquet(place + "/out").count()
load()
out = [first, spark.read.parquet(place + "/out").count()]
""",
    "several": """
q1 = ticks.writeStream.format("memory").queryName("NAME_1").start()
q2 = ticks.groupBy().count().writeStream.format("memory").queryName("NAME_2").outputMode("complete").start()
active = len(spark.streams.active)
try:
    ticks.writeStream.format("memory").queryName("NAME_1").start()
except Exception as error:
    refused = type(error).__name__
q1.processAllAvailable(), q2.processAllAvailable()
out = [active, refused, spark.table("NAME_1").count(), spark.table("NAME_2").collect()[0][0]]
q1.stop(), q2.stop()
q1 = ticks.writeStream.format("memory").queryName("NAME_1").start()
out += [q1.isActive, len(spark.streams.active)]
q1.stop()
""",
    "polling": """
import os, time
q = ticks.writeStream.foreachBatch(lambda rows, n: rows.write.mode("append").json(place + "/out")).start()
end = time.monotonic() + 60
while not os.path.exists(place + "/out/_SUCCESS") and time.monotonic() < end:
    time.sleep(0.05)
q.stop()
out = [q.awaitTermination(30), spark.read.json(place + "/out").count()]
""",
    "raises": """
torn = F.udf(lambda value: 1 // (value - 2), "long")
spark.streams.resetTerminated()
q = ticks.select(torn("value")).writeStream.format("memory").queryName("NAME").start()
try:
    spark.streams.awaitAnyTermination(60)
except Exception as error:
    out = [type(error).__name__, "ZeroDivisionError" in str(error), q.isActive, "by zero" in str(q.exception())]
""",
}
"""Programs as Spark's guide has them; each leaves what it has seen in `out`."""


@pytest.mark.long
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_sees_in_a_cell_what_it_sees_in_plain_spark(streamed, tmp_path_factory, program) -> None:
    seen = []
    for number, magic in enumerate(("", "%%flinkgraph seen --mode streaming --run\n")):
        streamed.names.pop("out", None)
        streamed.names["place"] = str(tmp_path_factory.mktemp(program))
        done = streamed.run(magic + TICKS + PROGRAMS[program].replace("NAME", f"{program}_{number}"))
        assert done.error is None
        seen.append(streamed.names["out"])
        assert streamed.names["spark"].streams.active == []
    assert seen[0] == seen[1]
