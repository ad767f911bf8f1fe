"""`split`, `side_output` and `randomSplit`: what they take and refuse, and their rows where lines run immediately."""

from __future__ import annotations

import gc
import random

import pytest
from pyspark.sql import functions as F

from flinkmagic.capturing.hooks import split_hooks
from flinkmagic.capturing.lineage import Selected
from flinkmagic.capturing.splits import side_output, split
from flinkmagic.errors.capturing import SplitArgumentsError
from flinkmagic.graph.transformations import OutputTag

IMPORT = "import flinkmagic\n"


@pytest.fixture
def chance(spark):
    """Rows that are others each time."""
    drawn = F.udf(lambda: random.SystemRandom().random(), "double").asNondeterministic()
    return spark.range(0, 400, 1, 3).withColumn("r", drawn())


def ids(*parts):
    return sorted(row["id"] for part in parts for row in part.collect())


@pytest.mark.parametrize(
    ("conditions", "text"),
    [
        ({}, "conditions of split must be a mapping of names to conditions"),
        (["id > 1"], "conditions of split must be a mapping of names to conditions"),
        ({"": "id > 1"}, "The name of a split's rows must be a non-empty text, not ''"),
        ({"a": 7}, "The condition of 'a' must be a column or an expression in SQL, not 7"),
        ({"a": " "}, "The condition of 'a' must be a column or an expression in SQL, not ' '"),
    ],
)
def test_what_split_refuses(spark, conditions, text):
    with pytest.raises(SplitArgumentsError, match=text):
        split(spark.range(3), conditions)


def test_what_select_and_side_output_refuse(spark):
    parts = split(spark.range(3), {"a": "id > 1", "b": "id < 1"})
    assert parts.names == ("a", "b")
    with pytest.raises(SplitArgumentsError, match=r"names of select must be one or more of a, b, not \('a', 'c'\)"):
        parts.select("a", "c")
    with pytest.raises(SplitArgumentsError, match=r"must be one or more of a, b, not \(\)"):
        parts.select()
    with pytest.raises(SplitArgumentsError, match=r"a flinkmagic.OutputTag\(\"name\"\), not 'late'"):
        side_output(spark.range(3), "late", "id > 1")
    with pytest.raises(SplitArgumentsError, match="df of side_output must be a DataFrame, not list"):
        side_output([1], OutputTag("late"), "id > 1")


def test_a_row_has_all_names_whose_conditions_are_true_and_null_is_not_true(spark):
    rows = spark.range(8).withColumn("v", F.expr("nullif(id, 4)"))
    parts = split(rows, {"even": "v % 2 = 0", "low": F.col("v") < 3})
    assert (ids(parts.select("even")), ids(parts.select("low"))) == ([0, 2, 6], [0, 1, 2])
    assert ids(parts.select("low", "even", "low")) == [0, 1, 2, 6]
    main, high = side_output(rows, OutputTag("high"), "v > 5")
    assert (ids(main), ids(high)) == ([0, 1, 2, 3, 4, 5], [6, 7])
    assert main.columns == high.columns == ["id", "v"]


def test_plain_lines_see_one_version_of_rows_that_are_others_each_time(chance):
    again = chance.where("r < 0.5").union(chance.where("r >= 0.5"))
    assert ids(again) != list(range(400)), "plain Spark computes them for each use"
    parts = split(chance, {"low": "r < 0.5", "high": "r >= 0.5"})
    low, high = parts.select("low"), parts.select("high")
    assert ids(low, high) == list(range(400))
    assert ids(low.join(high, "id")) == []
    main, late = side_output(chance, OutputTag("late"), "r > 0.7")
    assert ids(main, late) == list(range(400))


def test_a_condition_that_depends_on_chance_is_decided_once(spark):
    parts = split(spark.range(300), {"a": F.rand() < 0.5, "all": "true"})
    first = ids(parts.select("a"))
    assert 0 < len(first) < 300
    main, side = side_output(spark.range(300), OutputTag("s"), F.udf(lambda: random.random() < 0.5, "boolean")
                             .asNondeterministic()())  # fmt: skip
    assert ids(main, side) == list(range(300))
    assert main.columns == parts.select("a", "all").columns == ["id"]


def test_sparks_log_says_nothing_of_a_split(spark):
    log4j = spark._jvm.org.apache.logging.log4j
    root, text = log4j.LogManager.getRootLogger(), spark._jvm.java.io.StringWriter()
    told = log4j.core.appender.WriterAppender.createAppender(None, None, text, "told", False, True)
    before = str(root.getLevel())
    told.start()
    root.addAppender(told)
    spark.sparkContext.setLogLevel("WARN")
    try:
        F.col("id") == F.col("id")  # noqa: B015 - Spark warns of it
        assert "trivially true" in text.toString()
        text.getBuffer().setLength(0)
        split(spark.range(9), {"low": "id < 5"}).select("low")
        assert "trivially" not in text.toString()
    finally:
        spark.sparkContext.setLogLevel(before)
        root.removeAppender(told)


def kept_frames():
    return [frame for _, frame in split_hooks._persisted]


@pytest.mark.long
def test_no_other_query_gets_the_kept_rows_and_they_are_released(spark, chance):
    others = kept_frames()
    parts = split(chance, {"low": "r < 0.5", "high": "r >= 0.5"})
    assert parts.select("low").count() + parts.select("high").count() == 400
    assert "InMemoryTableScan" not in chance._jdf.queryExecution().executedPlan().toString()
    # A split lets go of others that nothing refers to any more: there may be fewer than before.
    [own] = [frame for frame in kept_frames() if all(frame is not other for other in others)]
    relation = parts.select("low")._jdf.queryExecution().executedPlan().toString()
    assert "InMemoryTableScan" in relation
    parts.unpersist()
    assert "InMemoryTableScan" not in parts.select("low")._jdf.queryExecution().executedPlan().toString()
    del parts
    gc.collect()
    for _ in range(50):
        spark._jvm.System.gc()
        split(spark.range(3), {"a": "id > 1"}).select("a").count()
        gc.collect()
        if all(frame is not own for frame in kept_frames()):
            break
    assert all(frame is not own for frame in kept_frames()), "what nothing refers to is let go of by a later split"


def test_a_captured_split_is_recorded_with_its_line(cell):
    program = cell.capture(
        IMPORT
        + "rows = spark.range(9)\n"
        + "parts = flinkmagic.split(rows, {'even': 'id % 2 = 0', 'odd': 'id % 2 = 1'})\n"
        + "even = parts.select('even')\n"
        + "main, late = flinkmagic.side_output(rows, flinkmagic.OutputTag('late'), 'id > 6')\n"
        + "one, two = even.randomSplit([1.0, 3.0], 5)\n"
    )
    names = program.variables
    of = {name: program.lineage.selections.get(program.frame_of(df)) for name, df in names.items()}
    rows, even = program.frame_of(names["rows"]), program.frame_of(names["even"])
    assert (of["even"].parent, of["even"].selected) == (rows, Selected(names=("even",)))
    assert (of["main"].selected, of["late"].selected) == (Selected(), Selected(tag="late"))
    assert {of["main"].parent, of["late"].parent} == {rows}
    assert [of[name].selected.names for name in ("one", "two")] == [("part 1 of 2",), ("part 2 of 2",)]
    assert of["one"].parent == of["two"].parent == even
    assert [(call.method, call.text, call.location.line) for call in program.lineage.calls[1:4]] == [
        ("split", "select('even')", 4),
        ("side_output", "side_output(rows, flinkmagic.OutputTag('late'), 'id > 6')", 5),
        ("side_output", "side_output(rows, flinkmagic.OutputTag('late'), 'id > 6')", 5),
    ]


def test_another_cell_than_the_one_that_split_may_select(cell):
    cell.capture(IMPORT + "parts = flinkmagic.split(spark.range(9), {'even': 'id % 2 = 0', 'odd': 'id % 2 = 1'})\n")
    cell.plain("plain = parts.select('even')")
    program = cell.capture("odd = parts.select('odd')\n")
    assert ids(cell.namespace["plain"]) == [0, 2, 4, 6, 8]
    assert program.lineage.selections[program.frame_of(program.variables["odd"])].selected == Selected(names=("odd",))
