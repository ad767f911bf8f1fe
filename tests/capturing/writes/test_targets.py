"""Places: which of them overlap, and what a plan reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark import StorageLevel

from flinkmagic.capturing.writes.outside_places import jdbc_path, jdbc_paths, source_place
from flinkmagic.capturing.writes.targets import PathResolver, Source, Target, resolve_uri, sources_of, temp_views_of


@pytest.mark.parametrize(
    ("one", "other", "overlap"),
    [
        ("file:/a/b", "file:/a/b", True),
        ("file:/a/b", "file:/a/b/day=1", True),
        ("file:/a/b/day=1", "file:/a/b", True),
        ("file:/a/b/day=1", "file:/a/b/day=2", False),
        ("file:/a/b", "file:/a/bc", False),
        ("file:/a/b", "hdfs://host/a/b", False),
        ("file:/a/b*", "file:/a/bc", True),
        ("file:/a/b*/x", "file:/a/bc", True),
        ("file:/a/b*", "file:/a/c", False),
        ("file:/a/{b,c}", "file:/a/c", True),
        ("file:/a/{b,c}", "file:/a/d", False),
        ("file:/a/{b,{c,d*}}/x", "file:/a/dd", True),
        ("file:/a/{b,{c,d*}}/x", "file:/a/e", False),
        ("file:/{a/b,c}/x", "file:/a/b/x/y", True),
        ("file:/{a/b,c}/x", "file:/a/x", False),
        ("file:/a/" + "{0,1}" * 12, "file:/a/2", True),
        ("file:/a/" + "{0,1}" * 12, "file:/b", False),
        ("file:/a/\\{b", "file:/a/{b", True),
        ("file:/a/[^x]*", "file:/a/bc", True),
        ("file:/a/[^b]*", "file:/a/bc", False),
    ],
)
def test_paths_overlap_with_what_is_above_and_below(one: str, other: str, overlap: bool) -> None:
    read = Source(path=one, pattern=True)
    assert read.overlaps(Target(path=other)) is overlap
    assert Target(path=other).overlaps(read) is overlap


@pytest.mark.parametrize("name", ["b*", "b?", "[b]c", "{b,c}"])
def test_a_written_path_is_no_pattern(name: str) -> None:
    written = Target(path=f"file:/a/{name}")
    assert not written.overlaps(Target(path="file:/a/bc"))
    assert not Source(path="file:/a/bc", pattern=True).overlaps(written)
    assert not Target(path="file:/a/bc").holds(Target(path=f"file:/a/{name}/x"))
    assert written.overlaps(Target(path=f"file:/a/{name}/x"))


def test_partitions_that_lie_elsewhere_belong_to_a_table() -> None:
    table = Target(path="file:/a/b", table="spark_catalog.x.y", also=("file:/c", "file:/d"))
    assert table.overlaps(Target(path="file:/d/k=1"))
    assert Target(path="file:/c").overlaps(table)
    assert not table.overlaps(Target(path="file:/e"))


def test_a_flat_folder_is_overlapped_by_its_files_and_by_what_is_above(tmp_path: Path) -> None:
    (tmp_path / "part").write_text("")
    flat = Source(path=f"file:{tmp_path}", flat=True)
    for place, overlap in (("/new", False), ("/new/part", False), ("/part", True), ("", True), ("/..", True)):
        other = Target(path=resolve_uri(f"file:{tmp_path}{place}"))
        assert (flat.overlaps(other), other.overlaps(flat)) == (overlap, overlap)
    far = Source(path="s3a://bucket/a", flat=True)
    assert far.overlaps(Target(path="s3a://bucket/a/part-0.parquet"))
    assert not far.overlaps(Target(path="s3a://bucket/a/day=1"))


def test_all_tables_of_a_database_overlap_it() -> None:
    database = Target(path="file:/w/x.db", namespace="spark_catalog.x")
    assert database.overlaps(Target(table="spark_catalog.x.y"))
    assert Source(table="spark_catalog.x.y").overlaps(database)
    assert not database.overlaps(Target(table="spark_catalog.xy.z"))
    assert database.overlaps(Target(path="file:/w/x.db/y"))


JDBC = [
    ("A.T", "T", True),
    ("A.T", '"A"."T"', True),
    ("A.T", "B.T", False),
    ("A.T", "A.U", False),
    ("(select * from A.T) q", "t", True),
    ("(select * from A.T join u using (k)) q", "U", True),
    ("(select * from A.T join u using (k)) q", "V", False),
    ("(with v as (select 1 x) select * from v) q", "V", False),
    ("(select * from A.T where k in (select k from B.U)) q", "B.U", True),
    ("(select * from A.T where k in (select k from B.U)) q", "A.U", False),
    ('(select "x y" from "A"."T") q', "T", True),
    ('(select "x y" from "A"."T" where n = \'from "V"\') q', "V", False),
    ("(select * from rows_of('T')) q", "U", True),
    ("(select top 3 x from A.T for browse) q", "U", True),
]


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(("read", "written", "overlap"), JDBC)
def test_tables_of_one_database(read: str, written: str, overlap: bool) -> None:
    url = "jdbc:derby:x;create=true"
    sources = [Source(path=path) for path in jdbc_paths(url, read)]
    target = Target(path=jdbc_path("jdbc:derby:x", written))
    assert any(source.overlaps(target) for source in sources) is overlap
    assert not any(source.overlaps(Target(path=jdbc_path("jdbc:derby:y", written))) for source in sources)


def test_sources_of_one_kind_are_told_apart_by_the_options_that_say_where() -> None:
    here = Source(table=source_place("PythonTable:mine", {"folder": "/data/a", "header": "true"}))
    for options, overlap in (
        ({"folder": "/data/a"}, True),
        ({"Folder": "/data/a/b"}, True),
        ({"folder": "/data/b", "header": "true"}, False),
        ({"header": "false"}, True),
        ({"path": "/data/b"}, True),
    ):
        assert here.overlaps(Target(table=source_place("PythonTable:mine", options))) is overlap
    assert not here.overlaps(Target(table=source_place("PythonTable:other", {"folder": "/data/a"})))
    assert str(here) == "pythontable:mine"


def test_tables_overlap_by_identity_and_by_folder() -> None:
    table = Target(path="file:/w/t", table="spark_catalog.default.t")
    assert table.overlaps(Target(table="spark_catalog.default.t"))
    assert table.overlaps(Target(path="file:/w/t/day=1"))
    assert not table.overlaps(Target(path="file:/w/u", table="spark_catalog.default.u"))
    assert not Target(table="jdbc:x").overlaps(Target(path="file:/w"))


def test_only_a_folder_above_holds() -> None:
    assert Target(path="file:/a").holds(Target(path="file:/a/b"))
    assert not Target(path="file:/a").holds(Target(path="file:/a"))
    assert not Target(path="file:/a/b").holds(Target(path="file:/a"))
    assert not Target(path="file:/a").holds(Target(path="file:/ab"))


def test_uris_of_one_place_are_one(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "data")
    real = f"file:{(tmp_path / 'data').resolve()}/day=1"
    assert resolve_uri(f"file:{tmp_path}/link/day=1") == real
    assert resolve_uri(f"file://{tmp_path}/data/../link/day=1") == real
    assert resolve_uri("s3://bucket/a/") == resolve_uri("s3a://bucket/a")
    assert resolve_uri("hdfs://host:9/a b#1") == "hdfs://host:9/a b#1"


def test_a_relative_path_is_qualified_by_hadoop(spark: Any) -> None:
    resolver = PathResolver(spark)
    assert resolver.target("out").path == resolve_uri(f"file:{Path.cwd()}/out")
    assert resolver.target("hdfs://host:9/a").path == "hdfs://host:9/a"


def _sources(df: Any) -> tuple[Source, ...]:
    return sources_of(df._jdf.queryExecution().analyzed())


def test_a_plan_tells_its_files(cell: Any, numbers: Any) -> None:
    left, right = numbers("left", 3), numbers("right", 4)
    df = cell.spark.read.parquet(left).join(cell.spark.read.parquet(right), "id").union(cell.spark.range(2))
    assert _sources(df) == (
        Source(path=resolve_uri(f"file:{left}"), listed=True, flat=True),
        Source(path=resolve_uri(f"file:{right}"), listed=True, flat=True),
    )


def test_kept_rows_tell_what_they_were_computed_from(cell: Any, numbers: Any, spark: Any) -> None:
    path = numbers("kept", 3)
    execution = cell.spark.read.parquet(path).distinct()._jdf.queryExecution()
    companion = spark._jvm.java.lang.Class.forName("org.apache.spark.sql.execution.columnar.InMemoryRelation$")
    level = spark.sparkContext._getJavaStorageLevel(StorageLevel.MEMORY_AND_DISK)
    kept = companion.getField("MODULE$").get(None).apply(level, execution, spark._jvm.scala.Option.empty())
    assert sources_of(kept) == (Source(path=resolve_uri(f"file:{path}"), listed=True, flat=True),)


def test_a_plan_tells_the_files_of_its_subqueries(cell: Any, numbers: Any) -> None:
    cell.spark.read.parquet(numbers("inner", 3)).createOrReplaceTempView("inner_numbers")
    df = cell.spark.sql("select * from range(5) where id in (select id from inner_numbers)")
    assert _sources(df) == (Source(path=resolve_uri(f"file:{cell.at('inner')}"), listed=True, flat=True),)
    assert temp_views_of(df._jdf.queryExecution().analyzed()) == {"inner_numbers"}


def test_a_plan_tells_its_tables(cell: Any) -> None:
    cell.spark.range(3).write.mode("overwrite").saveAsTable("told")
    try:
        (table, files) = _sources(cell.spark.table("told"))
        assert table.table == "spark_catalog.default.told"
        assert table.path == files.path
        assert str(files.path).endswith("/warehouse/told")
        assert (table.listed, files.listed) == (False, False)
    finally:
        cell.spark.sql("drop table told")


def test_a_file_source_of_version_2_tells_its_files(cell: Any, numbers: Any) -> None:
    cell.spark.conf.set("spark.sql.sources.useV1SourceList", "")
    try:
        df = cell.spark.read.parquet(numbers("x", 3))
        assert _sources(df) == (Source(path=resolve_uri(f"file:{cell.at('x')}"), listed=False),)
    finally:
        cell.spark.conf.unset("spark.sql.sources.useV1SourceList")


def test_a_frame_over_an_rdd_tells_the_files_below_it(cell: Any, numbers: Any) -> None:
    rdd = cell.spark.read.parquet(numbers("x", 3)).groupBy("id").count().rdd.map(tuple)
    sources = _sources(rdd.toDF("id long, n long"))
    assert sources
    for source in sources:
        assert str(source.path).startswith(str(resolve_uri(f"file:{cell.at('x')}")) + "/part-")
        assert source.listed
    for name in ("one", "two"):
        (cell.folder / name).write_text(name)
    rdd = cell.spark.sparkContext.textFile(f"{cell.at('one')},{cell.at('two')}")
    lines = rdd.map(lambda line: (line,)).toDF("line string")
    assert sorted(row[0] for row in lines.collect()) == ["one", "two"]
    assert _sources(lines) == tuple(
        Source(path=resolve_uri(f"file:{cell.at(name)}"), pattern=True) for name in ("one", "two")
    )


def test_a_checkpoint_cuts_the_sources_off(cell: Any, numbers: Any) -> None:
    df = cell.spark.read.parquet(numbers("x", 3))
    assert len(_sources(df)) == 1
    assert _sources(df.localCheckpoint()) == ()
    assert len(_sources(df.localCheckpoint(eager=False))) > 0
