"""Rows in files come back bit by bit, in the partitions and the order that they had, or are not written."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as T

from flinkmagic.reuse.row_files import NotStorableError, RowFiles, stored_schema


@pytest.fixture
def files(spark):
    return RowFiles(spark.sparkContext, spark._jsparkSession)


def rows_of(frame):
    return frame._jdf.queryExecution().toRdd()


def as_frame(spark, rows, schema_json):
    from pyspark.sql import DataFrame

    jsession = spark._jsparkSession
    return DataFrame(jsession.internalCreateDataFrame(rows, jsession.parseDataType(schema_json), False), spark)


def parts(frame):
    """The rows of a frame, partition by partition."""
    made = [[] for _ in range(frame._jdf.queryExecution().toRdd().getNumPartitions())]
    # Python has no intervals of months.
    columns = [F.col(f"`{name}`").cast("string") if "year" in kind else f"`{name}`" for name, kind in frame.dtypes]
    for place, *row in frame.select(F.spark_partition_id(), *columns).collect():
        made[place].append(tuple(row))
    return made


@pytest.fixture
def round_trip(spark, files, tmp_path):
    """Writes and reads the rows of a frame; returns both partition by partition: as they are, and as bits."""

    def made(frame):
        schema, rows = frame._jdf.schema().json(), rows_of(frame)
        bits = stored_schema(schema)
        files.write(rows, bits, f"file:{tmp_path}/rows")
        read = files.read([f"file:{tmp_path}/rows"], bits, rows.getNumPartitions()).all()
        return [[parts(as_frame(spark, one, form)) for one in (rows, read)] for form in (schema, bits)]

    return made


VALUES = {
    "boolean": "id % 2 = 0",
    "tinyint": "CAST(id - 50 AS tinyint)",
    "smallint": "CAST(id * -300 AS smallint)",
    "int": "CAST(id * -70000 AS int)",
    "bigint": "id * -9000000000",
    "float": "CAST(id / 3 AS float)",
    "double": "id / 7D",
    "zeros": "IF(id % 2 = 0, -0.0D, 0.0D)",
    "not a number": "IF(id % 2 = 0, double('NaN'), double('-Infinity'))",
    "short decimal": "CAST(id / 8 AS decimal(12, 3))",
    "whole decimal": "CAST(id AS decimal(18, 0))",
    "long decimal": "CAST(id / 8 AS decimal(38, 6))",
    "text": "concat('é\\0 ', id)",
    "no text": "string(unhex('ff00fe'))",
    "binary": "CAST(concat('b', id) AS binary)",
    "char": "CAST(id AS char(5))",
    "varchar": "CAST(id AS varchar(9))",
    "date": "date_add(date'0001-01-01', CAST(id * 30000 AS int))",
    "Julian date": "date_add(date'1582-10-10', CAST(id AS int))",
    "timestamp": "timestamp'0002-01-01 00:00:00.000001' + make_dt_interval(CAST(id * 20000 AS int))",
    "late timestamp": "timestamp'9999-12-31 23:59:59.999999'",
    "changed clock": "timestamp'2024-10-27 00:30:00 UTC' + make_dt_interval(0, 0, CAST(id AS int))",
    "local time": "timestamp_ntz'1400-02-28 12:00:00.5' + make_dt_interval(CAST(id AS int))",
    "days": "make_dt_interval(CAST(id AS int), 1, 2, -3.000004)",
    "minutes": "CAST(make_dt_interval(CAST(id AS int)) AS interval hour to minute)",
    "months": "make_ym_interval(CAST(id AS int), -3)",
    "years": "CAST(make_ym_interval(CAST(id AS int), 0) AS interval year)",
    "array": "array(id / 3, null, double('NaN'))",
    "empty arrays": "IF(id % 2 = 0, array(), array(array(CAST(id AS float)), null))",
    "map": "map(id, date'1500-01-01', id + 1, null)",
    "map of structs": "map(named_struct('a', id), named_struct('b', CAST(null AS int), 'c', array(id)))",
    "struct": "named_struct('x y', id, 'X Y', CAST(id AS decimal(5, 1)), '', null = id)",
    "struct of nulls": "named_struct('a', CAST(null AS string), 'b', CAST(null AS array<int>))",
}


@pytest.mark.matrix(4)
@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_values_of_each_type_come_back(spark, round_trip, value) -> None:
    frame = spark.range(0, 23, 1, 3).selectExpr(f"{value} AS v", f"IF(id % 5 = 0, NULL, {value}) AS n", "id AS `a.b`")
    (values, read), (bits, read_bits) = round_trip(frame)
    assert repr(read) == repr(values)
    assert [len(part) for part in read] == [7, 8, 8]
    assert repr(read_bits) == repr(bits)


def test_all_bits_of_numbers_come_back(spark, round_trip) -> None:
    """No two of these are equal, though most are no number."""
    numbers = [0x7FF8000000000001, -0x7FFFFFFFFFFFF, 0x7FF0000000000002, -1, 7]
    longs = spark.createDataFrame([(number,) for number in numbers], "v long")
    doubles = as_frame(spark, rows_of(longs), longs._jdf.schema().json().replace("long", "double"))
    _, (bits, read_bits) = round_trip(doubles)
    assert read_bits == bits
    assert [row[0] for part in bits for row in part] == numbers


def test_values_of_users_types_come_back_and_files_do_not_name_their_classes(spark, round_trip, tmp_path) -> None:
    from pyspark.ml.linalg import Vectors, VectorUDT

    schema = T.StructType([T.StructField("v", VectorUDT()), T.StructField("vs", T.ArrayType(VectorUDT()))])
    vectors = [Vectors.dense(1.0, float("nan")), Vectors.sparse(3, {1: -0.0}), None]
    frame = spark.createDataFrame([(one, [one, one]) for one in vectors], schema)
    (values, read), (bits, read_bits) = round_trip(frame)
    assert repr(read) == repr(values)
    assert repr(read_bits) == repr(bits)
    assert all(b"VectorUDT" not in path.read_bytes() for path in (tmp_path / "rows").iterdir())


def test_partitions_and_order_are_kept(spark, round_trip) -> None:
    rows = spark.range(0, 4000, 1, 9).where("id > 1500").selectExpr("hash(id) AS h", "id")
    (values, read), _ = round_trip(rows.sortWithinPartitions("h").union(rows.where("id < 0")))
    assert read == values
    assert [len(part) > 0 for part in read] == 3 * [False] + 6 * [True] + 9 * [False]


def test_nothing_that_users_set_changes_what_is_written_or_read(spark, tmp_path, round_trip, files) -> None:
    settings = {
        "spark.sql.files.ignoreMissingFiles": "true",
        "spark.sql.parquet.outputTimestampType": "INT96",
        "spark.sql.files.maxRecordsPerFile": "2",
        "spark.sql.sources.useV1SourceList": "",
        "spark.sql.parquet.compression.codec": "gzip",
    }
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        (values, read), _ = round_trip(spark.range(0, 20, 1, 2).selectExpr("timestamp_seconds(-id) AS t"))
        assert read == values
        paths = [path for path in (tmp_path / "rows").iterdir() if path.suffix == ".parquet"]
        assert len(paths) == 2
        schema = stored_schema(spark.range(1).selectExpr("current_timestamp() AS t")._jdf.schema().json())
        gone = files.read([f"file:{tmp_path}/rows"], schema, 2).all()
        paths[0].unlink()
        with pytest.raises(Exception, match="does not exist"):
            as_frame(spark, gone, schema).count()
    finally:
        for name in settings:
            spark.conf.unset(name)


@pytest.mark.parametrize(
    "value",
    ["make_interval(1, 2)", "null", "array(null)", "named_struct('a', make_interval(1))", "map(1, null)"],
)
def test_what_files_would_not_hold_as_rows_do_is_refused(spark, value) -> None:
    with pytest.raises(NotStorableError):
        stored_schema(spark.range(1).selectExpr(f"{value} AS v")._jdf.schema().json())


@pytest.mark.parametrize(
    "kind",
    ["variant", "time(6)", "decimal(20,-2)", {"type": "geometry"}, {"type": "struct", "fields": []}, "object"],
)
def test_types_that_are_not_known_are_refused(kind) -> None:
    with pytest.raises(NotStorableError):
        stored_schema(json.dumps({"fields": [{"type": kind}]}))
    with pytest.raises(NotStorableError):
        stored_schema(json.dumps({"fields": []}))
