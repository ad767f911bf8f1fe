"""Lists and releases what is retained of finished jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flinkmagic.errors.usage import UnknownNameError
from flinkmagic.reuse.durable_store import drop_at
from flinkmagic.reuse.retained_answers import NAME, RetainedAnswer, retained_answers
from flinkmagic.reuse.retained_results import RetainedResult, retained_results

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


ALL = "all"
"""The name that releases all results."""


def retained(spark: SparkSession) -> list[RetainedResult | RetainedAnswer]:
    """Return what later jobs of the session need not compute again: results, then answers, each last used first."""
    sc = spark.sparkContext
    return [*retained_results(sc).entries(), *retained_answers(sc).entries()]


def release_retained(spark: SparkSession, name: str) -> list[RetainedResult | RetainedAnswer]:
    """Release one retained result, all of one graph, or all, and return them; they are computed again when needed.

    What is stored for later processes is removed from its store, too.

    Parameters
    ----------
    name : str
        As in `retained`: a result's name, or a graph's; ``"answers"`` for all answers; ``"all"``, unless
        something has that name.

    Raises
    ------
    UnknownNameError
        If nothing is retained under the name.
    """
    results, answers = retained_results(spark.sparkContext), retained_answers(spark.sparkContext)
    gone: list[RetainedResult | RetainedAnswer] = [
        *results.release(name),
        *answers.drop(lambda one: name in (NAME, one.name)),
    ]
    if name in (NAME, ALL):
        answers.schemas.clear()
    if not gone and name == ALL:
        gone = [*results.drop(lambda one: True), *answers.drop(lambda one: True)]
    for one in gone:
        if one.stored_at is not None:
            drop_at(one.stored_at)
    if not gone:
        raise UnknownNameError("retained result", name, [one.name for one in retained(spark)])
    return gone
