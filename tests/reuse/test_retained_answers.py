"""What is small enough is kept as a copy, and what was used last is kept longest."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import Row

from flinkmagic.reuse import retained_answers
from flinkmagic.reuse.retained_answers import LARGEST, LARGEST_FRAME, RetainedAnswers, packed

SMALL = [
    3,
    None,
    [Row(a=1, b="x", c=[1.5, None], d={"k": b"\x00"}, e=Row(f=decimal.Decimal("1.20")))],
    [Row(at=datetime.datetime(2024, 1, 2, 3), on=datetime.date(2024, 1, 2), for_=datetime.timedelta(1))],
    [[0.5, 1.0]],
    "+---+\n| a |\n",
]


@pytest.mark.parametrize("answer", SMALL)
def test_an_answer_is_given_as_a_copy(answer) -> None:
    answers = RetainedAnswers()
    answers.add("k", "collect()", answer, 1.5)
    kept = answers.find("k")
    assert kept.value() == answer
    if isinstance(answer, list):
        assert kept.value() is not kept.value()
    assert (kept.what, kept.seconds, kept.name, kept.kind) == ("collect()", 1.5, "answers.1", "answer")


FRAME = pd.DataFrame(
    {
        "n": np.array([1, 2], "int32"),
        "s": pd.Series(["a", None], dtype=object),
        "at": pd.to_datetime(["2024-01-01", None]),
        "l": pd.Series([np.array([1, 2]), np.array([Row(a=1)], object)]),
        "c": pd.Series(["x", "y"], dtype="category"),
    }
)


def test_frames_and_tables_keep_their_types() -> None:
    answers = RetainedAnswers()
    answers.add("frame", "toPandas()", FRAME, 0.1)
    copy = answers.find("frame").value()
    assert list(copy.dtypes) == list(FRAME.dtypes)
    assert copy.astype(str).equals(FRAME.astype(str))
    table = pa.table({"a": [1, 2], "b": ["x", None]})
    answers.add("table", "toArrow()", table, 0.1)
    assert answers.find("table").value().equals(table)


LARGE = pd.DataFrame(
    {"n": np.arange(20_000), "s": [f"{n:0100}" if n else None for n in range(20_000)], "x": [float("nan")] * 20_000}
)


def test_a_larger_frame_is_copied_and_nobody_changes_what_is_kept() -> None:
    given, answers = LARGE.copy(), RetainedAnswers()
    given.attrs["a"] = [1]
    answers.add("frame", "toPandas()", given, 0.1)
    given.loc[0, "n"] = 7
    given.attrs["a"].append(2)
    first, second = (answers.find("frame").value() for _ in range(2))
    first.loc[1, "s"] = "y"
    assert second.equals(LARGE)
    assert (list(second.dtypes), second.attrs) == (list(LARGE.dtypes), {"a": [1]})
    assert answers.find("frame").bytes > 20_000 * (8 + 8 + 100)


def test_larger_frames_leave_the_room_of_small_answers(monkeypatch) -> None:
    answers = RetainedAnswers()
    answers_of(answers, "small")
    answers.add("a", "toPandas()", LARGE, 0.1)
    monkeypatch.setattr(retained_answers, "MOST_BYTES", int(1.5 * answers.find("a").bytes))
    answers.add("b", "toPandas()", LARGE, 0.1)
    assert [one.key for one in answers.entries()] == ["b", "small"]


class Unknown:
    """Nothing is known of how it is copied."""


@pytest.mark.parametrize(
    "answer",
    [
        list(range(LARGEST)),
        ["x" * LARGEST],
        "x" * LARGEST,
        [Row(a="x" * 1000) for _ in range(2000)],
        pd.DataFrame({"a": np.zeros(LARGEST_FRAME // 8 + 1)}),
        pd.DataFrame({"a": [f"{n:02000}" for n in range(20_000)]}),
        pd.DataFrame({"a": [[n] for n in range(20_000)]}),
        pd.DataFrame({"a": [bytearray(b"a") for _ in range(20_000)]}),
        pd.DataFrame({"a": [f"{n:0100}" for n in range(20_000)]}, dtype="category"),
        pa.table({"a": np.zeros(LARGEST // 8 + 1)}),
        [Unknown()],
        [Row(a=Unknown())],
        pd.DataFrame({"a": [Unknown()]}),
        {"a": {1, 2}},
    ],
)
def test_what_is_large_or_unknown_is_not_kept(answer) -> None:
    assert packed(answer) is None


def test_what_is_large_is_not_looked_through() -> None:
    seen = []

    class Seen(list):
        def __iter__(self):
            seen.append(1)
            return super().__iter__()

    assert packed([Seen()]) is None
    assert packed([0] * LARGEST) is None
    assert seen == []


def test_what_was_used_last_stays(monkeypatch) -> None:
    answers = RetainedAnswers()
    size = answers_of(answers, "a")
    monkeypatch.setattr(retained_answers, "MOST_BYTES", 3 * size)
    for key in "bc":
        answers_of(answers, key)
    answers.use(answers.find("a"))
    answers_of(answers, "d")
    assert [one.key for one in answers.entries()] == ["d", "a", "c"]
    answers_of(answers, "c")
    assert next((one.key, one.name) for one in answers.entries()) == ("c", "answers.3")
    assert [one.key for one in answers.drop(lambda one: one.key == "a")] == ["a"]
    assert [one.key for one in answers.entries()] == ["c", "d"]


def test_there_are_not_too_many(monkeypatch) -> None:
    monkeypatch.setattr(retained_answers, "MOST_ANSWERS", 2)
    answers = RetainedAnswers()
    for key in "abc":
        answers.add(key, "count()", 1, 0.1)
    assert [one.key for one in answers.entries()] == ["c", "b"]


def answers_of(answers, key):
    answers.add(key, "first()", "x" * 100, 0.1)
    return answers.find(key).bytes
