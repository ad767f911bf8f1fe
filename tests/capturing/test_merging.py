"""Programs of several cells become one: a DataFrame of an earlier cell stays the same one, and order is kept."""

from __future__ import annotations

from typing import Any

import pytest

from flinkmagic.capturing.merging import check_runnable, link, merge, over_frames, spanning
from flinkmagic.errors.capturing import OverwritesInputError

FIRST = """\
numbers_ = spark.range(0, 100, 1, 2)
late = numbers_.withColumn("k", F.col("id") % 7)
"""
SECOND = """\
counted = late.groupBy("k").count()
counted.write.mode("overwrite").json(at("out"))
"""


def texts(program: Any) -> list[str]:
    return [call.text for call in program.lineage.calls]


def test_a_later_cell_knows_what_it_goes_on_from(cell: Any) -> None:
    first = cell.capture(FIRST, name="first")
    second = cell.capture(SECOND, name="second", earlier=[first])
    assert [(use.what, use.program) for use in second.uses] == [("late", first)]
    assert str(second.uses[0]) == "late of first, cell 3"
    assert first.uses == ()


def test_what_no_cell_made_belongs_to_none(cell: Any) -> None:
    cell.plain("late = spark.range(9).withColumn('k', F.col('id') % 2)")
    first = cell.capture("one = late.where('k = 1')", name="first")
    second = cell.capture("two = late.where('k = 0')", name="second", earlier=[first])
    assert second.uses == ()
    assert spanning(second) is second


def test_a_call_without_a_name_is_named_by_its_text(cell: Any) -> None:
    first = cell.capture("held = [spark.range(9).where('id > 1')]\nother = spark.range(2)", name="first")
    second = cell.capture("x = held[0].count", name="second", earlier=[first])
    assert second.uses == (), "a method that is not called makes nothing"
    second = cell.capture("x = held[0].limit(3)", name="second", earlier=[first])
    assert [use.what for use in second.uses] == ["where('id > 1')"]


def test_a_whole_knows_which_rows_are_local(cell: Any) -> None:
    first = cell.capture("one = spark.createDataFrame([(n,) for n in range(3)], 'id INT')", name="first")
    second = cell.capture("two = spark.createDataFrame([(n,) for n in range(4)], 'id INT')", name="second")
    assert len(first.lineage.local_rdds) == len(second.lineage.local_rdds) == 1
    assert merge([first, second]).lineage.local_rdds == first.lineage.local_rdds | second.lineage.local_rdds


def test_spanning_has_the_calls_of_all_and_the_sinks_of_one(cell: Any) -> None:
    first = cell.capture(FIRST, name="first")
    second = cell.capture(SECOND, name="second", earlier=[first])
    whole = spanning(second)
    assert texts(whole) == texts(first) + texts(second)
    assert [write.name for write in whole.writes] == ["out"]
    assert whole.results == {}
    late = whole.frame_of(cell.namespace["late"])
    assert late is not None
    (grouped,) = [call for call in whole.lineage.calls if late in call.inputs]
    assert grouped.method == "count"
    assert whole.names_of(late) == ("late",)
    assert [call.index for call in whole.lineage.calls] == list(range(len(whole.lineage.calls)))
    assert late in whole.lineage.ancestors([whole.writes[0].frame])


def test_a_result_that_a_later_cell_uses_is_none_of_the_whole(cell: Any) -> None:
    first = cell.capture(FIRST + "aside = spark.range(5)\n", name="first")
    assert set(first.results) == {"late", "aside"}
    second = cell.capture("by_k = late.groupBy('k').count()", name="second", earlier=[first])
    whole = merge([first, second])
    assert list(whole.results) == ["aside", "by_k"]
    assert list(merge([first]).results) == list(first.results)


def test_results_and_writes_stand_side_by_side(cell: Any) -> None:
    first = cell.capture(FIRST, name="first")
    second = cell.capture("spark.range(3).write.json(at('three'))", name="second", earlier=[first])
    whole = merge([first, second])
    assert [write.name for write in whole.writes] == ["three"]
    assert list(whole.results) == ["late"]
    assert whole.result_session("late") is first.session


def test_equal_names_are_told_apart(cell: Any) -> None:
    first = cell.capture("spark.range(3).write.json(at('a/out'))\n", name="first")
    second = cell.capture("spark.range(3).write.json(at('b/out'))\n", name="second")
    third = cell.capture("x = spark.range(3)\n", name="third")
    fourth = cell.capture("x = spark.range(4)\n", name="fourth")
    whole = merge([first, second, third, fourth])
    assert [write.name for write in whole.writes] == ["out", "second.out"]
    assert list(whole.results) == ["x", "fourth.x"]
    assert whole.variables["x"] is cell.namespace["x"]


def test_writes_to_one_place_keep_the_order_of_the_cells(cell: Any) -> None:
    first = cell.capture(
        "spark.range(3).write.mode('append').json(at('log'))\nspark.range(3).write.json(at('other'))\n", name="first"
    )
    second = cell.capture(
        "spark.range(4).write.json(at('new'))\nspark.range(3).write.mode('append').json(at('log'))\n", name="second"
    )
    assert [write.after for write in second.writes] == [(), ()]
    assert [(write.index, write.after) for write in merge([first, second]).writes] == [
        (0, ()),
        (1, ()),
        (2, ()),
        (3, (0,)),
    ]


def test_own_order_moves_along(cell: Any) -> None:
    first = cell.capture("spark.range(3).write.json(at('x'))\n", name="first")
    twice = "spark.range(3).write.mode('append').json(at('log'))\n" * 2
    second = cell.capture(twice, name="second")
    assert [write.after for write in merge([first, second]).writes] == [(), (), (1,)]


def test_a_whole_that_overwrites_what_it_reads_is_refused_to_run(cell: Any, numbers: Any) -> None:
    numbers("in", 10)
    reads = cell.capture("r = spark.read.parquet(at('in')).where('id > 3')", name="reads")
    writes = cell.capture("spark.range(5).write.mode('overwrite').parquet(at('in'))", name="writes")
    check_runnable(writes)
    with pytest.raises(OverwritesInputError, match="the result r"):
        check_runnable(merge([reads, writes]))
    assert cell.rows("in") == list(range(10))


def test_a_cell_that_ran_again_leaves_its_former_frames_to_those_that_use_them(cell: Any) -> None:
    old = cell.capture(FIRST, name="first")
    second = cell.capture(SECOND, name="second", earlier=[old])
    new = cell.capture(FIRST.replace("% 7", "% 9"), name="first", earlier=[second])
    whole = merge([second, new])
    # The old cell's calls keep their words, and its result is none.
    assert texts(whole) == texts(old) + texts(second) + texts(new)
    assert list(whole.results) == ["late"]
    assert whole.results["late"] is cell.namespace["late"]


def test_frames_that_exist_already(cell: Any) -> None:
    first = cell.capture(FIRST, name="first")
    late = cell.namespace["late"]
    program = over_frames({"late": late, "plain": cell.spark.range(2)}, [first], "picked")
    assert [use.what for use in program.uses] == ["late"]
    assert list(spanning(program).results) == ["late", "plain"]


def test_linking_skips_the_program_itself(cell: Any) -> None:
    first = cell.capture(FIRST, name="first")
    link(first, [first])
    assert first.uses == ()


def test_what_was_asked_of_operators_goes_along(cell: Any) -> None:
    first = cell.capture("aside = spark.range(4)\n" + FIRST, name="first")
    asked: Any = object()
    number = first.frame_of(cell.namespace["late"])
    assert number is not None
    first.lineage.marks = {number: asked}
    second = cell.capture(SECOND, name="second", earlier=[first])
    whole = spanning(second)
    assert whole.lineage.marks == {whole.frame_of(cell.namespace["late"]): asked}


def test_what_an_action_is_called_on_goes_along(cell: Any) -> None:
    first = cell.capture("aside = spark.range(4)\n" + FIRST, name="first")
    second = cell.capture("found = late.where('k = 1')", name="second", earlier=[first])
    found = cell.namespace["found"]
    second.asked = second.frame_of(found)
    whole = spanning(second)
    assert whole.asked == whole.frame_of(found) != second.asked
