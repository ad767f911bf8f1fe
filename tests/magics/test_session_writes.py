"""Writes of the session mode: they read what earlier lines have kept, and leave what plain Spark's writes leave."""

from __future__ import annotations

import re
import traceback
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from flinkmagic.planning.stage_handles import BoundaryStageHandle
from flinkmagic.reuse import source_columns
from flinkmagic.reuse.retained_results import DEFAULT_BYTES, retained_results
from flinkmagic.session import retained
from flinkmagic.session.actions.keeping_budget import KeepingBudget

FRAME = """
lines = spark.read.text(f'{at}/lines')
parsed = lines.selectExpr(*[f"regexp_extract(value, '(.*) (.*) (.*)', {n}) AS {c}" for n, c in enumerate('abc', 1)])
names = spark.range(20).selectExpr("concat('b', id) AS b", "id % 4 AS part")
df = parsed.dropDuplicates().join(names, 'b')
"""


@pytest.fixture
def on(notebook: Any, tmp_path: Path) -> Any:
    """A notebook with the mode on, `at`, its folder, and `df` over a text file."""
    texts = [f"a{number % 30} b{number % 20} c{number // 2}" for number in range(20_000)]
    (tmp_path / "lines").mkdir()
    for file in range(2):
        (tmp_path / "lines" / f"{file}.txt").write_text("\n".join(texts[file::2]))
    notebook.names["at"] = str(tmp_path)
    notebook.run("%flinkgraph on")
    notebook.run(FRAME)
    yield notebook
    notebook.run("%flinkgraph off")


def reused(cell: Any) -> list[int]:
    """How many stages each of a cell's lines has reused."""
    assert cell.error is None
    print(cell.stderr)
    found = [line for line in cell.stderr.splitlines() if " · line " in line]
    return [int((re.findall(r"reused (\d+) stage", line) or [0])[0]) for line in found]


def kept(spark: Any) -> set[str]:
    """The keys of the rows that are kept."""
    return {one.key for one in retained(spark) if one.kind == "boundary"}


def keep(notebook: Any) -> None:
    """Run actions until the rows of `df` are kept."""
    for key in "ab":
        notebook.run(f"df.groupBy('{key}').count().collect()")


def test_a_write_reads_the_rows_that_actions_have_kept(on, spark) -> None:
    keep(on)
    (key,) = kept(spark)
    expected = on.run("sorted(map(tuple, df.groupBy('c').count().collect()))").value
    assert reused(on.run("df.groupBy('c').count().write.parquet(f'{at}/sums')")) == [4]  # the sums, too
    assert reused(on.run("df.groupBy('c', 'part').count().write.parquet(f'{at}/more')")) == [3]
    assert reused(on.run("df.where(\"c = 'c3'\").write.json(f'{at}/some')")) == [3]
    assert kept(spark) == {key}
    found = on.run("sorted(map(tuple, spark.read.parquet(f'{at}/sums').collect()))").value
    assert found == expected


def test_actions_read_what_a_write_has_left(on, spark) -> None:
    on.run("df.groupBy('a').count().write.parquet(f'{at}/first')")
    assert kept(spark) == set()
    on.run("df.groupBy('b').count().write.parquet(f'{at}/second')")
    (key,) = kept(spark)
    assert reused(on.run("df.groupBy('b').count().collect()")) == [4]
    assert reused(on.run("df.groupBy('c').count().collect()")) == [3]
    assert kept(spark) == {key}


@pytest.mark.long
def test_without_retention_a_write_keeps_nothing(on, spark) -> None:
    on.run("%config FlinkMagics.retain = 'none'")
    try:
        keep(on)
        assert reused(on.run("df.groupBy('b').count().write.parquet(f'{at}/out')")) == [0]
        assert retained(spark) == []
    finally:
        on.run("%config FlinkMagics.retain = 'job'")


WRITES = (
    "df.groupBy('c').count().write.mode('overwrite').{}",
    "df.write.mode('overwrite').{}",
    "df.write.mode('overwrite').partitionBy('part').{}",
    "parsed.write.mode('overwrite').{}",
    "df.orderBy('a', 'b', 'c').write.mode('overwrite').{}",
    "df.repartition(3).write.mode('overwrite').{}",
)


@pytest.mark.long
@pytest.mark.parametrize("smallest", ["20k", pytest.param("1m", marks=pytest.mark.long)])
def test_a_write_makes_as_many_files_as_plain_sparks(on, spark, tmp_path, smallest) -> None:
    setting = "spark.sql.adaptive.coalescePartitions.minPartitionSize"
    spark.conf.set(setting, smallest)
    before = spark.conf.get("spark.sql.shuffle.partitions")
    try:
        keep(on)
        for write in WRITES:
            on.run("%flinkgraph on")
            for _ in range(2):  # the second one reads what the first has left
                assert on.run(write.format("csv(f'{at}/driven')")).error is None
                driven = files(tmp_path / "driven")
            on.run("%flinkgraph off")
            spark.conf.set("spark.sql.shuffle.partitions", 50)
            assert on.run(write.format("csv(f'{at}/plain')")).error is None
            spark.conf.set("spark.sql.shuffle.partitions", before)
            plain = files(tmp_path / "plain")
            assert {folder: len(rows) for folder, rows in driven.items()} == {
                folder: len(rows) for folder, rows in plain.items()
            }, write
            if "orderBy" in write:
                assert "".join(driven["."]) == "".join(plain["."])
    finally:
        spark.conf.unset(setting)
        spark.conf.set("spark.sql.shuffle.partitions", before)


def files(folder: Path) -> dict[str, list[str]]:
    """By folder below this one, the texts of its files in order."""
    found: dict[str, list[str]] = {}
    for file in sorted(folder.rglob("part-*")):
        found.setdefault(str(file.parent.relative_to(folder)), []).append(file.read_text())
    return found


@pytest.mark.long
def test_what_a_write_overwrites_it_does_not_read_from_kept_rows(on, spark) -> None:
    came_to = []
    for folder in ("driven", "plain"):
        on.run(f"place = f'{{at}}/{folder}'\nparsed.write.parquet(place)")
        on.run("own = spark.read.parquet(place).groupBy('a').agg(F.count('*').alias('n'))")
        for number in range(3):
            on.run(f"own.groupBy(F.expr('n % {number + 2}')).count().collect()")
        assert kept(spark)
        if folder == "plain":
            on.run("%flinkgraph off")
        cell = on.run("own.write.mode('overwrite').parquet(place)")
        left = on.run("spark.read.parquet(place).collect()")
        came_to.append((type(cell.error), left.value and sorted(left.value), type(left.error)))
    assert came_to[0] == came_to[1]


@pytest.mark.long
def test_a_write_reads_no_rows_of_files_that_an_earlier_write_has_replaced(on, spark) -> None:
    on.run("parsed.write.parquet(f'{at}/data')")
    on.run("def read(): return spark.read.parquet(f'{at}/data').groupBy('a').agg(F.count('*').alias('n'))")
    on.run("own = read()")
    for number in range(3):
        on.run(f"own.groupBy(F.expr('n % {number + 2}')).count().collect()")
    assert kept(spark)
    on.run("parsed.limit(10).write.mode('overwrite').parquet(f'{at}/data')")
    on.run("own = read()")
    assert on.run("own.write.parquet(f'{at}/out')").error is None
    assert on.run("spark.read.parquet(f'{at}/out').agg(F.sum('n')).first()[0]").value == 10


def test_the_parts_of_a_small_aggregate_are_those_of_plain_spark(on, spark) -> None:
    """Of a few rows Spark merges all partitions, and then draws other rows than from each of them."""
    plain = spark.range(1000).groupBy(F.col("id") % 50).count().randomSplit([0.5, 0.5], 3)
    on.run("from pyspark.sql import functions as F")
    on.run("parts = spark.range(1000).groupBy(F.col('id') % 50).count().randomSplit([0.5, 0.5], 3)")
    drawn = on.run("[sorted(map(tuple, part.collect())) for part in parts]").value
    assert drawn == [sorted(map(tuple, part.collect())) for part in plain]


def test_the_parts_of_a_random_split_are_written_without_overlap(on) -> None:
    on.run("grouped = spark.range(0, 20000, 1, 4).groupBy((F.col('id') % 9000).alias('k')).count()")
    on.run("train, test = grouped.randomSplit([0.7, 0.3], 7)")
    first = on.run("train.write.parquet(f'{at}/train')")
    assert first.error is None
    (card,) = first.stderr.splitlines()
    assert re.fullmatch(r"write.* · line 1 · .*s · plain Spark: it asks how shuffled rows lie in .*", card)
    for _ in range(2):
        on.run("grouped.agg(F.sum('count')).collect()")
    on.run("test.write.parquet(f'{at}/test')")
    parts = "spark.read.parquet(f'{at}/train').union(spark.read.parquet(f'{at}/test'))"
    assert on.run(f"{parts}.agg(F.count('k'), F.countDistinct('k')).first()[:]").value == (9000, 9000)


@pytest.mark.long
def test_a_write_that_fails_only_while_rows_are_kept_runs_again_without(on, spark, monkeypatch) -> None:
    on.run("df.groupBy('a').count().write.parquet(f'{at}/first')")

    def failing(*_: Any) -> None:
        raise RuntimeError("no room")

    monkeypatch.setattr(BoundaryStageHandle, "run", failing)
    cell = on.run("df.groupBy('b').count().write.parquet(f'{at}/second')")
    assert cell.error is None
    assert "df could not be kept for later actions" in cell.stderr
    assert cell.stderr.count("write.parquet(f'{at}/second') · line 1") == 1
    assert "times" not in cell.stderr
    assert on.run("spark.read.parquet(f'{at}/second').count()").value == 20
    assert kept(spark) == set()


def test_pyspark_logs_a_refused_write_once(on, heard) -> None:
    cell = on.run("spark.sql('CREATE TABLE refused AS SELECT * FROM no_such_table')")
    assert "TABLE_OR_VIEW_NOT_FOUND" in str(cell.error)
    assert heard == [("[TABLE_OR_VIEW_NOT_FOUND", "Py4JJavaError")]


@pytest.mark.parametrize(
    "write",
    ["df.write.parquet(f'{at}/out')", "df.write.save(f'{at}/out')", "df.write.saveAsTable('broken')",
     "df.write.jdbc('jdbc:derby:memory:broken;create=true', 'broken')",
     "spark.sql('CREATE TABLE broken USING parquet AS SELECT * FROM df')"],
)  # fmt: skip
def test_a_write_fails_in_the_words_of_plain_pyspark(on, tmp_path, write) -> None:
    (tmp_path / "broken.parquet").write_text("no parquet")
    on.run(f"df = spark.read.schema('id long').parquet('{tmp_path}/broken.parquet').groupBy('id').count()")
    on.run("df.createOrReplaceTempView('df')")
    cells = [on.run(write)]
    on.run("%flinkgraph off")
    cells.append(on.run(write))
    driven, plain = [re.sub(r"\bo\d+\.", "o.", str(cell.error).split("\n")[0]) for cell in cells]
    assert plain.startswith("An error occurred while calling o.")
    assert driven == plain
    assert "FAILED" in cells[0].stderr, "it had a job"


def told(cell: Any) -> str:
    """What a cell's last line says besides its figures."""
    assert cell.error is None
    return [line for line in cell.stderr.splitlines() if " · line " in line][-1]


@pytest.mark.long
def test_a_line_says_that_it_has_paid_for_later_ones(on) -> None:
    on.run("df.groupBy('a').count().collect()")
    assert told(on.run("df.groupBy('b').count().collect()")).endswith(" · kept df for later lines")
    assert "later lines" not in told(on.run("df.groupBy('c').count().collect()"))
    on.run("other = parsed.groupBy('a').agg(F.count('*').alias('n'))\nother.groupBy('n').count().collect()")
    cell = on.run("other.groupBy(F.expr('n % 2')).count().write.csv(f'{at}/out')")
    assert told(cell).endswith(" · kept other for later lines")


def test_a_line_says_why_kept_rows_are_not_used(on, spark) -> None:
    store = retained_results(spark.sparkContext)

    def why(number: int) -> str:
        """What a new sum says of the rows that were kept until now; it keeps them again."""
        said = told(on.run(f"df.groupBy(F.expr('part % {number}')).count().collect()")).rpartition(" · ")[2]
        return said.removeprefix("the kept rows of df are not used: ").removesuffix("; kept df for later lines")

    keep(on)
    store.drop(lambda one: True)
    assert why(2) == "they were released"
    assert "reused" in why(3)
    store.set_bound(0)
    store.set_bound(DEFAULT_BYTES)
    assert why(4) == "they were evicted to make room"
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        assert why(5) == "a setting has changed"
    finally:
        spark.conf.unset("spark.sql.session.timeZone")


@pytest.mark.long
def test_a_line_says_which_file_has_changed(on, tmp_path) -> None:
    keep(on)
    (tmp_path / "lines" / "0.txt").write_text("a1 b1 c1\n")
    assert "the kept rows of df are not used: 0.txt changed" in told(on.run("df.groupBy('c').count().collect()"))


def test_a_write_reads_kept_columns_of_text_and_makes_the_same_files(on, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(source_columns, "LEAST_BYTES", 0)
    monkeypatch.setattr(KeepingBudget, "room", lambda _self, expected: 1000.0)
    (tmp_path / "rows.csv").write_text("".join(f"{number},{number % 5},text {number}\n" for number in range(20_000)))
    on.run("size = spark.conf.get('spark.sql.files.maxPartitionBytes')")
    on.run("spark.conf.set('spark.sql.files.maxPartitionBytes', 100_000)")
    try:
        on.run("rows = spark.read.csv(f'{at}/rows.csv', schema='id INT, k INT, t STRING')")
        on.run("%flinkgraph off")
        write = "rows.where('k > 1').select('id', 'k').write.parquet(f'{at}/%s')"
        on.run(write % "plain")
        on.run("%flinkgraph on")
        for action in ("sum('id')", "max('id')"):
            on.run(f"rows.groupBy('k').{action}.collect()")
        cell = on.run(write % "ours")
    finally:
        on.run("spark.conf.set('spark.sql.files.maxPartitionBytes', size)")
    assert cell.error is None
    assert "reads kept columns of rows.csv" in cell.stderr
    files = [sorted((tmp_path / way).glob("part-*")) for way in ("plain", "ours")]
    assert len(files[0]) == len(files[1]) > 1
    plain, ours = (on.run(f"sorted(map(tuple, spark.read.parquet(f'{{at}}/{way}').collect()))").value
                   for way in ("plain", "ours"))  # fmt: skip
    assert plain == ours
    assert len(ours) == 12_000


@pytest.mark.long
def test_a_listener_hears_of_a_write_that_follows_its_registration(on, spark, listener_class) -> None:
    """Also where an earlier write, and an action, have been planned before."""
    manager, listener = spark._jsparkSession.listenerManager(), listener_class.newInstance()
    on.run("df.groupBy('a').count().write.parquet(f'{at}/before')\ndf.groupBy('a').count().count()")
    manager.register(listener)
    try:
        on.run("df.groupBy('b').count().write.parquet(f'{at}/after')")
        spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        assert listener.next() == "command"
    finally:
        manager.unregister(listener)


@pytest.mark.long
@pytest.mark.parametrize(
    "made",
    [
        "repartition('a')",
        "repartition('a').sortWithinPartitions('c', 'b')",
        "repartition(4).coalesce(2)",
        "join(parsed.where(\"c > 'c5'\").groupBy('a').count(), 'a')",
    ],
)
def test_rows_that_actions_have_kept_are_written_to_as_many_files_and_in_the_order_of_plain_sparks(
    on, tmp_path, made
) -> None:
    on.run(f"shared = parsed.dropDuplicates().{made}")
    on.run("shared.groupBy('b').count().collect()\nshared.groupBy('c').count().collect()")
    (wrote,) = reused(on.run("shared.write.csv(f'{at}/driven')"))
    assert wrote > 0
    on.run("%flinkgraph off\nshared.write.csv(f'{at}/plain')\n%flinkgraph on")
    driven, plain = files(tmp_path / "driven")["."], files(tmp_path / "plain")["."]
    assert len(driven) == len(plain) == (2 if "coalesce" in made else 1)
    if "sort" in made:
        assert driven == plain
    assert sorted("".join(driven).splitlines()) == sorted("".join(plain).splitlines())


def test_a_write_over_its_own_input_is_plain_sparks_and_only_the_card_tells(on) -> None:
    on.run("spark.range(10).write.parquet(f'{at}/own')\nown = spark.read.parquet(f'{at}/own')")
    # Spark computes all stages before it deletes, except the last.
    on.run("more = own.union(spark.range(5, 13)).groupBy('id').count()")
    cell = on.run("more.write.mode('overwrite').parquet(f'{at}/own')")
    assert cell.error is None
    (card,) = cell.stderr.splitlines()
    assert re.fullmatch(r"write.* · line 1 · .*s · plain Spark: it overwrites what it reads", card)
    assert on.run("spark.read.parquet(f'{at}/own').agg(F.count('id'), F.sum('count')).first()[:]").value == (13, 18)


FAILING = """
@F.udf('long')
def failing(x):
    return 1 // (x - 3)
"""


@pytest.mark.parametrize("stages", ["", ".groupBy('y').count()"], ids=["one stage", "two stages"])
def test_the_traceback_of_a_write_shows_the_line_of_the_users_function_that_raised(on, stages) -> None:
    on.run(FAILING)
    write = (
        f"spark.range(9).select(failing('id').alias('y')){stages}.write.mode('overwrite').parquet(f'{{at}}/failing')"
    )
    traces = []
    for mode in ("on", "off"):
        on.run(f"%flinkgraph {mode}")
        error = on.run(write).error
        assert "ZeroDivisionError" in str(error)
        frames = [(one.f_code.co_name, number) for one, number in traceback.walk_tb(error.__traceback__)]
        traces.append([one for one in frames if one[0] == "failing"])
    assert traces[0] == traces[1]
