"""`with_options`: what it takes, what it refuses, and that rows stay as they are."""

from __future__ import annotations

import pytest

from flinkmagic.capturing.lineage import OperatorOptions
from flinkmagic.capturing.operator_options import with_options
from flinkmagic.errors.capturing import NotCapturedError, OperatorOptionsError

IMPORT = "from flinkmagic import with_options\n"


def options_of(program, variable):
    return program.lineage.marks[program.frame_of(program.variables[variable])]


def test_it_marks_a_dataframe_and_gives_it_back(cell):
    program = cell.capture(
        IMPORT + "numbers = spark.range(3)\nmarked = with_options(numbers, name='N', uid='n', max_parallelism=8)\n"
    )
    assert cell.namespace["marked"] is cell.namespace["numbers"]
    found = options_of(program, "numbers")
    assert (found.name, found.uid, found.max_parallelism, found.chaining) == ("N", "n", 8, None)
    assert str(found.location) == "cell 3, line 3"
    assert [call.method for call in program.lineage.calls] == ["range"]


def test_a_second_mark_adds_to_the_first():
    first = OperatorOptions(name="a", chaining="head")
    assert OperatorOptions(name="b", uid="u").over(first) == OperatorOptions(name="b", uid="u", chaining="head")
    assert first.over(None) is first


def test_a_dataframe_without_a_name_keeps_its_mark(cell):
    program = cell.capture(
        IMPORT + "total = with_options(spark.range(3).where('id > 1'), name='Big').groupBy().count()\n"
    )
    ((frame, found),) = program.lineage.marks.items()
    assert found.name == "Big"
    assert [call.method for call in program.lineage.calls if call.output == frame] == ["where"]


def test_a_dataframe_of_before_the_cell_is_known_by_its_mark(cell):
    cell.plain("before = spark.range(3)")
    program = cell.capture(IMPORT + "with_options(before, name='Before')\nafter = before.where('id > 1')\n")
    assert [call.method for call in program.lineage.calls] == ["with_options", "where"]
    assert program.lineage.calls[1].inputs == (program.lineage.calls[0].output,)
    assert program.lineage.calls[0].output_expr_ids


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("", "options of with_options must be one or more of name, uid, slot_sharing_group"),
        ("name=''", "name must be a non-empty text, not ''"),
        ("uid=7", "uid must be a non-empty text, not 7"),
        ("chaining='maybe'", "chaining must be always or head or never, not 'maybe'"),
        ("max_parallelism=0", "max_parallelism must be a whole number from 1 to 32768, not 0"),
        ("max_parallelism=True", "max_parallelism must be a whole number from 1 to 32768, not True"),
    ],
)
def test_what_has_no_meaning_is_refused_at_its_line(cell, arguments, text):
    with pytest.raises(OperatorOptionsError) as refused:
        cell.capture(IMPORT + f"df = spark.range(3)\nwith_options(df, {arguments})\n")
    assert str(refused.value).startswith("cell 3, line 3: ")
    assert text in str(refused.value)


def test_what_is_no_dataframe_is_refused(cell):
    with pytest.raises(OperatorOptionsError, match="must be a DataFrame, not GroupedData"):
        cell.capture(IMPORT + "with_options(spark.range(3).groupBy('id'), name='x')\n")


def test_outside_of_a_capture_it_says_where_it_belongs(spark):
    with pytest.raises(NotCapturedError, match="%%flinkgraph"):
        with_options(spark.range(3), name="x")
