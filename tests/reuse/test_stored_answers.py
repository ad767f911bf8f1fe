"""What is read is what was written, to the type and the bit; what would not be is not written."""

from __future__ import annotations

import datetime
import decimal
import json
import pickle

import numpy as np
import pandas as pd
import pytest
from pyspark.sql import Row
from pyspark.sql import types as T

from flinkmagic.reuse.stored_answers import NotExactError, read, written

NAN, ZERO = float("nan"), -0.0
POINT = T.StructType([T.StructField("x", T.LongType()), T.StructField("x", T.StringType())])
ONE_OF_EACH = T.StructType(
    [
        T.StructField("a", T.ArrayType(T.ArrayType(T.IntegerType()))),
        T.StructField("b", T.MapType(T.StringType(), T.DoubleType())),
        T.StructField("b", POINT),
        T.StructField("c", T.DecimalType(20, 3)),
        T.StructField("d", T.TimestampType()),
        T.StructField("e", T.DateType()),
        T.StructField("f", T.DayTimeIntervalType()),
        T.StructField("g", T.NullType()),
        T.StructField("h", T.BinaryType()),
        T.StructField("i", T.ArrayType(POINT)),
    ]
)


def row(names, *values):
    made = Row(*values)
    made.__fields__ = list(names)
    return made


def rows_of_each():
    return [
        row(
            ONE_OF_EACH.names, [[1, None], [], None], {"k": NAN, "a": None}, row("xx", 1, "s"),
            decimal.Decimal("1.200"), datetime.datetime(2024, 1, 2, 3, 4, 5, 6), datetime.date(1500, 1, 1),
            datetime.timedelta(days=-1, microseconds=7), None, b"\x00", [row("xx", None, None), None],
        ),
        row(ONE_OF_EACH.names, *[None] * 10),
        row(ONE_OF_EACH.names, [], {}, row("xx", None, "é"), *[None] * 6, []),
    ]  # fmt: skip


ROWS = [
    (rows_of_each(), "collect", ONE_OF_EACH),
    ([], "collect", ONE_OF_EACH),
    ([row("n", ZERO), row("n", NAN), row("n", float("inf"))], "take", T.StructType().add("n", "double")),
    (row("n", 2**63 - 1), "first", T.StructType().add("n", "long")),
    (None, "head", T.StructType().add("n", "long")),
    ([row("n", bytearray(b"a"))], "tail", T.StructType().add("n", "binary")),
]


@pytest.mark.parametrize(("answer", "method", "schema"), ROWS, ids=range(len(ROWS)))
def test_rows_are_read_as_they_were(answer, method, schema) -> None:
    again = read(written(answer, method, schema), method, schema)
    assert repr(again) == repr(answer)
    assert type(again) is type(answer)
    for one, other in zip(again or [], answer or [], strict=True):
        if isinstance(other, Row):
            assert one.__fields__ == other.__fields__
            assert [type(value) for value in one] == [type(value) for value in other]


@pytest.mark.parametrize("answer", [3, True, None, 0.1, ZERO, NAN, [0.5, [1.0, NAN]], "+---+\n| é|\n", 2**70])
def test_numbers_and_texts_are_read_as_they_were(answer) -> None:
    again = read(written(answer, "show", None), "show", None)
    assert (repr(again), type(again)) == (repr(answer), type(answer))


def frame():
    return pd.DataFrame(
        {
            "n": np.array([1, 2], "int32"),
            "x": np.array([NAN, ZERO]),
            "y": np.array([True, False]),
            "at": pd.to_datetime(["2024-01-01 00:00:00.000001", None]),
            "took": pd.to_timedelta([1, None]),
            "s": pd.Series(["a", None], dtype=object),
            "c": pd.Series([decimal.Decimal("1.20"), None], dtype=object),
            "m": pd.Series([1, None], dtype=object),
        }
    )


SCHEMA = T.StructType(
    [
        T.StructField("n", T.IntegerType()), T.StructField("x", T.DoubleType()), T.StructField("y", T.BooleanType()),
        T.StructField("at", T.TimestampType()), T.StructField("took", T.DayTimeIntervalType()),
        T.StructField("s", T.StringType()), T.StructField("c", T.DecimalType(5, 2)), T.StructField("m", T.LongType()),
    ]
)  # fmt: skip


def test_a_frame_is_read_as_it_was() -> None:
    made = frame()
    for answer in (made, made[:0]):
        again = read(written(answer, "toPandas", SCHEMA), "toPandas", SCHEMA)
        pd.testing.assert_frame_equal(again, answer, check_exact=True, check_freq=False)
        assert again["x"].to_numpy().tobytes() == answer["x"].to_numpy().tobytes()
    twice = pd.concat([made[["n"]], made[["n"]]], axis=1)
    schema = T.StructType().add("n", "integer").add("n", "integer")
    pd.testing.assert_frame_equal(read(written(twice, "toPandas", schema), "toPandas", schema), twice)
    again.loc[0, "n"] = 7  # it can be written to


ONE = T.StructType().add("n", "string")
INEXACT = {
    "a time that is repeated": (
        [row("n", datetime.datetime(2024, 1, 1, fold=1))], T.StructType().add("n", "timestamp"),
    ),
    "a time with a zone": (
        [row("n", datetime.datetime(2024, 1, 1, tzinfo=datetime.timezone.utc))], T.StructType().add("n", "timestamp"),
    ),
    "a number for a text": ([row("n", 3)], ONE),
    "a decimal of another scale": ([row("n", decimal.Decimal("1.2"))], T.StructType().add("n", T.DecimalType(5, 2))),
    "a whole number as a double": ([row("n", 1)], T.StructType().add("n", "double")),
    "a double in a float": ([row("n", 0.1)], T.StructType().add("n", "float")),
    "a tuple": ([("a",)], ONE),
    "another name": ([row("m", "a")], ONE),
    "a type of the user's": ([row("n", "a")], T.StructType().add("n", type("Mine", (T.UserDefinedType,), {})())),
    "a part of a character": ([row("n", "\ud800")], ONE),
    "rows without columns": ([row(()), row(())], T.StructType()),
    "too few columns": ([row("", *())], ONE),
    "both kinds of bytes": ([row("n", b"a"), row("n", bytearray(b"a"))], T.StructType().add("n", "binary")),
}  # fmt: skip


@pytest.mark.parametrize("answer", INEXACT.values(), ids=INEXACT)
def test_what_would_be_another_answer_is_not_written(answer) -> None:
    with pytest.raises(NotExactError):
        written(answer[0], "collect", answer[1])


@pytest.mark.parametrize(
    "made",
    [
        pd.DataFrame({"n": pd.Series(["a", float("nan")], dtype=object)}),
        pd.DataFrame({"n": pd.Series(["a", "b"], dtype="category")}),
        pd.DataFrame({"n": pd.Series(["a", "b"], dtype="string")}),
        pd.DataFrame({"n": ["a", "b"]}, index=[1, 2]),
        pd.DataFrame({"m": ["a", "b"]}),
        pd.DataFrame({"n": pd.Series([np.array([1])], dtype=object)}),
        pd.DataFrame({"n": ["a"], "m": ["b"]}),
    ],
)
def test_a_frame_that_would_be_another_one_is_not_written(made) -> None:
    with pytest.raises(NotExactError):
        written(made, "toPandas", ONE)


@pytest.mark.parametrize(
    ("values", "kind"),
    [([1, None], "double"), ([1.0, None], "long"), ([1, True], "long"), ([b"a", bytearray(b"a")], "binary")],
)
def test_columns_of_a_frame_are_compared_by_type_too(values, kind) -> None:
    with pytest.raises(NotExactError):
        written(pd.DataFrame({"n": pd.Series(values, dtype=object)}), "toPandas", T.StructType().add("n", kind))


def test_attributes_of_a_frame_count() -> None:
    made = pd.DataFrame({"n": ["a"]})
    written(made, "toPandas", ONE)
    made.attrs["said"] = 1
    with pytest.raises(NotExactError):
        written(made, "toPandas", ONE)


def test_numbers_of_other_types_are_not_written() -> None:
    for answer in (np.float64(1), {1: 2}, (1,), b"a"):
        with pytest.raises(NotExactError):
            written(answer, "corr", None)


def test_bytes_that_are_no_answer_are_refused() -> None:
    schema = T.StructType().add("n", "long").add("s", "string")
    good = written([row("ns", 1, "text"), row("ns", 2, None)], "collect", schema)
    told, _, body = good.partition(b"\n")
    other = written([row("ns", 1, 2)], "collect", T.StructType().add("n", "long").add("s", "long"))
    wrong = [
        b"", b"\n", b"{}", b"[]\n" + body, told, told + b"\n", told + b"\n" + body[:-20], other,
        told.replace(b'"rows": 2', b'"rows": 3') + b"\n" + body, b"[" * 100_000,
        json.dumps({**json.loads(told), "bytes": "eval"}).encode() + b"\n" + body,
        told + b"\n" + pickle.dumps([1]), pickle.dumps([1]),
    ]  # fmt: skip
    for content in wrong:
        with pytest.raises(NotExactError):
            read(content, "collect", schema)
    for content in (good[:place] + bytes([good[place] ^ 255]) + good[place + 1 :] for place in range(0, len(good), 7)):
        try:  # what can still be read is rows of this schema
            assert all(len(one) == 2 for one in read(content, "collect", schema) or [])
        except NotExactError:
            continue
    frames = written(pd.DataFrame({"n": ["a"]}), "toPandas", ONE)
    for dtype in ("float128", "S3", "O8", "str", "flinkmagic", "int64"):
        with pytest.raises(NotExactError):
            read(frames.replace(b'"object"', json.dumps(dtype).encode()), "toPandas", ONE)
