"""RDDs: jobs over paths that pending writes touch, readers and savers of Hadoop's, functions that may have effects."""

from __future__ import annotations

from typing import Any

import pytest

from flinkmagic.errors.capturing import PendingWriteError

TEXT_INPUT = "org.apache.hadoop.mapreduce.lib.input.TextInputFormat"
OLD_INPUT = "org.apache.hadoop.mapred.TextInputFormat"
NEW_OUTPUT = "org.apache.hadoop.mapreduce.lib.output.TextOutputFormat"
OLD_OUTPUT = "org.apache.hadoop.mapred.TextOutputFormat"
KEY, VALUE, LONG = "org.apache.hadoop.io.Text", "org.apache.hadoop.io.Text", "org.apache.hadoop.io.LongWritable"
NEW_CONF = "mapreduce.input.fileinputformat.inputdir"

JOBS = {
    "collect": "sorted(lines.collect())",
    "count": "lines.count()",
    "take": "len(lines.take(99))",
    "first": "lines.first() is None",
    "isEmpty": "lines.isEmpty()",
    "reduce": "lines.map(int).reduce(lambda a, b: a + b)",
    "sum": "lines.map(int).sum()",
    "top": "lines.map(int).top(1)",
    "countByValue": "len(lines.countByValue())",
    "toLocalIterator": "sum(1 for _ in lines.toLocalIterator())",
    "sortBy": "lines.sortBy(int).zipWithIndex().collect()[-1]",
    "foreach": "lines.foreach(lambda line: None)",
    "through a shuffle": "lines.map(lambda line: (int(line) % 2, 1)).reduceByKey(lambda a, b: a + b).count()",
    "union": "lines.union(other).count()",
    "runJob": "len(spark.sparkContext.runJob(lines, lambda rows: [sum(1 for _ in rows)]))",
    "approximately": "lines.countApproxDistinct() > 0",
    "to a DataFrame": "lines.map(lambda line: (int(line),)).toDF().count()",
    "saved": "lines.saveAsTextFile(at(f'saved{id(lines)}'))",
}


@pytest.mark.matrix(5)
@pytest.mark.parametrize("line", JOBS.values(), ids=JOBS.keys())
def test_a_job_over_a_path_that_an_earlier_line_writes(cell: Any, line: str) -> None:
    make = f"""\
        lines = spark.sparkContext.textFile(at("in"))
        other = spark.sparkContext.parallelize(range(3))
        lazily = lines.map(int).filter(lambda n: n > 1).keyBy(str)
        spark.range(5).selectExpr("cast(id as string)").write.mode("append").text(at("in"))
        got = {line}
        """
    before = 'spark.range(3).selectExpr("cast(id as string)").write.mode("overwrite").text(at("in"))'
    cell.plain(before)
    cell.plain(make)
    plain = cell.namespace["got"]
    cell.plain(before)
    with pytest.raises(PendingWriteError, match=r"cell 3, line 5: .* cell 3, line 4"):
        cell.capture(make)
    assert cell.spark.read.text(cell.at("in")).count() == 3
    program = cell.capture(make, deploying=True)
    assert cell.namespace["got"] == plain
    assert [(one.cause, one.location.line) for one in program.eager.settlements] == [("rdd", 5)]


@pytest.mark.long
def test_lazy_calls_and_jobs_over_other_paths_leave_writes_pending(cell: Any) -> None:
    cell.plain('spark.range(3).selectExpr("cast(id as string)").write.text(at("in"))')
    program = cell.capture("""\
        lines = spark.sparkContext.textFile(at("in"))
        spark.range(5).write.parquet(at("out"))
        pairs = lines.map(int).map(lambda n: (n % 2, n)).reduceByKey(lambda a, b: a + b)
        joined = pairs.join(pairs).mapValues(sum).groupByKey().union(pairs)
        n = [lines.count(), lines.map(int).sum(), joined.getNumPartitions() > 0, lines.zipWithIndex().first()[1]]
        lines.saveAsTextFile(at("text"))
        sums = joined.keys().distinct().keyBy(abs).join(pairs).aggregateByKey(0, lambda n, pair: n + pair[1], max)
        n += [sorted(pairs.collect()), sums.count() > 0, lines.map(int).mean(), lines.map(int).stats().max()]
        """)
    assert cell.namespace["n"] == [3, 3, True, 0, [(0, 2), (1, 1)], True, 1.0, 2.0]
    assert (len(program.writes), program.eager.settlements) == (1, ())
    assert "text" in cell.made()


def test_a_look_does_not_change_what_a_job_runs_later(cell: Any) -> None:
    source = """\
        step = 1
        plus = spark.sparkContext.parallelize([1, 2]).map(lambda n: n + step)
        spark.range(5).write.mode("overwrite").parquet(at("out"))
        first = plus.first()
        step = 10
        rest = plus.collect()
        """
    cell.plain(source)
    plain = cell.namespace["first"], cell.namespace["rest"]
    cell.capture(source)
    assert (cell.namespace["first"], cell.namespace["rest"]) == plain == (2, [11, 12])


READERS = {
    "newAPIHadoopFile": f"newAPIHadoopFile(at('in'), '{TEXT_INPUT}', '{LONG}', '{VALUE}')",
    "hadoopFile": f"hadoopFile(at('in'), '{OLD_INPUT}', '{LONG}', '{VALUE}')",
    "newAPIHadoopRDD": f"newAPIHadoopRDD('{TEXT_INPUT}', '{LONG}', '{VALUE}', conf={{'{NEW_CONF}': at('in')}})",
    "hadoopRDD": f"hadoopRDD('{OLD_INPUT}', '{LONG}', '{VALUE}', conf={{'mapred.input.dir': at('in')}})",
    "binaryRecords": "binaryRecords(at('in') + '/p*', 2)",
    "binaryFiles": "binaryFiles(at('in') + '/p*')",
    "wholeTextFiles": "wholeTextFiles(at('in') + '/p*')",
}


@pytest.mark.matrix(3)
@pytest.mark.parametrize("reader", READERS.values(), ids=READERS.keys())
def test_readers_of_hadoop(cell: Any, reader: str) -> None:
    source = f"""\
        spark.range(5).repartition(1).selectExpr("cast(id as string)").write.mode("overwrite").text(at("WRITTEN"))
        n = spark.sparkContext.{reader}.count()
        """
    cell.plain(source.replace("WRITTEN", "in"))
    plain = cell.namespace["n"]
    cell.plain('spark.range(0).selectExpr("cast(id as string)").write.mode("overwrite").text(at("in"))')
    with pytest.raises(PendingWriteError, match=r"line 2: .* reads"):
        cell.capture(source.replace("WRITTEN", "in"))
    assert cell.capture(source.replace("WRITTEN", "in"), deploying=True).eager.settlements[0].location.line == 2
    assert cell.namespace["n"] == plain
    assert cell.capture(source.replace("WRITTEN", "else")).eager.settlements == ()


SAVERS = {
    "saveAsHadoopFile": f"saveAsHadoopFile(at('PLACE'), '{OLD_OUTPUT}')",
    "saveAsNewAPIHadoopFile": f"saveAsNewAPIHadoopFile(at('PLACE'), '{NEW_OUTPUT}')",
    "saveAsSequenceFile": "saveAsSequenceFile(at('PLACE'))",
    "saveAsPickleFile": "saveAsPickleFile(at('PLACE'))",
    "saveAsTextFile with a codec": "saveAsTextFile(at('PLACE'), 'org.apache.hadoop.io.compress.GzipCodec')",
    "saveAsHadoopDataset": f"""saveAsHadoopDataset({{
        'mapred.output.format.class': '{OLD_OUTPUT}', 'mapreduce.output.fileoutputformat.outputdir': at('PLACE'),
        'mapreduce.job.output.key.class': '{KEY}', 'mapreduce.job.output.value.class': '{VALUE}'}})""",
    "saveAsNewAPIHadoopDataset": f"""saveAsNewAPIHadoopDataset({{
        'mapreduce.job.outputformat.class': '{NEW_OUTPUT}', 'mapreduce.output.fileoutputformat.outputdir': at('PLACE'),
        'mapreduce.job.output.key.class': '{KEY}', 'mapreduce.job.output.value.class': '{VALUE}'}})""",
}


@pytest.mark.long
@pytest.mark.parametrize("saver", SAVERS.values(), ids=SAVERS.keys())
def test_savers(cell: Any, numbers: Any, saver: str) -> None:
    numbers("x", 3)
    source = f"""\
        pairs = spark.sparkContext.parallelize([("a", "b")])
        spark.read.parquet(at("x")).write.mode("overwrite").parquet(at("out"))
        pairs.{saver}
        """
    with pytest.raises(PendingWriteError, match=r"line 3: .* changes file:.*/out, but the write of cell 3, line 2"):
        cell.capture(source.replace("PLACE", "out/sub"))
    assert cell.made() == {"x"}
    assert cell.capture(source.replace("PLACE", "saved")).eager.settlements == ()
    assert any(path.stat().st_size for path in (cell.folder / "saved").iterdir())


def test_functions_with_effects_settle(cell: Any) -> None:
    source = """\
        import os
        numbers = spark.sparkContext.parallelize([1, 2])
        doubled = spark.range(2).select(F.udf(lambda n: n * 2, "long")("id").alias("twice"))
        spark.range(5).write.mode("overwrite").parquet(place)
        n = [doubled.count(), numbers.map(lambda n: n + 1).collect()]
        n += numbers.map(lambda n: n + sum(name.endswith("parquet") for name in os.listdir(place))).collect()
        """
    cell.namespace["place"] = cell.at("plain")
    cell.plain(source)
    plain = cell.namespace["n"]
    cell.namespace["place"] = cell.at("out")
    with pytest.raises(PendingWriteError, match=r"line 6: .* may read or change"):
        cell.capture(source)
    assert cell.made() == {"plain"}
    assert [one.location.line for one in cell.capture(source, deploying=True).eager.settlements] == [6]
    assert cell.namespace["n"] == plain


@pytest.mark.matrix(3)
@pytest.mark.parametrize(
    "line",
    [
        "df.select(F.udf(lambda n: len(open(at_).read()), 'long')('id')).collect()",
        "df.foreach(lambda row: open(at_, 'a').write('x'))",
        "df.foreachPartition(lambda rows: open(at_, 'a').write('x'))",
        "df.rdd.foreach(lambda row: open(at_, 'a').write('x'))",
        "df.rdd.keyBy(lambda row: 0).reduceByKey(lambda a, b: len(open(at_).read())).collect()",
        "df.rdd.keyBy(lambda row: 0).combineByKey(lambda row: open(at_).read(), max, max).collect()",
    ],
)
def test_actions_whose_functions_have_effects_settle(cell: Any, line: str) -> None:
    (cell.folder / "notes").write_text("notes")
    source = f"""\
        at_ = {cell.at("notes")!r}
        df = spark.range(2)
        df.write.mode("overwrite").parquet(at("out"))
        df.foreach(lambda row: None)
        {line}
        """
    with pytest.raises(PendingWriteError, match=r"line 5: .* may read or change .*/out"):
        cell.capture(source)
    assert cell.made() == {"notes"}
    assert (cell.folder / "notes").read_text() == "notes"
    assert [one.location.line for one in cell.capture(source, deploying=True).eager.settlements] == [5]
