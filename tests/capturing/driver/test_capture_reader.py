"""What a capture asks the driver for, each in one call."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from flinkmagic.capturing.driver import capture_reader
from flinkmagic.jvm.java import session_state


@pytest.mark.long
def test_the_ids_of_a_querys_columns_are_those_of_sparks_attributes(cell: Any) -> None:
    df = cell.spark.range(3).selectExpr("id", "id + 1 AS next", "'a' AS `odd name`")
    execution = df._jdf.queryExecution()
    output = execution.analyzed().output()
    expected = tuple(output.apply(place).exprId().id() for place in range(3))
    assert capture_reader.output_ids(execution) == expected
    assert len(set(expected)) == 3


def test_a_sessions_facts_are_equal_until_something_is_set(cell: Any) -> None:
    spark = cell.spark.newSession()
    before = capture_reader.session_facts(spark)
    assert capture_reader.session_facts(spark) == before
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    after = capture_reader.session_facts(spark)
    assert after != before
    facts = capture_reader.as_json(after)
    assert (facts["catalog"], facts["namespace"]) == ("spark_catalog", ["default"])
    assert facts["conf"]["spark.sql.session.timeZone"] == "Asia/Tokyo"


def test_the_state_of_a_session_is_asked_for_once(cell: Any) -> None:
    assert session_state(cell.spark) is session_state(cell.spark)
    assert session_state(cell.spark) is not session_state(cell.spark.newSession())


def test_leaves_come_with_the_folders_that_their_dataframes_listed(cell: Any, numbers: Any) -> None:
    left, right = numbers("left", 3), numbers("right", 4)
    cell.spark.read.parquet(right).createOrReplaceTempView("right_side")
    df = cell.spark.read.parquet(left).union(cell.spark.range(2)).where("id < (SELECT max(id) FROM right_side)")
    leaves = list(capture_reader.leaves_of(df._jdf.queryExecution().analyzed()))
    assert [(leaf.kind, leaf.paths, leaf.listed) for leaf in leaves] == [
        ("LogicalRelation", (f"file:{left}",), True),
        ("Range", None, False),
        ("LogicalRelation", (f"file:{right}",), True),
    ]
    assert [leaf.jvm_leaf().getClass().getSimpleName() for leaf in leaves] == [leaf.kind for leaf in leaves]


def test_a_write_to_files_tells_where_and_how(cell: Any) -> None:
    program = cell.capture(
        """
        df = spark.range(4).selectExpr("id", "id % 2 AS Day", "id AS b")
        df.write.partitionBy("Day").option("partitionOverwriteMode", "dynamic").mode("overwrite").orc(at("out"))
        """
    )
    written = capture_reader.file_write(program.writes[0].command, session_state(cell.spark))
    options = written.pop("options")
    assert written == {
        "path": f"file:{cell.at('out')}",
        "file": "out",
        "mode": "Overwrite",
        "format": "orc",
        "columns": ["Day"],
        "dynamic": True,
        "table": False,
        "elsewhere": [],
    }
    assert {key.lower(): value for key, value in options.items()}["partitionoverwritemode"] == "dynamic"


@pytest.mark.long
def test_many_folders_are_read_in_one_answer(cell: Any) -> None:
    paths = [cell.at(f"folder_with_a_long_name_{'x' * 60}_{number}") for number in range(200)]
    cell.spark.range(1).write.parquet(paths[0])
    for path in paths[1:]:
        shutil.copytree(paths[0], path)
    df = cell.spark.read.parquet(*paths)
    (leaf,) = capture_reader.leaves_of(df._jdf.queryExecution().analyzed())
    assert leaf.paths == tuple(f"file:{path}" for path in paths)
