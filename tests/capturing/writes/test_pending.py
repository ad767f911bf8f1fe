"""Order and safety of deferred writes: nothing happens that the plain cell would not have done, and rows stay."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.errors import AnalysisException

from flinkmagic.capturing.writes.pending import check_overwrites
from flinkmagic.capturing.writes.targets import Source, sources_of
from flinkmagic.errors.capturing import OverwritesInputError, PendingWriteError


def test_two_appends_to_one_target_keep_their_order(cell: Any) -> None:
    program = cell.capture("""\
        spark.range(2).write.mode("append").parquet(at("out"))
        spark.range(9).write.parquet(at("other"))
        spark.range(5, 7).write.mode("append").parquet(at("out"))
        spark.range(9).write.mode("append").parquet(at("out/day=1"))
        """)
    assert [write.after for write in program.writes] == [(), (), (0,), (0, 2)]


def test_an_overwrite_comes_after_what_it_overwrites(cell: Any) -> None:
    program = cell.capture("""\
        spark.range(2).write.mode("append").parquet(at("out/day=1"))
        spark.range(5).write.mode("overwrite").parquet(at("out"))
        """)
    assert program.writes[1].after == (0,)
    cell.run_pending(program)
    assert cell.rows("out") == [0, 1, 2, 3, 4]


def test_a_second_write_finds_the_path_taken_by_the_first(cell: Any) -> None:
    with pytest.raises(AnalysisException) as error:
        cell.capture("""\
            spark.range(2).write.parquet(at("out"))
            spark.range(3).write.parquet(at("out"))
            """)
    assert "PATH_ALREADY_EXISTS" in str(error.value)
    with pytest.raises(AnalysisException, match="PATH_ALREADY_EXISTS"):
        cell.capture("""\
            spark.range(2).write.parquet(at("out/day=1"))
            spark.range(3).write.parquet(at("out"))
            """)
    assert cell.made() == set()


def test_a_path_below_a_pending_write_is_open_until_that_has_run(cell: Any) -> None:
    source = """\
        spark.range(4).withColumn("k", F.col("id") % 2).write.partitionBy("k").parquet(at("out"))
        spark.range(3).write.mode("ignore").parquet(at("out/k=1"))
        spark.range(5).write.mode("ignore").parquet(at("out/k=7"))
        """
    with pytest.raises(PendingWriteError, match=r"cell 3, line 2: .* reads file:.*/out, .* cell 3, line 1"):
        cell.capture(source)
    program = cell.capture(source, deploying=True)
    assert [skipped.location.line for skipped in program.eager.skipped] == [2]
    assert [write.name for write in program.eager.writes] == ["out"]
    assert [(write.location.line, write.after) for write in program.writes] == [(3, ())]


READS = {
    "read": 'spark.read.parquet(at("out"))',
    "load": 'spark.read.format("parquet").load(at("out"))',
    "option": 'spark.read.option("path", at("out")).schema("id long").format("parquet").load()',
    "many": 'spark.read.parquet(at("there"), at("out"))',
    "list": 'spark.read.load([at("there"), at("out")], format="parquet")',
    "partition": 'spark.read.parquet(at("out/day=1"))',
    "parent": "spark.read.schema('id long').parquet(at(''))",
    "glob": 'spark.read.parquet(at("o*"))',
    "relative": "spark.read.parquet(at('there/../out'))",
    "sql": 'spark.sql(f"select * from parquet.`{at(chr(111) + chr(117) + chr(116))}`")',
    "sql with": "spark.sql(f\"with a as (select * from parquet.`{at(str().join(list('out')))}`) select * from a\")",
    "text of an rdd": 'spark.sparkContext.textFile(at("there") + "," + at("out"))',
    "stream": 'spark.readStream.schema("id long").parquet(at("out"))',
}


@pytest.mark.parametrize("line", READS.values(), ids=READS.keys())
def test_a_read_of_a_pending_target_is_refused_naming_both_lines(cell: Any, numbers: Any, line: str) -> None:
    numbers("there", 3)
    with pytest.raises(PendingWriteError) as error:
        cell.capture(f'spark.range(5).write.mode("overwrite").parquet(at("out"))\ndf = {line}')
    text = str(error.value)
    assert text.startswith(f"cell 3, line 2: `df = {line}` reads file:{cell.at('out')}, ")
    assert "the write of cell 3, line 1 is still pending" in text
    assert "another cell" in text
    assert "the DataFrame itself" in text
    assert cell.made() == {"there"}


@pytest.mark.parametrize("existing", [True, False])
def test_a_read_of_a_pending_target_deploys_it_first(cell: Any, numbers: Any, existing: bool) -> None:
    if existing:
        numbers("out", 3)
    program = cell.capture(
        """\
        spark.range(5).write.mode("overwrite").parquet(at("out"))
        spark.range(1).write.parquet(at("also"))
        df = spark.read.parquet(at("out"))
        n = df.count()
        df.write.parquet(at("copy"))
        """,
        deploying=True,
    )
    assert cell.namespace["n"] == 5
    assert cell.deployed == ["out", "also"]
    assert [write.name for write in program.eager.writes] == ["out", "also"]
    assert [(write.index, write.name, write.after) for write in program.writes] == [(0, "copy", ())]
    cell.run_pending(program)
    assert cell.rows("copy") == [0, 1, 2, 3, 4]


def test_a_read_by_way_of_a_link_is_seen(cell: Any, numbers: Any) -> None:
    numbers("data/out", 3)
    (cell.folder / "link").symlink_to(cell.folder / "data")
    with pytest.raises(PendingWriteError):
        cell.capture("""\
            spark.range(5).write.mode("append").parquet(at("data/out"))
            spark.read.parquet(at("link/out"))
            """)


def test_a_table_in_the_pending_folder_is_seen(cell: Any, numbers: Any) -> None:
    numbers("out", 3)
    cell.plain("spark.sql(f\"create table pending_numbers using parquet location '{at('out')}'\")")
    try:
        with pytest.raises(PendingWriteError, match="reads"):
            cell.capture("""\
                spark.range(5).write.mode("append").parquet(at("out"))
                df = spark.table("pending_numbers")
                """)
        with pytest.raises(PendingWriteError, match="reads"):
            cell.capture("""\
                spark.range(5).write.mode("append").parquet(at("out"))
                df = spark.sql("select count(*) from pending_numbers")
                """)
        cell.capture(
            """\
            spark.range(5).write.mode("append").parquet(at("out"))
            n = spark.sql("select count(*) n from pending_numbers").first()["n"]
            """,
            deploying=True,
        )
        assert cell.namespace["n"] == 8
    finally:
        cell.plain("spark.sql('drop table pending_numbers')")


ACTIONS = [
    "df.count()",
    "df.collect()",
    "df.show()",
    "df.toPandas()",
    "df.rdd",
    "df.isEmpty()",
    "df.toLocalIterator()",
]
ACTIONS += [
    "df.foreach(print)",
    "df.localCheckpoint()",
    "df.groupBy('id').pivot('id')",
    "spark.range(3).join(df, 'id').head()",
]


@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_on_what_a_pending_write_overwrites_is_refused(cell: Any, numbers: Any, action: str) -> None:
    numbers("x", 3)
    before = cell.files()
    cell.plain('df = spark.read.parquet(at("x"))')
    with pytest.raises(PendingWriteError, match=r"cell 3, line 2: .* reads file:.*/x, .* cell 3, line 1"):
        cell.capture(f'spark.range(9).write.mode("overwrite").parquet(at("x"))\n{action}')
    assert cell.files() == before


def test_fitting_a_model_is_an_action(cell: Any, numbers: Any) -> None:
    pytest.importorskip("numpy")
    numbers("x", 3)
    cell.plain("""\
        from pyspark.ml.feature import StringIndexer
        df = spark.read.parquet(at("x"))
        """)
    with pytest.raises(PendingWriteError, match=r"line 2: .* reads"):
        cell.capture("""\
            spark.range(9).write.mode("overwrite").parquet(at("x"))
            model = StringIndexer(inputCol="id", outputCol="i").fit(df)
            """)
    assert cell.rows("x") == [0, 1, 2]


def test_the_callback_is_free_below_an_rdd(cell: Any, numbers: Any) -> None:
    numbers("x", 3)
    cell.plain('df = spark.read.parquet(at("x"))')

    def deploy(program: Any) -> None:
        program.writes[0].df.write.mode("append").parquet(cell.at("elsewhere"))

    cell.run_pending = deploy
    program = cell.capture(
        """\
        spark.range(2).write.mode("overwrite").parquet(at("x"))
        n = df.rdd.count()
        """,
        deploying=True,
    )
    assert [write.name for write in program.eager.writes] == ["x"]
    assert cell.namespace["n"] == 3
    assert cell.rows("elsewhere") == [0, 1]


def test_an_action_on_something_else_goes_on(cell: Any, numbers: Any) -> None:
    numbers("x", 3)
    program = cell.capture("""\
        df = spark.read.parquet(at("x"))
        df.limit(2).write.parquet(at("out"))
        n = df.count()
        """)
    assert cell.namespace["n"] == 3
    assert len(program.writes) == 1


def test_a_frame_made_before_an_append_reads_what_it_listed_as_in_a_plain_run(
    cell: Any, numbers: Any, spark: Any
) -> None:
    spark.catalog.clearCache()  # with anything cached, Spark may list the files again
    source = """\
        df = spark.read.parquet(at("{x}"))
        spark.range(10, 12).write.mode("append").parquet(at("{x}"))
        n = df.count()
        df.write.parquet(at("{x}_copy"))
        """
    numbers("x", 3), numbers("plain", 3)
    cell.plain(source.replace("{x}", "plain"))
    plain = cell.namespace["n"], cell.rows("plain"), cell.rows("plain_copy")
    program = cell.capture(source.replace("{x}", "x"))
    assert [write.after for write in program.writes] == [(), ()]
    cell.run_pending(program)
    assert (cell.namespace["n"], cell.rows("x"), cell.rows("x_copy")) == plain
    assert plain == (3, [0, 1, 2, 10, 11], [0, 1, 2])


def test_a_cached_frame_sees_appends_so_it_has_to_wait(cell: Any, numbers: Any) -> None:
    numbers("x", 3)
    source = """\
        df = spark.read.parquet(at("x")).cache()
        n = [df.count()]
        spark.range(10, 12).write.mode("append").parquet(at("x"))
        n.append(df.count())
        """
    try:
        with pytest.raises(PendingWriteError, match="line 4"):
            cell.capture(source)
        cell.capture(source, deploying=True)
        assert cell.namespace["n"] == [3, 5]
    finally:
        cell.spark.catalog.clearCache()


def test_appending_to_what_is_read_stays_allowed(cell: Any, numbers: Any) -> None:
    numbers("x", 3)
    program = cell.capture('spark.read.parquet(at("x")).write.mode("append").parquet(at("x"))')
    cell.run_pending(program)
    assert cell.rows("x") == [0, 0, 1, 1, 2, 2]


def test_appending_where_an_earlier_write_reads_a_table_comes_after_it(cell: Any) -> None:
    cell.plain("spark.range(4).withColumn('k', F.col('id') % 2).write.partitionBy('k').saveAsTable('read_numbers')")
    try:
        program = cell.capture("""\
            table = spark.table("read_numbers")
            place = table.inputFiles()[0].rsplit("/", 2)[0]
            table.write.parquet(at("copy"))
            spark.range(9, 10).write.mode("append").parquet(place + "/k=1")
            """)
        assert [write.after for write in program.writes] == [(), (0,)]
    finally:
        cell.plain("spark.sql('drop table read_numbers')")


OVERWRITES = {
    "itself": 'spark.read.parquet(at("x")).write.mode("overwrite").parquet(at("x"))',
    "a partition of itself": 'spark.read.parquet(at("days")).write.mode("overwrite").parquet(at("days/day=1"))',
    "that partition": 'spark.read.parquet(at("days")).where("day = 1").write.mode("overwrite").json(at("days/day=1"))',
    "that partition or others": (
        'spark.read.parquet(at("days")).where("day > id").write.mode("overwrite").json(at("days/day=1"))'
    ),
    "a partition that a subquery may read": (
        'spark.read.parquet(at("days")).where("day = (select max(id) from xs)").write.mode("overwrite")'
        '.json(at("days/day=1"))'
    ),
    "a file of itself": 'spark.read.parquet(at("x")).write.mode("overwrite").parquet(a_file)',
    "a folder that is read in depth": (
        'spark.read.option("recursiveFileLookup", True).parquet(at("deep")).write.mode("overwrite")'
        '.csv(at("deep/in/it"))'
    ),
    "the folder above": 'spark.read.parquet(at("x")).write.mode("overwrite").parquet(at(""))',
    "through a link": 'spark.read.parquet(at("x")).write.mode("overwrite").parquet(at("link/x"))',
    "in a join": 'spark.range(3).join(spark.read.parquet(at("x")), "id").write.mode("overwrite").csv(at("x"))',
    "in a subquery": 'range(9, "id in (select id from xs)").write.mode("overwrite").csv(at("x"))',
    "by an RDD": 'spark.read.parquet(at("x")).rdd.map(tuple).toDF("id long").write.mode("overwrite").csv(at("x"))',
    "by a table": 'spark.table("xt").write.mode("overwrite").parquet(at("x"))',
}


@pytest.mark.matrix(5)
@pytest.mark.parametrize("line", OVERWRITES.values(), ids=OVERWRITES.keys())
@pytest.mark.parametrize("deploying", [True, False])
def test_overwriting_what_the_write_reads_is_refused_and_rows_stay(
    cell: Any, numbers: Any, line: str, deploying: bool
) -> None:
    numbers("x", 3)
    (cell.folder / "link").symlink_to(cell.folder)
    cell.plain("""\
        spark.read.parquet(at("x")).createOrReplaceTempView("xs")
        spark.sql(f"create table xt using parquet location '{at('x')}'")
        range = lambda n, condition: spark.sql(f"select * from range({n}) where {condition}")
        spark.range(4).withColumn("day", F.col("id") % 2).write.partitionBy("day").parquet(at("days"))
        spark.range(4).write.parquet(at("deep/in/it"))
        """)
    cell.namespace["a_file"] = str(next((cell.folder / "x").glob("*.parquet")))
    try:
        with pytest.raises(OverwritesInputError, match=r"cell 3, line 1: the write overwrites .* nothing has been"):
            cell.capture(line, deploying)
    finally:
        cell.plain("spark.sql('drop table xt')")
    assert (cell.rows("x"), cell.rows("days"), cell.rows("deep/in/it")) == ([0, 1, 2], [0, 1, 2, 3], [0, 1, 2, 3])


ALLOWED = {
    "one partition from another": 'days.where("day = 0").drop("day").write.mode("overwrite").parquet(at("days/day=1"))',
    "one partition from others": (
        'days.where("day in (0, 2)").selectExpr("id").write.mode("overwrite").parquet(at("days/day=1"))'
    ),
    "one partition from another by a computed filter": (
        'days.where("day + 1 = 1").selectExpr("id").write.mode("overwrite").parquet(at("days/day=1"))'
    ),
    "a partition that is not there": 'days.select("id").write.mode("overwrite").parquet(at("days/day=9"))',
    "a partition, by a shuffle": (
        'days.groupBy("day", "id").count().where("day = 2").select("id").write.mode("overwrite").json(at("days/day=1"))'
    ),
    "a new folder in what is read": 'x.write.mode("overwrite").parquet(at("x/sub"))',
    "a folder in what is read": 'x.write.mode("overwrite").json(at("x/there"))',
}


@pytest.mark.long
@pytest.mark.parametrize("line", ALLOWED.values(), ids=ALLOWED.keys())
def test_what_spark_rules_out_reading_may_be_overwritten(cell: Any, numbers: Any, line: str) -> None:
    written, home = line.split('at("')[-1].split('"')[0], cell.folder
    for place in ("plain", "captured"):
        cell.folder = home / place
        numbers("x", 3)
        cell.plain("""\
            spark.range(6).withColumn("day", F.col("id") % 3).write.partitionBy("day").parquet(at("days"))
            spark.range(1).write.json(at("x/there"))
            days, x = spark.read.parquet(at("days")), spark.read.parquet(at("x"))
            """)
        if place == "plain":
            cell.plain(line)
            continue
        program = cell.capture(line)
        check_overwrites(program.writes)
        cell.run_pending(program)
    found = [
        sorted(row["id"] for row in cell.spark.read.format("json" if "json" in line else "parquet")
               .schema("id bigint").load(str(home / place / written)).collect())
        for place in ("plain", "captured")
    ]  # fmt: skip
    assert found[0] == found[1]
    assert found[0] != []


def test_a_report_of_other_partitions_comes_before_their_overwriting(cell: Any) -> None:
    cell.plain("""\
        spark.range(6).withColumn("day", F.col("id") % 3).write.partitionBy("day").parquet(at("days"))
        days = spark.read.parquet(at("days"))
        """)
    program = cell.capture("""\
        days.where("day = 0").select("id").write.parquet(at("report"))
        spark.range(70, 72).write.mode("overwrite").parquet(at("days/day=1"))
        """)
    assert [write.after for write in program.writes] == [(), (0,)]
    with pytest.raises(OverwritesInputError, match=r"line 2: .*/day=1, and the write to .*/report \(cell 3, line 1\)"):
        cell.capture("""\
            days.where("day < 2").select("id").write.parquet(at("report"))
            spark.range(70, 72).write.mode("overwrite").parquet(at("days/day=1"))
            """)
    cell.run_pending(program)
    assert (cell.rows("report"), cell.rows("days/day=1")) == ([0, 3], [70, 71])


@pytest.mark.long
def test_partitions_are_replaced_after_a_report_of_the_same_table(cell: Any) -> None:
    source = """\
        days = spark.read.parquet(at("{days}"))
        days.where("id > 0").select("id").write.parquet(at("{days}_report"))
        fresh = days.where("day = 1").withColumn("id", F.col("id") + 100)
        writer = fresh.write.mode("overwrite").option("partitionOverwriteMode", "dynamic").partitionBy("day")
        writer.parquet(at("{days}"))
        """
    found = []
    for days in ("plain", "captured"):
        cell.plain(f"""\
            spark.range(4).withColumn("day", F.col("id") % 2).write.partitionBy("day").parquet(at("{days}"))
            """)
        if days == "plain":
            cell.plain(source.replace("{days}", days))
        else:
            program = cell.capture(source.replace("{days}", days))
            assert [(write.facts.dynamic, write.after) for write in program.writes] == [(False, ()), (True, (0,))]
            check_overwrites(program.writes)
            cell.run_pending(program)
        found.append((cell.rows(days), cell.rows(f"{days}_report")))
    assert found[0] == found[1] == ([0, 2, 101, 103], [1, 2, 3])


def test_an_action_beside_a_new_folder_in_what_it_reads_goes_on(cell: Any, numbers: Any) -> None:
    numbers("x", 3)
    program = cell.capture("""\
        df = spark.read.parquet(at("x"))
        spark.range(9).write.mode("overwrite").json(at("x/new"))
        n = df.count()
        """)
    assert (cell.namespace["n"], len(program.writes)) == (3, 1)
    with pytest.raises(PendingWriteError, match=r"line 2: .* reads"):
        cell.capture("""\
            spark.range(9).write.mode("overwrite").json(at("x/new"))
            n = spark.read.parquet(at("x")).count()
            """)


PARTITIONS = {
    "of a table that is read": """\
        spark.table("apart").select("id").write.mode("overwrite").parquet(at("elsewhere"))
        """,
    "of a table that is written": """\
        spark.read.parquet(at("elsewhere")).selectExpr("id", "1").write.insertInto("apart", overwrite=True)
        """,
    "of a table that is written later": """\
        spark.read.parquet(at("elsewhere")).write.parquet(at("copy"))
        spark.range(3).selectExpr("id", "1").write.insertInto("apart", overwrite=True)
        """,
}


@pytest.mark.parametrize("source", PARTITIONS.values(), ids=PARTITIONS.keys())
def test_partitions_that_lie_elsewhere_are_not_overwritten_under_a_reader(cell: Any, source: str) -> None:
    cell.plain("""\
        spark.sql(f"create table apart (id bigint, k int) using parquet partitioned by (k) location '{at('home')}'")
        spark.sql(f"alter table apart add partition (k = 2) location '{at('elsewhere')}'")
        spark.range(4).selectExpr("id", "2").write.insertInto("apart")
        """)
    try:
        assert cell.rows("elsewhere") == [0, 1, 2, 3]
        with pytest.raises(OverwritesInputError, match="elsewhere"):
            cell.capture(source)
    finally:
        cell.plain("spark.sql('drop table apart')")
    assert cell.rows("elsewhere") == [0, 1, 2, 3]
    assert "copy" not in cell.made()


@pytest.mark.parametrize("read", ["one.parquet", "*.parquet", "{one,two}.parquet", "link.parquet"])
def test_files_that_are_read_by_their_names_do_not_stand_for_their_folder(cell: Any, numbers: Any, read: str) -> None:
    numbers("data", 3)
    part = next((cell.folder / "data").glob("*.parquet"))
    for name in ("one", "two"):
        (cell.folder / f"{name}.parquet").write_bytes(part.read_bytes())
    (cell.folder / "apart").mkdir()
    part.rename(cell.folder / "apart" / "part.parquet")
    (cell.folder / "link.parquet").symlink_to(cell.folder / "apart" / "part.parquet")
    line = f'spark.read.parquet(at("{read}")).write.mode("overwrite").parquet(at("PLACE"))'
    check_overwrites(cell.capture(line.replace("PLACE", "out")).writes)
    with pytest.raises(OverwritesInputError):
        cell.capture(line.replace("PLACE", "apart" if read in ("link.parquet", "*.parquet") else ""))


def test_links_inside_an_input_are_followed(cell: Any, numbers: Any) -> None:
    numbers("real", 3), numbers("file", 5)
    (cell.folder / "linked").mkdir()
    (cell.folder / "linked" / "k=1").symlink_to(cell.folder / "real")
    (cell.folder / "linked" / "k=2").mkdir()
    part = next((cell.folder / "file").glob("*.parquet"))
    (cell.folder / "linked" / "k=2" / "part.parquet").symlink_to(part)
    for place in ("real", "file"):
        with pytest.raises(OverwritesInputError, match=place):
            cell.capture(f'spark.read.parquet(at("linked")).write.mode("overwrite").parquet(at("{place}"))')
    assert (cell.rows("real"), cell.rows("file")) == ([0, 1, 2], [0, 1, 2, 3, 4])


@pytest.mark.long
def test_each_folder_below_an_rdd_counts(cell: Any) -> None:
    cell.plain("""\
        spark.range(40).selectExpr("id", "id as day").write.partitionBy("day").parquet(at("days"))
        """)
    for day in (0, 7, 19, 39):
        with pytest.raises(OverwritesInputError, match=f"day={day}"):
            cell.capture(f"""\
                rows = spark.read.parquet(at("days")).rdd.map(tuple).toDF("id long, day long")
                rows.write.mode("overwrite").parquet(at("days/day={day}"))
                """)
    assert cell.rows("days") == list(range(40))


def test_the_whole_lineage_of_an_rdd_counts(cell: Any, numbers: Any) -> None:
    numbers("x", 3)
    with pytest.raises(OverwritesInputError, match="/x"):
        cell.capture("""\
            parts = [spark.range(1).rdd for _ in range(60)]
            rows = spark.sparkContext.union([spark.read.parquet(at("x")).rdd, *parts]).map(tuple).toDF("id long")
            rows.write.mode("overwrite").parquet(at("x"))
            """)
    assert cell.rows("x") == [0, 1, 2]


@pytest.mark.parametrize(("frames", "captured"), [("static", "dynamic"), ("dynamic", "static")])
def test_whether_partitions_are_replaced_is_asked_of_the_session_of_the_frame(
    cell: Any, frames: str, captured: str
) -> None:
    mode = "spark.sql.sources.partitionOverwriteMode"
    cell.plain(f"""\
        spark.range(4).withColumn("k", F.col("id") % 2).write.partitionBy("k").parquet(at("x"))
        other = spark.newSession()
        other.conf.set("{mode}", "{frames}")
        spark.conf.set("{mode}", "{captured}")
        """)
    source = """\
        other.read.parquet(at("x")).where("k = 1").write.mode("overwrite").partitionBy("k").parquet(at("x"))
        """
    try:
        if frames == "dynamic":
            assert [write.facts.dynamic for write in cell.capture(source).writes] == [True]
        else:
            with pytest.raises(OverwritesInputError):
                cell.capture(source)
    finally:
        cell.spark.conf.unset(mode)
    assert cell.rows("x") == [0, 1, 2, 3]


def test_a_path_with_signs_of_patterns_is_written_as_it_is(cell: Any) -> None:
    program = cell.capture("""\
        spark.range(3).write.parquet(at("a"))
        spark.range(4).write.mode("ignore").parquet(at("b{1}"))
        spark.range(5).write.parquet(at("a*"))
        spark.range(6).write.mode("overwrite").parquet(at("[a]"))
        """)
    assert (program.eager.skipped, [write.after for write in program.writes]) == ((), [()] * 4)
    cell.run_pending(program)
    assert cell.made() == {"a", "b{1}", "a*", "[a]"}
    assert cell.rows("a") == [0, 1, 2]


def test_a_cycle_of_two_sinks_is_refused_and_rows_stay(cell: Any, numbers: Any) -> None:
    numbers("a", 3), numbers("b", 5)
    with pytest.raises(PendingWriteError, match=r"cell 3, line 4: .* reads .*/b, .* cell 3, line 3"):
        cell.capture("""\
            a = spark.read.parquet(at("a"))
            b = spark.read.parquet(at("b"))
            a.write.mode("overwrite").parquet(at("b"))
            b.write.mode("overwrite").parquet(at("a"))
            """)
    assert (cell.rows("a"), cell.rows("b")) == ([0, 1, 2], [0, 1, 2, 3, 4])


def test_overwriting_what_an_earlier_write_reads_is_refused_or_runs_that_first(cell: Any, numbers: Any) -> None:
    numbers("x", 3)
    source = """\
        spark.read.parquet(at("x")).write.parquet(at("copy"))
        spark.range(9).write.mode("overwrite").parquet(at("x"))
        """
    with pytest.raises(OverwritesInputError, match=r"line 2: .*/x, and the write to .*/copy \(cell 3, line 1\) reads"):
        cell.capture(source)
    assert cell.rows("x") == [0, 1, 2]
    program = cell.capture(source, deploying=True)
    cell.run_pending(program)
    assert (cell.rows("copy"), cell.rows("x")) == ([0, 1, 2], list(range(9)))


def test_a_checkpoint_breaks_the_dependency(cell: Any, numbers: Any) -> None:
    numbers("x", 3)
    program = cell.capture("""\
        df = spark.read.parquet(at("x")).where("id > 0").localCheckpoint()
        df.write.mode("overwrite").parquet(at("x"))
        """)
    cell.run_pending(program)
    assert cell.rows("x") == [1, 2]


def test_replacing_partitions_of_the_own_path_stays_allowed(cell: Any) -> None:
    cell.plain("""\
        spark.range(4).withColumn("k", F.col("id") % 2).write.partitionBy("k").parquet(at("x"))
        """)
    program = cell.capture("""\
        odd = spark.read.parquet(at("x")).where("k = 1").withColumn("id", F.col("id") + 100)
        odd.write.mode("overwrite").option("partitionOverwriteMode", "dynamic").partitionBy("k").parquet(at("x"))
        """)
    assert [write.facts.dynamic for write in program.writes] == [True]
    cell.run_pending(program)
    assert cell.rows("x") == [0, 2, 101, 103]


def test_the_check_of_a_whole_job_sees_every_reader(cell: Any, numbers: Any) -> None:
    numbers("x", 3)
    numbers("x/day=1", 3)
    (cell.folder / "x/_SUCCESS").unlink()
    [part.unlink() for part in (cell.folder / "x").glob("*.parquet")]
    program = cell.capture('spark.range(9).write.mode("overwrite").parquet(at("x/day=1"))')
    check_overwrites(program.writes)
    check_overwrites(program.writes, {"other": [Source(path=f"file:{cell.at('y')}")]})
    readers = {"total": sources_of(cell.spark.read.parquet(cell.at("x"))._jdf.queryExecution().analyzed())}
    with pytest.raises(OverwritesInputError, match=r"/x/day=1, and the result total reads file:.*/x, "):
        check_overwrites(program.writes, readers)
    appended = cell.capture('spark.range(9).write.mode("append").parquet(at("x/day=1"))')
    check_overwrites(appended.writes, readers)


def test_an_error_while_deploying_comes_out_of_the_line(cell: Any) -> None:
    def fail(program: Any) -> None:
        raise RuntimeError(f"{len(program.writes)} writes, {program.writes[0].name}, {program.complete}")

    cell.run_pending = fail
    with pytest.raises(RuntimeError, match="1 writes, out, True"):
        cell.capture(
            """\
            spark.range(5).write.parquet(at("out"))
            spark.read.parquet(at("out"))
            """,
            deploying=True,
        )


def test_the_callback_may_use_spark_without_being_captured(cell: Any) -> None:
    seen: list[Any] = []

    def deploy(program: Any) -> None:
        program.writes[0].df.write.parquet(cell.at("out"))
        seen.append(cell.spark.read.parquet(cell.at("out")).count())

    cell.run_pending = deploy
    program = cell.capture(
        """\
        spark.range(5).write.parquet(at("out"))
        df = spark.read.parquet(at("out"))
        """,
        deploying=True,
    )
    assert seen == [5]
    assert [call.method for call in program.lineage.calls] == ["range", "parquet"]
