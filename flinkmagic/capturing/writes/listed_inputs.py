"""Finds which of the files that a DataFrame has listed are really read, and which of those have changed since.

A DataFrame over files holds their list from when it was made. Over a partitioned folder it has listed all of it; a
query that filters by a partition column reads some. Spark lets such a query overwrite the other partitions, and so do
we (``driver/java/PrunedReads.java`` plans the query, so it is asked only where a write seems to overwrite what is
read).

If a file has changed since then, Spark reads it up to its old length, or reads what has taken its name: rows that the
plain cell, which writes on that line, would not have written.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from pyspark import SparkContext

from flinkmagic.capturing.driver.capture_reader import as_json, leaves_of
from flinkmagic.capturing.driver.java_classes import CLASSES
from flinkmagic.capturing.writes.deferred_write import DeferredWrite
from flinkmagic.capturing.writes.targets import Source, resolve_uri, sources_of_leaf
from flinkmagic.errors.capturing import InputChangedError, InputChangedWarning
from flinkmagic.jvm.java import execution_of, query_execution, session_state


def pruned_sources(df: Any) -> tuple[Source, ...] | None:
    """Return what a DataFrame's query reads, file by file if its files are listed; None if that cannot be told."""
    spark, analysed = df.sparkSession, execution_of(df).analyzed()
    # Planned separately: when first used, the DataFrame itself is planned with what Spark's cache holds then.
    query = query_execution(spark._jvm, session_state(spark), analysed)
    places = as_json(CLASSES.shared_instance(SparkContext._gateway, "PrunedReads").places(query))
    if places is None:
        return None
    found = dict.fromkeys(Source(path=resolve_uri(place), listed=True, flat=True) for place in places)
    for leaf in leaves_of(analysed):
        if not (leaf.kind == "LogicalRelation" and leaf.paths is not None and leaf.listed):
            found.update(dict.fromkeys(sources_of_leaf(leaf)))
    return tuple(found)


def check_inputs(writes: Iterable[DeferredWrite]) -> None:
    """Make sure that no write runs on files that have changed since its line.

    What had changed before the write's own line, the plain cell would have read, too: the user is warned of that.

    Raises
    ------
    InputChangedError
        If a listed file is gone, or was modified after the write's line.
    """
    reader = None
    for write in writes:
        if not any(source.listed for source in write.sources):
            continue
        reader = reader or CLASSES.new_instance(SparkContext._gateway, "ListedInputs")
        conf = session_state(write.df.sparkSession).newHadoopConf()
        plan = execution_of(write.df).analyzed()
        changed = as_json(reader.changed(plan, conf))
        for file in changed and _that_are_read(write, changed):
            if file["modified"] is None or file["modified"] >= write.taken_at_ms:
                raise InputChangedError(
                    write.facts.label, write.location, file["path"], is_gone=file["modified"] is None
                )
            warnings.warn(InputChangedWarning(write.facts.label, write.location, file["path"]), stacklevel=2)


def _that_are_read(write: DeferredWrite, files: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the listed files of a write that its query reads: not those of partitions that a filter excludes."""
    pruned = pruned_sources(write.df) if write.pruned is None else write.pruned
    if pruned is None:
        return files
    read = {source.path for source in pruned}
    return [
        file
        for file in files
        if resolve_uri(file["path"].rpartition("/")[0]) in read or resolve_uri(file["path"]) in read
    ]
