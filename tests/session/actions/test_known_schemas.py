"""What Spark has inferred from files is known when the same files are read again, and only then."""

from __future__ import annotations

import os

import pytest
from pyspark.errors import PySparkException

from flinkmagic.options import JobOptions
from flinkmagic.session import SessionActions, release_retained


@pytest.fixture
def reading(answering, tmp_path):
    answering.namespace["at"] = str(tmp_path)
    answering.plain(
        "spark.range(0, 6, 1, 2).selectExpr('id', 'id % 2 AS k', 'string(id) AS s').write.parquet(at + '/p')"
    )
    (tmp_path / "one.csv").write_text("n,s\n1,a\n2,b\n")
    (tmp_path / "other.csv").write_text("day,price,name\n2024-01-02,1.5,x\n")
    (tmp_path / "mixed.json").write_text('{"a": 1, "b": "x"}\n{"a": 2.5, "c": [1]}\nnone\n')
    return answering


def inferred(session):
    """Whether Spark has run something to make a DataFrame."""
    return session.ran.tasks() != []


READS = (
    "spark.read.parquet(at + '/p')",
    "spark.read.load(at + '/p')",
    "spark.read.csv(at + '/one.csv', header=True, inferSchema=True)",
    "spark.read.option('header', True).csv([at + '/one.csv'])",
    "spark.read.format('csv').options(inferSchema=True, header=True).load(at + '/one.csv')",
    "spark.read.json(at + '/mixed.json')",
    "spark.read.csv(at + '/*.csv')",
)


def test_nothing_is_read_to_know_the_columns_again(reading) -> None:
    for line in READS:
        plain, first = reading.plain(line), reading.cell(line)
        assert inferred(reading), line
        again = reading.cell(line)
        assert not inferred(reading), line
        assert again is not first
        assert again.schema == first.schema == plain.schema
        assert again.join(first, again.columns, "left_anti").columns == plain.columns  # they are two DataFrames
        assert sorted(map(str, again.collect())) == sorted(map(str, plain.collect()))


def test_a_reader_stays_as_plain_pyspark_leaves_it(reading) -> None:
    reading.plain("one = spark.read\nNone")
    for _ in range(3):  # the first one sets the options of the second
        assert reading.cell("one.csv(at + '/one.csv', header=True, inferSchema=True)").dtypes[0] == ("n", "int")
    assert not inferred(reading)
    # The options stay with the reader, the schema does not.
    other = reading.cell("one.csv(at + '/other.csv')")
    assert other.dtypes == [("day", "date"), ("price", "double"), ("name", "string")]
    assert reading.cell("spark.read.schema('x string').csv(at + '/one.csv')").columns == ["x"]
    assert reading.cell("spark.read.csv(at + '/one.csv', schema='y string')").columns == ["y"]


def _write(name, text):
    return lambda session, folder: (folder / name).write_text(text)


def _rewrite(session, folder):
    held = (folder / "one.csv").stat()
    (folder / "one.csv").write_text("n,s\nx,a\n2,b\n")  # of the same length
    os.utime(folder / "one.csv", ns=(held.st_atime_ns, held.st_mtime_ns + 2_000_000_000))


CSV = "spark.read.csv(at + '/one.csv', header=True, inferSchema=True)"
CHANGES = {
    "another value": (CSV, CSV, _rewrite),
    "another file": (
        "spark.read.json(at + '/mixed*.json')",
        "spark.read.json(at + '/mixed*.json')",
        _write("mixed2.json", '{"d": 1}\n'),
    ),
    "an option": (CSV, CSV.replace("header=True", "header=False"), lambda session, folder: None),
    "a setting": (
        "spark.read.csv(at + '/times.csv', inferSchema=True)",
        "spark.read.csv(at + '/times.csv', inferSchema=True)",
        lambda session, folder: session.spark.conf.set("spark.sql.timestampType", "TIMESTAMP_NTZ"),
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("change", CHANGES)
def test_what_has_changed_is_inferred_anew(spark, reading, tmp_path, change) -> None:
    before, after, happens = CHANGES[change]
    (tmp_path / "times.csv").write_text("2024-01-02 03:04:05\n")
    was = [reading.cell(before).schema for _ in range(2)][1]
    assert not inferred(reading)
    happens(reading, tmp_path)
    try:
        now = reading.cell(after)
        assert inferred(reading)
        assert now.schema == reading.plain(after).schema != was
        assert now.collect() == reading.plain(after).collect()
    finally:
        spark.conf.unset("spark.sql.timestampType")


def test_files_that_are_gone_are_missed(reading, tmp_path) -> None:
    for _ in range(2):
        reading.cell(CSV)
    (tmp_path / "one.csv").unlink()
    with pytest.raises(PySparkException, match="PATH_NOT_FOUND"):
        reading.cell(CSV)


def test_rows_that_are_no_files_are_read_each_time(reading) -> None:
    for row in ('{"a": 1}', '{"b": 1}'):
        reading.namespace["row"] = row
        made = reading.cell("spark.read.json(spark.sparkContext.parallelize([row]))")
        assert made.columns == [row[2]]


def test_nothing_is_known_if_nothing_is_to_be_kept(reading) -> None:
    reading.actions = SessionActions(JobOptions(retain="none"))
    for _ in range(2):
        reading.cell(CSV)
        assert inferred(reading)


def test_what_is_known_is_released_with_the_answers(spark, reading) -> None:
    for _ in range(2):
        reading.cell(CSV + ".count()")
    release_retained(spark, "answers")
    reading.cell(CSV)
    assert inferred(reading)
