"""Which session a cell belongs to."""

from __future__ import annotations

import sys
import venv
from pathlib import Path
from types import SimpleNamespace

import pytest

from flinkmagic.errors.capturing import SparkConnectSessionError
from flinkmagic.jvm import contexts
from flinkmagic.magics.spark_session import cell_session, say_other_python


def shell(**namespace):
    return SimpleNamespace(user_ns=namespace)


def test_the_one_that_the_user_named(spark) -> None:
    other = spark.newSession()
    assert cell_session(shell(spark=other)) is other


def test_the_active_one_is_bound_to_spark(spark) -> None:
    cell = shell()
    found = cell_session(cell)
    assert found.sparkContext is spark.sparkContext
    assert cell.user_ns["spark"] is found


def test_a_connect_session_is_refused() -> None:
    class SparkSession:
        __module__ = "pyspark.sql.connect.session"

    with pytest.raises(SparkConnectSessionError, match="no SparkContext"):
        cell_session(shell(spark=SparkSession()))


@pytest.fixture
def workers_run(spark, monkeypatch):
    """Let the workers of the session run some Python, and no cell have asked for it yet."""

    def run(python):
        monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python))
        vars(spark.sparkContext).get(contexts._PLACE, {}).pop(say_other_python, None)

    return run


@pytest.mark.parametrize("begins", ["%%flinkgraph first\nn = spark.range(3).groupBy().count()", "%flinkgraph on"])
def test_the_first_cell_says_which_python_the_workers_run_if_it_is_another(
    notebook, workers_run, tmp_path, begins
) -> None:
    venv.create(tmp_path / "other", symlinks=True)
    other = tmp_path / "other" / "bin" / "python"
    workers_run(other)
    try:
        told = notebook.run(begins).stderr.splitlines()
        assert told[0].startswith(
            f"Spark's Python workers run {other} of {tmp_path / 'other'}, this process {sys.executable}: "
        )
        assert notebook.run("%%flinkgraph second\nn = spark.range(3).groupBy().count()").stderr == ""
    finally:
        notebook.run("%flinkgraph off")


def test_a_python_that_does_not_run_is_told_and_this_one_under_another_name_is_not(
    notebook, workers_run, tmp_path
) -> None:
    cell = "%%flinkgraph first\nn = spark.range(3).groupBy().count()"
    workers_run("no-such-python")
    assert "run no-such-python, which does not run here, this process" in notebook.run(cell).stderr
    beside = Path(sys.executable).parent
    workers_run(beside / ".." / beside.name / Path(sys.executable).name)
    assert notebook.run(cell).stderr == ""
