"""Every writer, deferred: it leaves what plain Spark leaves, and its query's stages are the job's."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from pyspark.sql import functions as F

from flinkmagic.capturing.capture import capture
from flinkmagic.scheduling.job_status import JobStatus

DRIVER = "org.apache.derby.iapi.jdbc.AutoloadedDriver"


@pytest.fixture(scope="module")
def url(spark, tmp_path_factory):
    """A real database: Derby, which Spark brings along."""
    return f"jdbc:derby:{tmp_path_factory.mktemp('derby') / 'db'};create=true"


@pytest.fixture(scope="module")
def catalog(spark, url):
    """A catalog of tables that are not Spark's own."""
    settings = {
        "spark.sql.catalog.db": "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
        "spark.sql.catalog.db.url": url,
        "spark.sql.catalog.db.driver": DRIVER,
    }
    for key, value in settings.items():
        spark.conf.set(key, value)
    yield "db.APP"
    for key in settings:
        spark.conf.unset(key)


@pytest.fixture(scope="module")
def partitioned_catalog(spark, tmp_path_factory):
    """A catalog whose tables can overwrite partitions, compiled and put onto the class path of driver and executor."""
    source = (Path(__file__).with_name("java") / "PartitionedCatalog.java").read_text(encoding="utf-8")
    jvm = spark._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(loader)
    compiler.cook(source)
    jar = tmp_path_factory.mktemp("catalog") / "catalog.jar"
    with zipfile.ZipFile(jar, "w") as classes:
        for name, code in compiler.getBytecodes().items():
            classes.writestr(f"{name}.class", bytes(code))
    loader.addURL(jvm.java.io.File(str(jar)).toURI().toURL())
    spark.conf.set("spark.sql.catalog.parts", "PartitionedCatalog")
    yield "parts"
    spark.conf.unset("spark.sql.catalog.parts")


@pytest.fixture
def tables(spark):
    """Names of tables that are gone after the test."""
    made = []

    def name(base):
        made.append(base)
        spark.sql(f"DROP TABLE IF EXISTS {base}")
        return base

    yield name
    for base in made:
        spark.sql(f"DROP TABLE IF EXISTS {base}")


@pytest.fixture
def rows(spark, numbers):
    """Rows behind two shuffles, with nulls, numbers, dates, arrays and structs."""
    frame = spark.read.parquet(numbers)
    sums = frame.groupBy("k", "m").agg(F.sum("id").alias("total"))
    return (
        sums.where("m < 9")
        .groupBy("k")
        .agg(
            F.sum("total").alias("total"),
            F.max(F.when(F.col("k") > 2, F.concat(F.lit("n"), F.col("m").cast("string")))).alias("name"),
            F.min(F.expr("date_add(DATE'2024-02-28', CAST(m AS INT))")).alias("day"),
            F.max(F.array("m", "total")).alias("pair"),
            F.max(F.struct("m", F.lit(None).cast("double").alias("nothing"))).alias("both"),
        )
    )


def _entry(spark, name):
    """What the catalog knows of a table, without its name, place and times."""
    state = spark._jsparkSession.sessionState()
    table = state.catalog().getTableMetadata(state.sqlParser().parseTableIdentifier(name))
    return {
        "schema": json.loads(table.schema().json()),
        "provider": table.provider().get(),
        "kind": table.tableType().name(),
        "partitions": table.partitionColumnNames().mkString(","),
        "buckets": table.bucketSpec().toString(),
        "comment": table.comment().toString(),
        "options": {k for k in (table.storage().properties().keys().mkString(",").split(",")) if k != "path"},
    }


def _sorted(frame):
    return sorted((row.asDict(recursive=True) for row in frame.collect()), key=str)


def _folders(spark, name):
    """The partition folders of a table, with the number of files of each where buckets say how many there are."""
    location = spark.sql(f"DESCRIBE EXTENDED {name}").where("col_name = 'Location'").first()["data_type"]
    root = Path(location.removeprefix("file:"))
    return sorted({str(path.parent.relative_to(root)) for path in root.rglob("part-*")})


TABLE_WRITERS = {
    "plain": lambda df, t: df.write.saveAsTable(t),
    "partitioned": lambda df, t: df.write.partitionBy("k").saveAsTable(t),
    "bucketed": lambda df, t: df.write.bucketBy(3, "k").sortBy("total").saveAsTable(t),
    "partitioned and bucketed": lambda df, t: df.write.partitionBy("k").bucketBy(2, "name").saveAsTable(t),
    "orc": lambda df, t: df.write.saveAsTable(t, format="orc", mode="overwrite", compression="zlib"),
    "json": lambda df, t: df.write.format("json").mode("append").saveAsTable(t),
    "ignore": lambda df, t: df.write.mode("ignore").saveAsTable(t),
    "empty": lambda df, t: df.where("k > 99").write.partitionBy("k").saveAsTable(t),
    "create": lambda df, t: df.writeTo(t).using("parquet").create(),
    "create partitioned": lambda df, t: (
        df.writeTo(t).using("orc").partitionedBy(F.col("k")).tableProperty("a", "b").create()
    ),
}


@pytest.mark.matrix(4)
@pytest.mark.parametrize("write", TABLE_WRITERS.values(), ids=TABLE_WRITERS.keys())
def test_a_new_table_is_that_of_a_plain_run(spark, deploy, tables, rows, spark_work, write):
    plain, deferred = tables("plain_table"), tables("deferred_table")
    write(rows, plain)
    with capture(spark) as program:
        write(rows, deferred)
    assert len(program.writes) == 1
    assert not spark.catalog.tableExists(deferred)
    before = spark_work.jobs()
    deployment = deploy(program)
    assert deployment.wait(100) is JobStatus.FINISHED, deployment.exceptions()
    # The stages of the query are the job's own: none of them ran beside it, or twice.
    ran = spark_work.tasks_by_stage(before)
    assert len(deployment.execution_graph.job_vertices) == len(ran) == 3
    assert {task.role for task in deployment.tasks()} == {"task"}
    assert sum(ran.values()) == len(deployment.tasks())
    assert _entry(spark, deferred) == _entry(spark, plain)
    assert spark.table(deferred).schema == spark.table(plain).schema
    assert _sorted(spark.table(deferred)) == _sorted(spark.table(plain))
    assert _folders(spark, deferred) == _folders(spark, plain)


IN_SHORT = {
    ("flat", "append"), ("flat", "insert overwrite"), ("partitioned", "insert"), ("partitioned", "dynamic"),
    ("bucketed", "overwrite"),
}  # fmt: skip
"""Each layout and each mode; the rest of their pairs takes half a minute."""


@pytest.mark.matrix(4)
@pytest.mark.parametrize(
    ("layout", "mode"),
    [
        pytest.param(layout, mode, marks=() if (layout, mode) in IN_SHORT else pytest.mark.long)
        for layout in ("flat", "partitioned", "bucketed")
        for mode in ("append", "overwrite", "insert", "insert overwrite", "dynamic")
    ],
)
def test_writing_to_a_table_that_is_there(spark, deploy, tables, rows, mode, layout):
    names = tables("plain_table"), tables("deferred_table")
    first = rows.where("k < 5").select("total", "name", "k")
    more = rows.where("k > 3").select("total", F.lit("more").alias("name"), "k")
    layouts = {"flat": lambda w: w, "partitioned": lambda w: w.partitionBy("k"),
               "bucketed": lambda w: w.bucketBy(2, "k").sortBy("k")}  # fmt: skip

    def write(name):
        if mode in ("append", "overwrite"):
            layouts[layout](more.write.mode(mode)).saveAsTable(name)
        else:
            more.write.insertInto(name, overwrite=mode != "insert")

    for name in names:
        layouts[layout](first.write).saveAsTable(name)
        assert spark.table(name).count() == 5  # the session knows its files now
    earlier = spark.table(names[1])
    if mode == "dynamic":
        spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        write(names[0])
        with capture(spark) as program:
            write(names[1])
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert _sorted(spark.table(names[1])) == _sorted(first)
    deployment = deploy(program)
    assert deployment.wait(100) is JobStatus.FINISHED, deployment.exceptions()
    plain, deferred = (spark.table(name) for name in names)
    assert _sorted(deferred) == _sorted(plain)
    assert deferred.schema == plain.schema
    assert _folders(spark, names[1]) == _folders(spark, names[0])
    assert _entry(spark, names[1]) == _entry(spark, names[0])
    if mode == "insert":
        assert _sorted(earlier) == _sorted(deferred)


def test_a_query_without_partitions_makes_an_empty_table(spark, deploy, tables):
    target = tables("deferred_table")
    with capture(spark) as program:
        spark.range(3).limit(0).write.saveAsTable(target)
    assert deploy(program).wait(60) is JobStatus.FINISHED
    assert spark.table(target).schema.simpleString() == "struct<id:bigint>"
    assert spark.table(target).collect() == []


def test_bucketed_and_partitioned_tables_as_inputs(spark, deploy, tables, rows):
    source, target = tables("bucketed_input"), tables("deferred_table")
    rows.select("total", "name", "k").write.bucketBy(3, "k").sortBy("k").saveAsTable(source)
    with capture(spark) as program:
        one, other = spark.table(source), spark.table(source).withColumnRenamed("total", "other")
        joined = one.hint("merge").join(other, "k").groupBy("k").count()
        joined.write.partitionBy("k").saveAsTable(target)
    deployment = deploy(program)
    assert deployment.wait(100) is JobStatus.FINISHED, deployment.exceptions()
    assert len(deployment.execution_graph.job_vertices) == 1  # buckets need no shuffle
    assert _sorted(spark.table(target)) == [{"count": 1, "k": k} for k in range(7)]


@pytest.mark.long
def test_several_writes_of_one_table_keep_the_order_of_the_program(spark, deploy, tables):
    target = tables("deferred_table")
    with capture(spark) as program:
        for day in range(3):
            spark.range(day, day + 1).write.mode("append").saveAsTable(target)
        spark.range(7, 9).write.mode("overwrite").saveAsTable(target)
        spark.range(9, 10).write.mode("append").saveAsTable(target)
    assert [write.after for write in program.writes] == [(), (0,), (0, 1), (0, 1, 2), (0, 1, 2, 3)]
    deployment = deploy(program)
    assert deployment.wait(100) is JobStatus.FINISHED, deployment.exceptions()
    assert _sorted(spark.table(target)) == [{"id": 7}, {"id": 8}, {"id": 9}]


def test_the_current_database_is_that_of_the_writes_line(spark, deploy, tables):
    spark.sql("CREATE DATABASE IF NOT EXISTS elsewhere")
    tables("elsewhere.here")
    try:
        with capture(spark) as program:
            spark.sql("USE elsewhere")
            spark.range(3).write.saveAsTable("here")
            spark.sql("USE default")
        assert deploy(program).wait(60) is JobStatus.FINISHED
        assert spark.table("elsewhere.here").count() == 3
        assert not spark.catalog.tableExists("default.here")
    finally:
        spark.sql("USE default")
        spark.sql("DROP DATABASE elsewhere CASCADE")


@pytest.mark.long
def test_a_database_is_written_by_every_writer(spark, deploy, rows, url, catalog, tables):
    flat = rows.select(F.col("k").cast("int").alias("K"), "total", "name")
    properties = {"driver": DRIVER}

    def writes(t):
        yield lambda: flat.write.jdbc(url, f"APP.{t}", properties=properties)
        yield lambda: flat.where("k > 5").write.jdbc(url, f"APP.{t}", mode="append", properties=properties)
        yield (
            lambda: (
                flat.where("k < 2")
                .write.mode("overwrite")
                .options(url=url, dbtable=f"APP.{t}", driver=DRIVER, truncate=True)
                .format("jdbc")
                .save()
            )
        )
        yield lambda: flat.writeTo(f"{catalog}.{t}2").create()
        yield lambda: flat.where("k > 4").writeTo(f"{catalog}.{t}2").append()
        yield lambda: flat.where("k > 4").write.insertInto(f"{catalog}.{t}2")
        yield lambda: flat.where("k < 3").writeTo(f"{catalog}.{t}2").overwrite(F.lit(True))
        yield lambda: flat.where("k < 4").writeTo(f"{catalog}.{t}2").createOrReplace()
        yield lambda: flat.where("k < 5").writeTo(f"{catalog}.{t}2").replace()

    for plain, deferred in zip(writes("PLAIN"), writes("LATE"), strict=True):
        plain()
        with capture(spark) as program:
            deferred()
        assert len(program.writes) == 1
        deployment = deploy(program)
        assert deployment.wait(100) is JobStatus.FINISHED, deployment.exceptions()
        assert len(deployment.execution_graph.job_vertices) == 3
        for suffix in ("", "2"):
            if suffix and not spark.catalog.tableExists(f"{catalog}.PLAIN2"):
                continue
            one, other = (spark.table(f"{catalog}.{t}{suffix}") for t in ("PLAIN", "LATE"))
            assert _sorted(one) == _sorted(other)
            assert one.schema == other.schema


def _partitioned(rows, *tables):
    """Make tables with a partition for each k and a total of -1 in it; the rows that overwrite some of them."""
    flat = rows.select(F.col("k").cast("int").alias("k"), "total")
    for table in tables:
        rows.sparkSession.sql(f"CREATE TABLE {table} (k INT, total BIGINT) PARTITIONED BY (k)")
        flat.select("k", F.lit(-1).cast("long").alias("total")).writeTo(table).append()
    return flat.where("k IN (2, 5)")


@pytest.mark.long
def test_partitions_of_a_table_are_overwritten_and_others_kept(spark, deploy, rows, partitioned_catalog):
    some = _partitioned(rows, f"{partitioned_catalog}.plain", f"{partitioned_catalog}.late")
    some.writeTo(f"{partitioned_catalog}.plain").overwritePartitions()
    with capture(spark) as program:
        some.writeTo(f"{partitioned_catalog}.late").overwritePartitions()
    assert {row["total"] for row in spark.table(f"{partitioned_catalog}.late").collect()} == {-1}
    deployment = deploy(program)
    assert deployment.wait(60) is JobStatus.FINISHED, deployment.exceptions()
    assert len(deployment.execution_graph.job_vertices) == 3
    plain, late = (spark.table(f"{partitioned_catalog}.{who}") for who in ("plain", "late"))
    assert _sorted(late) == _sorted(plain)
    assert sorted(row["k"] for row in late.where("total > -1").collect()) == [2, 5]
    assert late.count() == 7


def test_rows_that_fulfil_a_condition_are_overwritten_and_others_kept(spark, deploy, rows, partitioned_catalog):
    some = _partitioned(rows, f"{partitioned_catalog}.if_plain", f"{partitioned_catalog}.if_late")
    some.writeTo(f"{partitioned_catalog}.if_plain").overwrite(F.col("k") == 2)
    with capture(spark) as program:
        some.writeTo(f"{partitioned_catalog}.if_late").overwrite(F.col("k") == 2)
    deployment = deploy(program)
    assert deployment.wait(60) is JobStatus.FINISHED, deployment.exceptions()
    plain, late = (spark.table(f"{partitioned_catalog}.if_{who}") for who in ("plain", "late"))
    assert _sorted(late) == _sorted(plain)
    assert sorted((row["k"], row["total"] > -1) for row in late.where("k IN (2, 5)").collect()) == [
        (2, True), (5, False), (5, True)
    ]  # fmt: skip


def test_partitions_of_the_table_that_is_read_are_overwritten(spark, deploy, partitioned_catalog):
    own = f"{partitioned_catalog}.own"
    spark.sql(f"CREATE TABLE {own} (k INT, total BIGINT) PARTITIONED BY (k)")
    spark.sql(f"INSERT INTO {own} VALUES (1, 10), (1, 11), (2, 20)")
    with capture(spark) as program:
        spark.table(own).where("k = 1").selectExpr("k", "total + 1 AS total").writeTo(own).overwritePartitions()
    (write,) = program.writes
    assert (write.facts.mode, write.facts.dynamic) == ("overwrite", True)
    deployment = deploy(program)
    assert deployment.wait(60) is JobStatus.FINISHED, deployment.exceptions()
    assert sorted(tuple(row) for row in spark.table(own).collect()) == [(1, 11), (1, 12), (2, 20)]


@pytest.mark.long
def test_what_is_there_is_left_alone_where_the_mode_is_ignore(spark, deploy, rows, url, tmp_path):
    spark.range(3).write.parquet(str(tmp_path / "there"))
    spark.range(3).write.jdbc(url, "APP.IGNORED", properties={"driver": DRIVER})
    some = rows.select("k", "total")
    with capture(spark) as program:
        some.write.mode("ignore").parquet(str(tmp_path / "there"))
        some.write.mode("ignore").parquet(str(tmp_path / "new"))
        some.write.jdbc(url, "APP.IGNORED", mode="ignore", properties={"driver": DRIVER})
    assert not (tmp_path / "new").exists()
    deployment = deploy(program)
    assert deployment.wait(60) is JobStatus.FINISHED, deployment.exceptions()
    assert _sorted(spark.read.parquet(str(tmp_path / "there"))) == [{"id": number} for number in range(3)]
    assert _sorted(spark.read.parquet(str(tmp_path / "new"))) == _sorted(some)
    database = spark.read.jdbc(url, "APP.IGNORED", properties={"driver": DRIVER})
    assert sorted(row[0] for row in database.collect()) == [0, 1, 2]


def test_a_table_of_jdbc_in_the_sessions_catalog_takes_inserts(spark, deploy, url, tables):
    target = tables("jdbc_table")
    spark.range(3).write.jdbc(url, "APP.INSERTED", properties={"driver": DRIVER})
    spark.sql(f"CREATE TABLE {target} USING jdbc OPTIONS (url '{url}', dbtable 'APP.INSERTED', driver '{DRIVER}')")
    with capture(spark) as program:
        spark.range(5, 7).write.insertInto(target)
    deployment = deploy(program)
    assert deployment.wait(60) is JobStatus.FINISHED, deployment.exceptions()
    assert sorted(row[0] for row in spark.table(target).collect()) == [0, 1, 2, 5, 6]


def test_a_source_that_writes_nothing_is_a_sink_all_the_same(spark, deploy, rows):
    with capture(spark) as program:
        rows.write.format("noop").mode("overwrite").save()
    deployment = deploy(program)
    assert deployment.wait(60) is JobStatus.FINISHED, deployment.exceptions()
    assert [write.facts.format for write in program.writes] == ["noop"]
    assert len(deployment.execution_graph.job_vertices) == 3


@pytest.mark.long
def test_a_source_of_the_users_own_in_python_writes_on_its_line(spark, rows, tmp_path):
    datasource = pytest.importorskip("pyspark.sql.datasource", reason="data sources in Python came with Spark 4.0")

    class Lines(datasource.DataSource):
        @classmethod
        def name(cls):
            return "lines_of_mine"

        def writer(self, schema, overwrite):
            folder = self.options["folder"]

            class Writer(datasource.DataSourceWriter):
                def write(self, iterator):
                    import os
                    import uuid

                    with open(os.path.join(folder, f"{uuid.uuid4().hex}.part"), "w") as out:
                        out.writelines(f"{row[0]}\n" for row in iterator)
                    return datasource.WriterCommitMessage()

                def commit(self, messages):
                    import os

                    with open(os.path.join(folder, "committed"), "w") as out:
                        out.write(f"{len(messages)} {overwrite}")

            return Writer()

    spark.dataSource.register(Lines)
    with capture(spark) as program:
        rows.select("k").write.format("lines_of_mine").mode("append").option("folder", str(tmp_path)).save()
        # Only the writer knows where it writes, so it writes on its line.
        lines = sorted(line for part in tmp_path.glob("*.part") for line in part.read_text().split())
    assert lines == [str(k) for k in range(7)]
    assert (tmp_path / "committed").read_text().endswith(" False")
    assert program.writes == ()


def test_a_table_that_a_write_failed_to_replace_is_gone_as_in_a_plain_run(spark, deploy, tables):
    target = tables("deferred_table")
    spark.range(3).write.saveAsTable(target)
    assert spark.table(target).count() == 3
    with capture(spark) as program:
        spark.range(3).selectExpr("raise_error('no') AS id").write.mode("overwrite").saveAsTable(target)
    deployment = deploy(program)
    assert deployment.wait(60) is JobStatus.FAILED
    assert not spark.catalog.tableExists(target)
