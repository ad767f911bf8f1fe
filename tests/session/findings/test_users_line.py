"""Lines of the user's are changed if it is plain what to change, and left alone otherwise."""

from __future__ import annotations

import pytest

from flinkmagic.session.findings.users_line import (
    argument_of_function,
    sides_of_join,
    with_broadcast,
    with_fewer_files,
    with_number,
    with_repartition,
    without_call,
)


@pytest.mark.parametrize(
    ("code", "changed"),
    [
        ('größen = p.orderBy("größe").limit(3)  # sorted', "größen = p.limit(3)"),
        ('a = (p.where("x > 1")).orderBy("id")', 'a = (p.where("x > 1"))'),
        ('a = p . sort( "id" )', "a = p "),
        ('.orderBy("id")', ""),  # a part of a statement
        ('a = p.orderBy("id").where(q.orderBy("id"))', ""),
        ('w = Window.partitionBy("k").orderBy("id")', ""),
        ('for p in all: p.orderBy("id").show()', ""),
        ('return p.orderBy("id")', ""),
        ("orderBy(p)", ""),
        ('a = p.orderBy("id"); b = a', ""),
    ],
)
def test_a_call_is_left_out(code, changed):
    assert without_call(code, "orderBy", "sort") == changed


@pytest.mark.parametrize(
    ("code", "changed"),
    [
        ("n = spark.range(0, 10, 1, 1)", "n = spark.range(0, 10, 1, 8)"),
        ("n = spark.range(10).where(a)", "n = spark.range(10, numPartitions=8).where(a)"),
        ("n = spark.range(0, 10, step=2)", "n = spark.range(0, 10, step=2, numPartitions=8)"),
        ("n = spark.range(0, 10, numPartitions=1)", "n = spark.range(0, 10, numPartitions=8)"),
        ("n = spark.range(0, 10, 1, parts)", ""),
        ("n = spark.range(*bounds)", ""),
        ("n = spark.range(0, 10, **more)", ""),
        ("n = spark.range(0, 10,)", ""),
        ("n = a.range(1).join(b.range(2))", ""),
    ],
)
def test_an_argument_gets_another_number(code, changed):
    assert with_number(code, "range", 3, 8, "numPartitions") == changed


def test_what_is_not_plain_is_left_alone():
    assert with_repartition("a.coalesce(n)", 1) == ""
    assert with_repartition("a.coalesce(2)", 1) == ""
    assert with_broadcast("a = F.broadcast(b).join(c)", 1) == ""
    assert with_broadcast('", ".join(names)', 1) == ""
    assert sides_of_join("a.where(x).join(b)") is None
    assert with_fewer_files("a.write.json(b.write)", 2) == ""
    assert argument_of_function('F.udf(one)("a", "b")') == ""
    assert argument_of_function("F.udf(one)(*names)") == ""
    assert argument_of_function('F.udf(one, "long")(rows.a)') == "rows.a"
