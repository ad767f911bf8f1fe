"""What is retained of finished jobs, to list or release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flinkmagic.errors.usage import UnknownNameError
from flinkmagic.reuse.retained_results import RetainedResult, retained_results

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


ALL = "all"
"""What all results are released by."""


def retained(spark: SparkSession) -> list[RetainedResult]:
    """Return the results that later jobs of the session need not compute again, last used first."""
    return retained_results(spark.sparkContext).entries()


def release_retained(spark: SparkSession, name: str) -> list[RetainedResult]:
    """Release one retained result, all of a graph's, or all that there are; they are computed again when needed.

    Parameters
    ----------
    name : str
        As `retained` returns it: a result's name, or a graph's; ``"all"``, unless something has that name.

    Returns
    -------
    list of RetainedResult
        What was released.

    Raises
    ------
    UnknownNameError
        If nothing is retained under the name.
    """
    store = retained_results(spark.sparkContext)
    gone = store.release(name) or (store.drop(lambda one: True) if name == ALL else [])
    if not gone:
        raise UnknownNameError("retained result", name, [one.name for one in store.entries()])
    return gone
