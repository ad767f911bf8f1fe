"""Calls as they are written, and the lines on which they stand."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from flinkmagic.capturing.source_code import source_reader
from flinkmagic.capturing.source_code.source_location import CellSource
from flinkmagic.capturing.source_code.source_reader import TEXT_LIMIT, SourceReader, reconstruct, shorten, user_frame

FILE = "/tmp/ipykernel_7/1.py"
exact = pytest.mark.skipif(sys.version_info < (3, 11), reason="positions of calls are known since Python 3.11")


class Spy:
    """Takes any call in a chain, and notes what the source says of it."""

    def __init__(self, reader: SourceReader, noted: list[tuple[str, int]]) -> None:
        self._reader, self._noted = reader, noted

    def __getattr__(self, method: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> Spy:
            frame = _frame_of(FILE)
            text = self._reader.call_text(frame, method, args, kwargs)
            self._noted.append((text, self._reader.location(frame).line))
            return self

        return call

    @property
    def write(self) -> Spy:
        return self

    read = na = write


def _frame_of(filename: str) -> Any:
    frame = sys._getframe(1)
    while frame.f_code.co_filename != filename:
        assert frame.f_back is not None
        frame = frame.f_back
    return frame


def _calls(source: str) -> list[tuple[str, int]]:
    noted: list[tuple[str, int]] = []
    reader = SourceReader(CellSource("cell 7", FILE, source))
    exec(compile(source, FILE, "exec"), {"df": Spy(reader, noted), "F": str})
    return noted


@exact
def test_a_call_is_quoted_without_what_it_is_called_on() -> None:
    assert _calls('x = 1\ndf.where("a > 15")') == [('where("a > 15")', 2)]


@exact
def test_calls_on_one_line_are_told_apart() -> None:
    assert _calls('df.where("a").where("b").limit(3)') == [
        ('where("a")', 1),
        ('where("b")', 1),
        ("limit(3)", 1),
    ]


@exact
def test_a_chain_over_lines_has_the_line_of_each_name() -> None:
    source = '(df\n  .where("ä")\n  .agg(\n      1,\n      2,\n  )\n)'
    assert _calls(source) == [('where("ä")', 2), ("agg(1, 2)", 3)]


@exact
def test_lines_that_a_backslash_continues_are_joined() -> None:
    source = 'df.write \\\n  .mode("overwrite") \\\n  .csv("out")'
    assert _calls(source)[-1] == ('write.mode("overwrite").csv("out")', 3)


@exact
def test_a_write_is_quoted_with_its_settings() -> None:
    assert _calls('df.limit(2).write.mode("overwrite").csv("out")')[-1] == (
        'write.mode("overwrite").csv("out")',
        1,
    )


@exact
def test_what_follows_a_read_on_its_line_is_quoted_without_it() -> None:
    source = 'df.read.schema("a long").parquet("in").groupBy("a").count().na.fill(0).drop("b")'
    assert [text for text, _ in _calls(source)] == [
        'read.schema("a long")',
        'read.schema("a long").parquet("in")',
        'groupBy("a")',
        "count()",
        "na.fill(0)",
        'drop("b")',
    ]


def test_the_settings_of_readers_and_writers_are_known() -> None:
    from pyspark.sql import DataFrameReader, DataFrameWriter
    from pyspark.sql.streaming import DataStreamReader, DataStreamWriter

    classes = (DataFrameReader, DataFrameWriter, DataStreamReader, DataStreamWriter)
    returning = {
        name
        for one in classes
        for name, method in vars(one).items()
        if not name.startswith("_") and getattr(method, "__annotations__", {}).get("return") == one.__name__
    }
    assert returning
    assert returning <= source_reader._SETTINGS


@exact
def test_comments_are_left_out() -> None:
    assert _calls("df.agg(\n    1,  # one\n    2,\n)") == [("agg(1, 2)", 1)]


def test_without_columns_a_call_is_known_by_its_name_where_that_is_the_only_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(source_reader, "_call_end", lambda frame: None)
    assert [text for text, _ in _calls('df.where("a").limit(3)')] == ['where("a")', "limit(3)"]
    assert [text for text, _ in _calls("df.limit(1).limit(2 - 1)")] == ["limit(1)", "limit(1)"]


def test_a_call_without_source_is_put_together() -> None:
    assert SourceReader().call_text(None, "where", ["a = 'x\"y'"], {}) == 'where("a = \'x\\"y\'")'
    assert reconstruct("join", [Spy], {"on": ["a", "b"], "how": None}) == 'join(Spy, on=["a", "b"], how=None)'


def test_long_text_is_cut() -> None:
    text = shorten("f(" + "x" * 500 + ")")
    assert len(text) == TEXT_LIMIT
    assert text.endswith("…")


def test_the_users_frame_is_this_one() -> None:
    frame = user_frame()
    assert frame is not None
    assert frame.f_code.co_name == "test_the_users_frame_is_this_one"


def test_a_line_in_a_plain_file_is_labelled_by_the_file() -> None:
    location = SourceReader().location(user_frame())
    assert (location.cell, location.code) == (
        "test_source_reader.py",
        "location = SourceReader().location(user_frame())",
    )
    assert location.called_from is None


def test_a_function_of_another_cell_is_placed_there_and_led_to_from_here() -> None:
    other, here = "/tmp/ipykernel_7/0.py", "x = 1\nlocation = f()"
    reader = SourceReader(CellSource("cell 7", FILE, here, {other: "cell 2"}))
    namespace: dict[str, Any] = {"locate": lambda: reader.location(_frame_of(other))}
    exec(compile("def f():\n    return locate()", other, "exec"), namespace)
    exec(compile(here, FILE, "exec"), namespace)
    location = namespace["location"]
    assert str(location) == "cell 2, line 2 (called from cell 7, line 2)"
    assert location.called_from.code == "location = f()"
