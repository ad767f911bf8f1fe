"""Rows that are brought up to date from added files are those that plain Spark computes of all files."""

from __future__ import annotations

import shutil
from collections import Counter

import pytest
from pyspark.sql import functions as F

import flinkmagic
from flinkmagic.options import JobOptions
from flinkmagic.reuse import append_refresh
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.session import SessionActions

FACT = [
    "id", "id % 7 AS k", "id % 50 AS d", "double(id) / 3 AS v", "cast(id % 13 AS decimal(10, 2)) AS p",
    "concat('s', id % 5) AS s", "id % 3 = 0 AS b",
]  # fmt: skip
DIM = ["id AS d", "concat('n', id % 9) AS name"]
UP_TO_DATE = "brought up to date from 1 added file"
IN_FULL = "not brought up to date from added files, but computed in full: "

REFRESHED = {
    "sums": "fact.groupBy('k').agg(F.sum('id'), F.sum('p'), F.count('*'), F.min('s'), F.max('v'), F.bool_or('b'))",
    "join with a broadcast": "fact.join(F.broadcast(dim), 'd').groupBy('name').agg(F.sum('id'))",
    "sort merge join": "fact.hint('merge').join(dim, 'd').groupBy('name').agg(F.sum('id'), F.avg('v'))",
    "averages": "fact.groupBy('k').agg(F.avg('v'), F.stddev('v'), F.corr('v', 'id'), F.variance('v'))",
    "all rows": "fact.agg(F.sum('id'), F.count('*'))",
    "distinct": "fact.select('k', 's').distinct()",
    "distinct counts": "fact.groupBy('k').agg(F.countDistinct('s'), F.sum('id'))",
    "sketches": "fact.groupBy('k').agg(F.approx_count_distinct('id'), F.percentile('id', 0.5))",
    "filter": "fact.where('v > 10').groupBy('s').count()",
    "outer join with a broadcast": "fact.join(F.broadcast(dim), 'd', 'left').groupBy('name').agg(F.sum('id'))",
    "semi join": "fact.join(F.broadcast(dim.where('d < 20')), 'd', 'semi').groupBy('k').agg(F.sum('id'))",
    "anti join": "fact.join(F.broadcast(dim.where('d < 20')), 'd', 'anti').groupBy('k').agg(F.sum('id'))",
    "left outer join": "fact.hint('merge').join(dim.where('d < 20'), 'd', 'left').groupBy('name').agg(F.sum('id'))",
    "right outer join": "dim.hint('merge').join(fact, 'd', 'right').groupBy('name').agg(F.sum('id'))",
    "hash join": "dim.join(fact.hint('shuffle_hash'), 'd').groupBy('name').agg(F.sum('id'))",
    "union": "fact.select('k', 'id').union(dim.selectExpr('d', 'd')).groupBy('k').agg(F.sum('id'))",
    "union of both": "fact.select('k', 'id').union(fact.selectExpr('d', 'id')).groupBy('k').agg(F.sum('id'))",
    "function": "fact.select('k', F.udf(lambda x: 2 * x, 'long')('id').alias('u')).groupBy('k').agg(F.sum('u'))",
    "first rows of groups": "fact.groupBy('k').agg(F.sum('id').alias('t')).orderBy(F.desc('t')).limit(3)",
    "rollup": "fact.rollup('k', 's').agg(F.sum('id'))",
    "explode": "fact.select(F.explode(F.sequence(F.lit(1), F.col('k') + 1)).alias('e')).groupBy('e').count()",
    "repartition": "fact.repartition(3).groupBy('s').count()",
    "groups as frames": "fact.groupBy('k').applyInPandas(lambda p: p[['k']][:1].assign(n=len(p)), 'k long, n long')",
    "groups of groups": "fact.groupBy('k', 's').agg(F.sum('id').alias('t')).groupBy('s').agg(F.max('t'), F.avg('t'))",
}
"""Queries of which all that reads the added file is brought up to date."""

FULL = {
    "first": ("fact.groupBy('k').agg(F.first('k'))", "first may depend on the order of rows"),
    "list": ("fact.groupBy('k').agg(F.size(F.collect_list('id')))", "collect_list may depend on the order of rows"),
    "maximum by": ("fact.groupBy('k').agg(F.max_by('s', 'id'))", "max_by may depend on the order of rows"),
    "limit": ("fact.limit(5).agg(F.count('*'))", "LocalLimit needs all rows"),
    "sort": ("fact.orderBy('id').where('id > 10')", "its rows are put in order"),
    "right side of an outer join": (
        "dim.hint('merge').join(fact.hint('merge'), 'd', 'left').groupBy('name').agg(F.sum('id'))",
        "the right side of a left outer join has grown",
    ),
    "full outer join": (
        "fact.hint('merge').join(dim, 'd', 'full').groupBy('name').agg(F.sum('id'))",
        "the left side of a full outer join has grown",
    ),
    "right side of an anti join": (
        "dim.hint('merge').join(fact.where('id >= 2020').hint('merge'), 'd', 'anti').groupBy('name').count()",
        "the right side of a left anti join has grown",
    ),
    "broadcast side": (
        "dim.join(F.broadcast(fact), 'd').groupBy('name').agg(F.sum('id'))", "the broadcast side of a join has grown",
    ),
    "subquery": (
        "fact.where(F.expr('id > (SELECT avg(id) FROM facts)')).groupBy('k').count()", "a subquery has grown",
    ),
    "batches of rows": (
        "fact.select('k', F.pandas_udf(lambda s: s + 1, 'long')('id').alias('u')).groupBy('k').agg(F.sum('u'))",
        "a function is called with batches of rows",
    ),
}  # fmt: skip
"""Queries of which a stage is computed in full, and why."""


@pytest.fixture(scope="module")
def tables(spark, tmp_path_factory):
    """Two tables, and what is added to the first."""
    folder = tmp_path_factory.mktemp("tables")
    for name, rows, columns in (
        ("fact", spark.range(0, 2000, 1, 4), FACT),
        ("more", spark.range(2000, 2100, 1, 1), FACT),
        ("dim", spark.range(0, 40, 1, 2), DIM),
    ):
        rows.selectExpr(*columns).write.parquet(str(folder / name))
    return folder


@pytest.fixture
def folder(session, tables, tmp_path):
    shutil.copytree(tables / "fact", tmp_path / "fact")
    session.namespace |= {"paths": str(tmp_path / "fact"), "dims": str(tables / "dim")}
    return tmp_path / "fact"


@pytest.fixture
def append(tables):
    """Add a file with a hundred rows to a folder."""

    def add(folder, name="part-99999-added.parquet"):
        (file,) = (tables / "more").glob("*.parquet")
        shutil.copy(file, folder / name)

    return add


def reading(query, fact="spark.read.parquet(paths)"):
    """Return lines that read the tables anew, as a cell that runs again does."""
    lines = (f"fact = {fact}", "fact.createOrReplaceTempView('facts')", "dim = spark.read.parquet(dims)")
    return "\n".join([*lines, f"({query}).collect()"])


def rows(answer):
    """Return rows as a list that does not depend on their order, nor on how sums of doubles were rounded."""
    return sorted((tuple(f"{x:.9g}" if isinstance(x, float) else x for x in row) for row in answer), key=repr)


@pytest.mark.long
@pytest.mark.parametrize("query", REFRESHED.values(), ids=REFRESHED)
def test_added_rows_are_put_beside_those_that_are_there(session, folder, append, query) -> None:
    session.cell(reading(query))
    append(folder)
    assert rows(session.cell(reading(query))) == rows(session.plain(reading(query)))
    assert session.report.note == UP_TO_DATE


@pytest.mark.matrix(6)
@pytest.mark.parametrize(("query", "why"), FULL.values(), ids=FULL)
def test_what_needs_all_rows_is_computed_in_full(session, folder, append, query, why) -> None:
    session.cell(reading(query))
    append(folder)
    assert rows(session.cell(reading(query))) == rows(session.plain(reading(query)))
    assert session.report.note.removeprefix(f"{UP_TO_DATE}; ") == IN_FULL + why


def test_only_added_rows_are_read_joined_and_shuffled(session, folder, append) -> None:
    query = REFRESHED["sort merge join"]
    session.cell(reading(query))
    append(folder)
    session.cell(reading(query))
    job = session.report.graph.jobs[-1]
    added = {vertex for vertex, facts in job.snapshot().facts.items() if ("reads", "1 added file") in facts}
    read = Counter[str]()
    for task in job.tasks():
        read[task.vertex_id] += task.rows_in or 0
    assert read.keys() == added  # what reads the other table alone does not run
    assert sorted(read.values()) == [100, 100 + 40]


@pytest.mark.matrix(2)
@pytest.mark.parametrize("change", ["rewritten", "deleted"])
def test_files_that_are_others_are_read_again(session, folder, append, change) -> None:
    query = REFRESHED["sums"]
    session.cell(reading(query))
    append(folder)
    file = min(folder.glob("part-00002*"))
    if change == "deleted":
        file.unlink()
    else:
        shutil.copy(folder / "part-99999-added.parquet", file)
        file.with_name(f".{file.name}.crc").unlink()
    assert rows(session.cell(reading(query))) == rows(session.plain(reading(query)))
    assert session.report.note == f"{IN_FULL}{file.name} changed"


def test_other_folders_have_nothing_to_do_with_each_other(session, folder, tables) -> None:
    query = REFRESHED["sums"]
    session.cell(reading(query))
    session.namespace["paths"] = str(tables / "more")
    assert rows(session.cell(reading(query))) == rows(session.plain(reading(query)))
    assert session.report.note == ""


@pytest.mark.long
def test_it_goes_on_from_what_was_brought_up_to_date(session, folder, append, monkeypatch) -> None:
    monkeypatch.setattr(append_refresh, "MOST_PARTS", 3)
    query, notes = REFRESHED["sort merge join"], []
    for number in range(5):
        assert rows(session.cell(reading(query))) == rows(session.plain(reading(query)))
        notes.append(session.report.note)
        append(folder, f"part-9999{number}-added.parquet")
    assert notes == ["", UP_TO_DATE, UP_TO_DATE, IN_FULL + append_refresh.TOO_MANY_PARTS, UP_TO_DATE]
    assert rows(session.cell(reading(query))) == rows(session.plain(reading(query)))


@pytest.mark.long
def test_another_query_of_the_same_join_adds_what_was_added_before(session, folder, append) -> None:
    one, other = REFRESHED["sort merge join"], REFRESHED["sort merge join"].replace("F.avg", "F.max")
    session.cell(reading(one))
    session.cell(reading(other))
    append(folder)
    session.cell(reading(one))
    assert rows(session.cell(reading(other))) == rows(session.plain(reading(other)))
    assert session.report.note == UP_TO_DATE
    facts = session.report.graph.jobs[-1].snapshot().facts.values()
    assert sum(("reads", "1 added file") in one for one in facts) == 1  # the join; the shuffle is there


def test_many_small_files_run_in_no_more_tasks_than_planned(session, folder, append) -> None:
    query = REFRESHED["sums"]
    session.cell(reading(query))
    for number in range(9):
        append(folder, f"part-9999{number}-added.parquet")
    assert rows(session.cell(reading(query))) == rows(session.plain(reading(query)))
    assert session.report.note == "brought up to date from 9 added files"


@pytest.mark.long
@pytest.mark.parametrize("where", ["", ".where('year = 2024')", ".where('year = 2025')"])
def test_a_partitioned_folder_grows(session, spark, tables, tmp_path, where) -> None:
    spark.read.parquet(str(tables / "fact")).withColumnRenamed("k", "year").selectExpr(
        "id", "2018 + year AS year", "s"
    ).write.partitionBy("year").parquet(str(tmp_path / "by_year"))
    session.namespace |= {"paths": str(tmp_path / "by_year"), "dims": str(tables / "dim")}
    query = f"fact{where}.groupBy('year', 's').agg(F.sum('id'))"
    session.cell(reading(query))
    shutil.copytree(tmp_path / "by_year" / "year=2024", tmp_path / "by_year" / "year=2025")
    assert rows(session.cell(reading(query))) == rows(session.plain(reading(query)))
    is_read = where != ".where('year = 2025')"  # else nothing was computed before
    assert session.report.note.startswith("brought up to date") == is_read


def test_a_list_of_files_grows(session, folder, append) -> None:
    query, listed = "fact.groupBy('k').agg(F.sum('id'))", "spark.read.parquet(*files)"
    session.namespace["files"] = sorted(map(str, folder.glob("*.parquet")))
    session.cell(reading(query, listed))
    append(folder)
    session.namespace["files"] = sorted(map(str, folder.glob("*.parquet")))
    assert rows(session.cell(reading(query, listed))) == rows(session.plain(reading(query, listed)))
    assert session.report.note == UP_TO_DATE


@pytest.mark.matrix(2)
@pytest.mark.parametrize("column", ["7", "x"])
def test_an_inferred_schema_may_change(session, folder, tmp_path, column) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.csv").write_text("k,n\n" + "".join(f"{i % 3},{i}\n" for i in range(50)))
    session.namespace["texts"] = str(tmp_path / "texts")
    read = "spark.read.csv(texts, header=True, inferSchema=True)"
    query = "fact.groupBy('n').agg(F.count('k'))"
    session.cell(reading(query, read))
    (tmp_path / "texts" / "b.csv").write_text(f"k,n\n1,{column}\n")
    assert rows(session.cell(reading(query, read))) == rows(session.plain(reading(query, read)))
    assert session.report.note == (UP_TO_DATE if column == "7" else "")


def test_full_switches_it_off(session, folder, append) -> None:
    session.actions = SessionActions(JobOptions(retain="session", refresh="full"))
    query = REFRESHED["sums"]
    session.cell(reading(query))
    append(folder)
    assert rows(session.cell(reading(query))) == rows(session.plain(reading(query)))
    assert session.report.note == ""


KEPT = {
    "join": "fact.hint('merge').join(dim, 'd').select('id', 'k', 'name')",
    "repartition": "fact.repartition(3).where('k < 5').select('id', 'k', 's')",
    "repartition by key": "fact.repartition(3, 'k').select('id', 'k', 'v')",
    "union": "fact.repartition(3).select('id', 'k').union(dim.selectExpr('d', 'd'))",
}
"""DataFrames that the second action keeps."""


@pytest.mark.matrix(4)
@pytest.mark.parametrize("frame", KEPT.values(), ids=KEPT)
def test_kept_rows_are_brought_up_to_date(session, folder, append, frame) -> None:
    read = "fact = spark.read.parquet(paths)\ndim = spark.read.parquet(dims)\n"
    for number in range(3):
        session.cell(f"{read}frame = {frame}\nframe.count()")
        for query in ("frame.groupBy('k').agg(F.max('id'))", "frame", "frame.where('k = 3')"):
            action = f"{query}.collect()"
            assert rows(session.cell(action)) == rows(session.plain(action))
            if "groupBy" in query:
                told = session.report.note.split("; ")
                assert told == [UP_TO_DATE] * (number > 0) + ["kept a DataFrame for later lines"]
            else:
                assert session.report.reused
        append(folder, f"part-9999{number}-added.parquet")


@pytest.mark.long
def test_a_graph_that_runs_again_brings_up_to_date_what_its_sinks_share(spark, folder, append, tmp_path) -> None:
    def run():
        with flinkmagic.capture(spark, name="grown") as program:
            fact = spark.read.parquet(str(folder)).withColumn("u", F.udf(lambda x: 2 * x, "long")("id"))
            fact.groupBy("k").agg(F.sum("u")).write.mode("overwrite").parquet(str(tmp_path / "sums"))
            fact.where("u > 100").groupBy("s").count().write.mode("overwrite").parquet(str(tmp_path / "counts"))
        graph = flinkmagic.compile(program, parallelism=2)
        job = graph.run()
        assert job.status is JobStatus.FINISHED
        plain = fact.groupBy("k").agg(F.sum("u")).collect(), fact.where("u > 100").groupBy("s").count().collect()
        written = [spark.read.parquet(str(tmp_path / name)).collect() for name in ("sums", "counts")]
        assert list(map(rows, written)) == list(map(rows, plain))
        return graph.summary()

    assert UP_TO_DATE not in run()
    for number in range(2):
        append(folder, f"part-9999{number}-added.parquet")
        assert UP_TO_DATE in run()
    assert UP_TO_DATE not in run()
