"""Finds what a query really reads of the files that were listed for it, by ``driver/java/PrunedReads.java``.

A DataFrame over a partitioned folder has listed all of it; a query that filters by a partition column reads some. Spark
lets such a query overwrite the other partitions, and so do we. This plans the query, so it is asked only where a write
seems to overwrite what is read.
"""

from __future__ import annotations

import json
from typing import Any

from pyspark import SparkContext

from flinkmagic.capturing.driver.capture_reader import leaves_of
from flinkmagic.capturing.driver.java_classes import CLASSES
from flinkmagic.capturing.writes.targets import Source, resolve_uri, sources_of_leaf
from flinkmagic.jvm.java import query_execution, session_state


def pruned_sources(df: Any) -> tuple[Source, ...] | None:
    """Return what a DataFrame's query reads, file by file if its files are listed; None if that cannot be told."""
    spark, analysed = df.sparkSession, df._jdf.queryExecution().analyzed()
    # Planned separately: when first used, the DataFrame itself is planned with what Spark's cache holds then.
    query = query_execution(spark._jvm, session_state(spark), analysed)
    places = json.loads(CLASSES.shared_instance(SparkContext._gateway, "PrunedReads").places(query))
    if places is None:
        return None
    found = dict.fromkeys(Source(path=resolve_uri(place), listed=True, flat=True) for place in places)
    for leaf in leaves_of(analysed):
        if not (leaf.kind == "LogicalRelation" and leaf.paths is not None and leaf.listed):
            found.update(dict.fromkeys(sources_of_leaf(leaf)))
    return tuple(found)
