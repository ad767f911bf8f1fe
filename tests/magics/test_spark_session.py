"""Which session a cell belongs to."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from flinkmagic.errors.capturing import SparkConnectSessionError
from flinkmagic.magics.spark_session import cell_session


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
