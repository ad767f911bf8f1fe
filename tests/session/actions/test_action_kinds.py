"""What an action that fails says it called: the JVM's method that plain PySpark calls."""

from __future__ import annotations

import re

import pytest
from py4j.protocol import Py4JJavaError

from flinkmagic.session.actions.action_kinds import _KINDS

ACTIONS = {
    "collect": ["broken.collect()"],
    "toArrow": ["broken.toArrow()"],
    "toPandas": ["broken.toPandas()"],
    "foreach": ["broken.foreach(print)"],
    "foreachPartition": ["broken.foreachPartition(print)"],
    "toLocalIterator": ["list(broken.toLocalIterator())"],
    "tail": ["broken.tail(1)"],
    "take": ["broken.take(1)"],
    "head": ["broken.head()"],
    "first": ["broken.first()"],
    # Of a join's two sides, the one that is broken is read by the last stage.
    "show": ["broken.show()", "joined.show()"],
    "__repr__": ["repr(broken)", "repr(joined)"],
    "_repr_html_": ["broken._repr_html_()"],
    "isEmpty": ["broken.isEmpty()", "joined.isEmpty()"],
    "count": ["read.count()", "broken.count()"],
    "approxQuantile": ["broken.approxQuantile('count', [0.5], 0.1)"],
    "corr": ["broken.corr('id', 'count')"],
    "cov": ["broken.cov('id', 'count')"],
}


@pytest.mark.filterwarnings("ignore:toPandas attempted Arrow")
@pytest.mark.parametrize("action", _KINDS)
def test_an_action_fails_in_the_words_of_plain_pyspark(session, tmp_path, action) -> None:
    if action == "toArrow" and not hasattr(session.spark.range(0), "toArrow"):
        pytest.skip("Spark 3.5 has none")
    (tmp_path / "broken.parquet").write_text("no parquet")
    read = session.spark.read.schema("id long").parquet(str(tmp_path))
    grouped = session.spark.range(50).selectExpr("id % 9 AS id").groupBy("id").count()
    session.namespace.update(read=read, broken=read.groupBy("id").count(), joined=grouped.join(read, "id"))
    session.spark.conf.set("spark.sql.repl.eagerEval.enabled", "true")
    try:
        for line in ACTIONS[action]:
            (plain, _), (driven, error) = [failed(session, run, line) for run in (session.plain, session.cell)]
            assert driven == plain, line
            assert repr(error).startswith(f"Py4JJavaError({error.errmsg!r}, ")
            assert "broken.parquet is not a Parquet file" in str(error)
    finally:
        session.spark.conf.unset("spark.sql.repl.eagerEval.enabled")


def failed(session, run, line: str) -> tuple[str, Py4JJavaError]:
    """The first line of what a line raises, without the number of the object that it calls."""
    with pytest.raises(Py4JJavaError) as raised:
        run(line)
    return re.sub(r"\bo\d+\.", "o.", str(raised.value).split("\n")[0]), raised.value
