"""Rows that are sorted for nothing: whatever reads them reorders them, or does not keep their order.

Source: Spark's rule ``EliminateSorts``, which removes such a sort below a join, an aggregate and another sort, but not
below a window, a shuffle that a function of groups needs, or a sink; and which leaves the shuffle of a sort in place
where a write sorts by its partitions (``V1Writes``).

Threshold: any, if its cost is worth telling: what Spark has measured of the shuffle and the sort, and a microsecond for
each row that is taken apart and made again, at most the time of the stage.

Counter-example: ``orderBy`` before a write of files without partitions, which keep the order; before ``collect_list``
and ``first``, whose results depend on it; ``repartitionByRange``, whose partitions are what was asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from flinkmagic.display.findings import Finding
from flinkmagic.session.findings.facts import SHUFFLES, InputFacts, JobFacts, OperatorFacts, VertexFacts, metric
from flinkmagic.session.findings.rule import Rule
from flinkmagic.session.findings.users_line import without_call

ROW_MS = 0.001

_SORT = "SortExec"
_KEEP_ORDER = frozenset({"ProjectExec", "FilterExec", "ColumnarToRowExec", "RowToColumnarExec", "AQEShuffleReadExec"})
_IS_GLOBAL = re.compile(r"\], true, \d+$")
"""How Spark's text of a sort of all rows ends."""
_ORDERS = re.compile(r"\b(?:orderBy|sort)\(|\border\s+by\b", re.IGNORECASE)
_NEEDS_ORDER = re.compile(
    r"\b(?:first|last|nth_value|collect_list|collect_set|any_value|listagg|mode)\(|InPandas|InArrow"
)
"""In Spark's text of an operator: a function whose result depends on the order of its rows, whatever Spark promises."""
_KEEPS_NO_ORDER = re.compile(r"noop-table|jdbc", re.IGNORECASE)
"""In Spark's name and text of a write: tables whose rows have no order."""


def _find(job: JobFacts) -> Iterator[Finding]:
    for vertex in job.vertices:
        for read in vertex.inputs:
            producer = job.vertex.get(read.vertex_id) if read.partitioner == "RANGE" else None
            sort = _sort(vertex, read) if producer is not None else None
            if producer is None or sort is None or len(job.consumers(producer)) != 1:
                continue
            readers = [one for each in (vertex, *job.consumers(vertex)) for one in each.operators]
            undone = _undone(job, vertex, sort, producer)
            if not undone or any(_NEEDS_ORDER.search(one.text) for one in readers):
                continue
            line = producer.above if producer.above is not None and producer.above.line else sort
            yield RULE.finding(
                f"all rows are sorted, and then {undone}",
                vertex,
                line,
                _cost_ms(vertex, sort, producer),
                "estimated: what Spark measured of writing and sorting, and 1 µs for each row",
                "likely",
                f"{without_call(line.code, 'orderBy', 'sort') or 'df = ...'}  # without orderBy: sort last, if at all",
            )


def _sort(vertex: VertexFacts, read: InputFacts) -> OperatorFacts | None:
    """Return the sort that reads an edge; None if something else does."""
    one = vertex.first(lambda one: one.id == read.reader)
    if one is not None and one.kind in _KEEP_ORDER:
        one = next(iter(_readers(vertex, one)), None)
    return one if one is not None and one.kind == _SORT else None


def _readers(vertex: VertexFacts, below: OperatorFacts) -> list[OperatorFacts]:
    """Return what reads the rows of an operator in its vertex, behind all that keeps their order."""
    while True:
        readers = [each for each in vertex.operators if below.id in each.inputs]
        if len(readers) != 1 or readers[0].kind not in _KEEP_ORDER:
            return readers
        (below,) = readers


def _undone(job: JobFacts, vertex: VertexFacts, sort: OperatorFacts, producer: VertexFacts) -> str:
    """Return what becomes of the order that a sort makes; empty if it is kept, or may be."""
    if _IS_GLOBAL.search(sort.text) is None:
        # Spark has put the write's own sort in the place of the user's.
        is_asked = producer.above is not None and _ORDERS.search(producer.above.code) is not None
        is_written = is_asked and vertex.kind == "write"
        return f"sorted again for the partitions that are written ({_columns(sort)})" if is_written else ""
    above = _readers(vertex, sort)
    if above:
        return _undone_within(vertex, above)
    readers = [
        (one.partitioner, _sort(consumer, one))
        for consumer in job.consumers(vertex)
        for one in consumer.inputs
        if one.vertex_id == vertex.id
    ]
    if not readers or any(partitioner not in SHUFFLES or found is None for partitioner, found in readers):
        return ""
    by = next(_columns(found) for _, found in readers if found is not None)
    return f"shuffled, and sorted again by {by}"


def _undone_within(vertex: VertexFacts, readers: list[OperatorFacts]) -> str:
    """Return what operators of the same vertex make of an order; empty if they keep it, or may."""
    reader = readers[0]
    if all(one.kind == _SORT for one in readers):
        return f"sorted again by {_columns(reader)}"
    is_write = vertex.kind == "write" and readers == [vertex.operators[-1]]
    keeps_none = is_write and _KEEPS_NO_ORDER.search(f"{reader.operator} {reader.text}") is not None
    return "written where no order is kept" if keeps_none else ""


def _columns(sort: OperatorFacts) -> str:
    """Return by what a sort orders, in Spark's words."""
    found = re.search(r"\[(.*)\]", sort.text)
    return re.sub(r"#\d+L?", "", found[1]) if found is not None else "something else"


def _cost_ms(vertex: VertexFacts, sort: OperatorFacts, producer: VertexFacts) -> float:
    wrote_ms = metric(producer.metrics_above, "shuffleWriteTime") / 1e6
    rows = metric(producer.metrics_above, "shuffleRecordsWritten") or vertex.rows_in
    sorted_ms = metric(sort.metrics, "sortTime") if _IS_GLOBAL.search(sort.text) is not None else 0
    return wrote_ms + min(vertex.run_ms, sorted_ms + ROW_MS * rows)


RULE = Rule("needless-sort", _find)
