"""Operators that run Python functions belong to the calls in which the user calls these."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from flinkmagic.capturing.capture import capture
from flinkmagic.capturing.lineage import RecordedCall
from flinkmagic.capturing.source_code.source_location import SourceLocation
from flinkmagic.planning import plan
from flinkmagic.planning.python_callers import callers


def calling(text, *lines, **names):
    """The numbers of the lines that call an operator's functions."""
    calls = [
        RecordedCall(number, "withColumn", line, SourceLocation("cell 1", "<cell 1>", number, line), (), number, ())
        for number, line in enumerate(lines, start=1)
    ]
    return [call.index for call in callers(text, calls, names)]


@pytest.mark.parametrize(
    ("operator", "lines"),
    [
        ("BatchEvalPython [loud(text#1)#9], [pythonUDF0#10]", [1]),
        ("BatchEvalPython [loud(cast(id#1L as string))#9L], [pythonUDF0#10]", [1]),
        ("BatchEvalPython [short(loud(text#1)#9)#11], [pythonUDF0#10]", [1, 2]),
        ("ArrowEvalPython [short(text#1)#9], [pythonUDF0#10], 101", [2]),
        ("BatchEvalPython [other(text#1)#9], [pythonUDF0#10]", []),
        ("BatchEvalPython [loud(text#1)#9, other(text#1)#10], [pythonUDF0#11, pythonUDF1#12]", []),
        ("BatchEvalPython [often(text#1)#9], [pythonUDF0#10]", []),  # on two lines: which of them is not plain
    ],
)
def test_a_function_is_known_by_its_name(operator, lines):
    known = (
        'withColumn("a", loud("text"))',
        'withColumn("b", F.udf(short)("text"))',
        'withColumn("loud", F.col("loud").cast("string"))',
        'withColumn("c", often("text"))',
        'withColumn("d", often("text"))',
    )
    assert calling(operator, *known) == lines


def test_a_function_may_have_another_name_in_the_user_s_code():
    operator = "BatchEvalPython [<lambda>(text#1)#9], [pythonUDF0#10]"
    shout, other = F.udf(lambda text: text.upper()), F.udf(len)
    lines = ('withColumn("a", shout("text"))', 'select("shout")', 'withColumn("b", other("text"))')
    assert calling(operator, *lines, shout=shout, other=other) == [1]
    assert calling(operator, *lines) == []
    assert calling(operator, 'select(F.udf(lambda text: text[:3])("text"))', "transform(lambda df: df)") == [1]


def test_a_projection_of_a_later_line_takes_no_function_from_the_line_that_calls_it(spark):
    def loud(text):
        return text.upper()

    with capture(spark) as program:
        rows = spark.createDataFrame([("a",)], "text string").withColumn("loud", F.udf(loud)("text"))
        named = rows.select(F.concat("loud", F.lit("!")).alias("louder"))
    assert program.results == {"named": named}
    calls = {node.metadata["kind"]: node.metadata["call"] for node in _nodes(program)}
    (function,) = [call for kind, call in calls.items() if kind.endswith("EvalPythonExec")]
    assert function == 'withColumn("loud", F.udf(loud)("text"))'
    assert calls["ProjectExec"] == 'select(F.concat("loud", F.lit("!")).alias("louder"))'


def _nodes(program):
    return [node for node in plan(program).environment.get_stream_graph().nodes.values() if "kind" in node.metadata]
