"""What a program notes of a cell: calls, lines, names, results; and that a cell that raises leaves nothing."""

from __future__ import annotations

import gc
import sys
import weakref
from typing import Any

import pytest

from flinkmagic.capturing.capture import capture
from flinkmagic.capturing.capture_listener import CaptureListener
from flinkmagic.capturing.results import name_results
from flinkmagic.errors.capturing import ListenerRequiredError, SparkConnectSessionError
from flinkmagic.errors.usage import InvalidValueError

exact = pytest.mark.skipif(sys.version_info < (3, 11), reason="positions of calls are known since Python 3.11")


@exact
def test_calls_carry_their_text_line_and_frames(cell: Any, numbers: Any) -> None:
    numbers("in", 30)
    program = cell.capture("""\
        flights = spark.read.parquet(at("in"))
        late = (
            flights
            .where("id > 15")
            .join(spark.range(20), "id")
        )
        by_hour = late.groupBy(F.expr("id % 3").alias("hour")).agg(
            F.count("*").alias("n"),
        )
        """)
    assert [(c.method, c.text, c.location.line) for c in program.lineage.calls] == [
        ("parquet", 'read.parquet(at("in"))', 1),
        ("where", 'where("id > 15")', 4),
        ("range", "range(20)", 5),
        ("join", 'join(spark.range(20), "id")', 5),
        ("agg", 'groupBy(F.expr("id % 3").alias("hour")).agg(F.count("*").alias("n"))', 7),
    ]
    assert {c.location.cell for c in program.lineage.calls} == {"cell 3"}
    assert program.lineage.calls[1].location.code == '.where("id > 15")'
    assert [(c.inputs, c.output) for c in program.lineage.calls] == [
        ((), 0),
        ((0,), 1),
        ((), 2),
        ((1, 2), 3),
        ((3,), 4),
    ]


def test_each_expression_id_belongs_to_the_call_that_made_it(cell: Any) -> None:
    program = cell.capture("""\
        a = spark.range(9)
        b = a.withColumn("k", F.col("id") % 2)
        c = b.where("k = 1")
        d = c.groupBy("k").count()
        """)
    by_id = program.lineage.by_expr_id()
    output = {name: df._jdf.queryExecution().analyzed().output() for name, df in program.variables.items()}
    owners = [by_id[output["d"].apply(i).exprId().id()].method for i in range(2)]
    assert owners == ["withColumn", "count"]
    assert [len(call.output_expr_ids) for call in program.lineage.calls] == [1, 1, 0, 1]


def test_a_frame_from_before_brings_its_ids_along(cell: Any) -> None:
    cell.plain("a = spark.range(9)")
    program = cell.capture("b = a.select('id', F.lit(1).alias('one'))")
    (call,) = program.lineage.calls
    assert len(call.output_expr_ids) == 1
    assert program.frame_of(cell.namespace["a"]) == call.inputs[0]


def test_only_the_users_own_calls_are_noted(cell: Any) -> None:
    program = cell.capture("df = spark.range(9).describe().na.fill(0).transform(lambda d: d.limit(2))")
    assert [call.method for call in program.lineage.calls] == ["range", "describe", "fillna", "limit"]


def test_a_model_s_frame_belongs_to_the_line_that_applied_it(cell: Any) -> None:
    pytest.importorskip("numpy")
    cell.plain("from pyspark.ml.feature import Binarizer")
    program = cell.capture("""\
        df = spark.range(9).select(F.col("id").cast("double").alias("x"))
        high = Binarizer(threshold=3.0, inputCol="x", outputCol="high").transform(df)
        """)
    call = program.lineage.calls[-1]
    assert (call.method, call.text, call.location.line, len(call.output_expr_ids)) == (
        "transform",
        "transform(df)",
        2,
        1,
    )
    assert list(program.results) == ["high"]


def test_results_are_the_bound_frames_that_no_other_consumes(cell: Any) -> None:
    cell.plain("old = spark.range(5)")
    program = cell.capture("""\
        base = spark.range(9)
        left = base.where("id > 3")
        right = base.where("id < 3")
        _hidden = base.limit(1)
        same = right
        n = 3
        """)
    assert list(program.variables) == ["base", "left", "right", "same"]
    assert list(program.results) == ["left", "right"]
    assert program.results["left"] is cell.namespace["left"]
    assert program.names_of(program.frame_of(cell.namespace["right"])) == ("right", "same")


def test_a_frame_that_a_view_hands_on_is_consumed(cell: Any) -> None:
    program = cell.capture("""\
        base = spark.range(9)
        base.createOrReplaceTempView("consumed_numbers")
        other = spark.range(3)
        spark.sql("create or replace temp view consumed_again as select * from consumed_numbers")
        total = spark.sql("with x as (select * from consumed_again) select sum(id) s from x")
        """)
    assert list(program.results) == ["other", "total"]
    assert program.lineage.calls[-1].inputs == (0,)


def test_a_cell_with_a_write_has_no_results(cell: Any) -> None:
    program = cell.capture("""\
        df = spark.range(3)
        df.write.parquet(at("out"))
        """)
    assert list(program.variables) == ["df"]
    assert program.results == {}
    assert [write.name for write in program.writes] == ["out"]
    assert program.writes[0].df is cell.namespace["df"]


def test_results_can_be_named_later(cell: Any) -> None:
    with capture(cell.spark, namespace={}) as program:
        a = cell.spark.range(3)
        b = a.limit(2)
    assert (program.variables, program.results) == ({}, {})
    name_results(program, {"b": None}, {"a": a, "b": b})
    assert list(program.variables) == ["a", "b"]
    assert list(program.results) == ["b"]


def test_the_namespace_around_the_block_is_the_default(cell: Any) -> None:
    with capture(cell.spark, name="mine") as program:
        total = cell.spark.range(3).groupBy().sum("id")
    assert program.name == "mine"
    assert program.results == {"total": total}
    assert program.lineage.calls[0].location.cell == "test_recorder.py"
    assert program.lineage.calls[0].location.code == 'total = cell.spark.range(3).groupBy().sum("id")'


def test_eager_actions_run_immediately(cell: Any) -> None:
    program = cell.capture("""\
        df = spark.range(4)
        seen = [df.count(), df.collect()[1][0], df.first()[0], df.isEmpty(), len(df.take(2)), df.rdd.count()]
        pandas = df.toPandas()
        streamed = [row[0] for row in df.toLocalIterator()]
        total = spark.sparkContext.accumulator(0)
        df.foreach(lambda row: total.add(row[0]))
        df.foreachPartition(lambda rows: total.add(sum(1 for _ in rows)))
        """)
    assert cell.namespace["seen"] == [4, 1, 0, False, 2, 4]
    assert list(cell.namespace["pandas"]["id"]) == [0, 1, 2, 3]
    assert cell.namespace["streamed"] == [0, 1, 2, 3]
    assert cell.namespace["total"].value == 10
    assert program.results == {}, "it has done more with it than name it"
    assert program.eager.actions == 9


def test_what_has_been_used_is_no_result(cell: Any) -> None:
    cell.plain("from pyspark.ml.feature import VectorAssembler; import pandas as pd")
    program = cell.capture("""\
        from pyspark.ml.clustering import KMeans
        named = spark.range(3).withColumn("x", F.lit(1.0))
        looked_at = spark.range(4)
        looked_at.printSchema(); looked_at.explain(); looked_at.columns; looked_at["id"]; repr(looked_at)
        viewed = spark.range(5)
        viewed.createOrReplaceTempView("viewed_numbers")
        cached = spark.range(5).cache()
        small = spark.range(2)
        joined = named.join(F.broadcast(small), "id")
        vectors = VectorAssembler(inputCols=["x"], outputCol="features").transform(joined)
        model = KMeans(k=2).fit(vectors)
        frames = [frame := spark.range(7)]
        pandas = [each.toPandas() for each in frames]
        def plot(data):
            return data.groupBy().count().collect()
        plotted = spark.range(8)
        plot(plotted)
        stream = spark.readStream.format("rate").load()
        command = spark.sql("SHOW TABLES")
        cached.unpersist()
        """)
    assert list(program.results) == ["looked_at"]


def test_a_streaming_frame_is_no_result(cell: Any) -> None:
    program = cell.capture("ticks = spark.readStream.format('rate').load().where('value > 3')")
    assert list(program.variables) == ["ticks"]
    assert program.results == {}


def test_persist_and_checkpoint_do_what_they_do(cell: Any) -> None:
    program = cell.capture("""\
        kept = spark.range(4).persist()
        level = kept.storageLevel
        cut = kept.limit(2).localCheckpoint()
        """)
    try:
        assert cell.namespace["level"].useMemory
        assert cell.namespace["cut"]._jdf.queryExecution().analyzed().getClass().getSimpleName() == "LogicalRDD"
        assert [call.method for call in program.lineage.calls] == ["range", "limit", "localCheckpoint"]
    finally:
        cell.namespace["kept"].unpersist()


def test_frames_that_no_name_refers_to_are_let_go(cell: Any) -> None:
    gone: list[Any] = []
    with capture(cell.spark, namespace={}) as program:
        df = cell.spark.range(3)
        shared = df.limit(3)
        pair = (shared.limit(2), shared.limit(1))
        gone.append(weakref.ref(df))
        del df
        number = program.frame_of(shared)
        del shared
        gc.collect()
    assert gone[0]() is None
    assert number is not None
    assert set(program.lineage.frames) == {number}
    assert len(pair) == 2


def test_a_cell_that_raises_registers_nothing(cell: Any) -> None:
    program = None

    def work() -> None:
        nonlocal program
        with capture(cell.spark) as program:
            df = cell.spark.range(3)
            df.write.parquet(cell.at("out"))
            assert df.count() / 0

    with pytest.raises(ZeroDivisionError):
        work()
    assert program is not None
    assert not program.complete
    assert (program.writes, program.lineage.calls, program.results, program.variables) == ((), (), {}, {})
    assert cell.made() == set()


@pytest.mark.parametrize("call", ["where(F.col('nope') > 1)", "orderBy('nope')", "sortWithinPartitions('nope')"])
def test_spark_s_errors_name_the_users_line(cell: Any, call: str) -> None:
    with pytest.raises(Exception, match="nope") as plain:
        cell.plain(f"\nspark.range(3).{call}")
    with pytest.raises(Exception, match="nope") as captured:
        cell.capture(f"\nspark.range(3).{call}")
    assert type(captured.value) is type(plain.value)
    assert str(captured.value) == str(plain.value)
    if hasattr(plain.value, "getQueryContext"):
        plain_context, context = (e.value.getQueryContext() for e in (plain, captured))
        assert [c.callSite() for c in context] == [c.callSite() for c in plain_context]


def test_a_connect_session_is_refused() -> None:
    class SparkSession:
        pass

    SparkSession.__module__ = "pyspark.sql.connect.session"
    with pytest.raises(SparkConnectSessionError, match="Spark Connect session: it has no SparkContext"):
        capture(SparkSession())  # type: ignore[arg-type]


def test_there_are_no_other_modes(spark: Any) -> None:
    with pytest.raises(InvalidValueError, match=r"^mode must be one of batch, .*, not 'soon'\.$"):
        capture(spark, mode="soon")


@pytest.mark.parametrize("mode", ["run", "lines", "foreachBatch", "streaming, run"])
def test_a_mode_whose_lines_get_what_they_need_requires_a_listener_that_provides_it(spark: Any, mode: str) -> None:
    for listener in (None, CaptureListener()):
        with pytest.raises(ListenerRequiredError, match=f"mode '{mode}' .* class DeployingListener"):
            capture(spark, mode=mode, listener=listener)


def test_a_mode_that_starts_streams_requires_a_listener_that_starts_them(spark: Any, cell: Any) -> None:
    with pytest.raises(ListenerRequiredError, match="class StreamStartingListener"):
        capture(spark, mode="streaming, run", listener=cell)
