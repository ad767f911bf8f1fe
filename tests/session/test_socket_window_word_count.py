"""SocketWindowWordCount, Flink's first example, as a cell: its topology, and the counts of every window.

Flink's own three job vertices for it are among the cases of `tests/conformance`.
"""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from flinkmagic.graph.partitioner import PartitionerKind
from flinkmagic.graph.result_partition_type import ResultPartitionType
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.session import CompiledGraph, capture, compile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TEXTS = ("to be", "or not", "to be", "that is", "the question", "to be")
LINES = list(enumerate(TEXTS * 4))
"""Each with the second of its event."""
WINDOW_S = 5


def counted(lines: DataFrame) -> DataFrame:
    """Count words in windows, as the example does; a line begins with the second of its event."""
    parts = F.split("value", " ")
    timed = lines.select(
        F.timestamp_seconds(parts[0].cast("long")).alias("at"),
        F.explode(F.slice(parts, 2, 100)).alias("word"),
    )
    return timed.groupBy(F.window("at", f"{WINDOW_S} seconds"), "word").count()


def compiled(spark: Any, name: str, port: int, *, deal_out: bool) -> CompiledGraph:
    with capture(spark, name=name, mode="streaming") as program:
        lines = spark.readStream.format("socket").option("host", "127.0.0.1").option("port", port).load()
        counts = counted(lines.repartition(2) if deal_out else lines)
        counts.writeStream.format("memory").queryName(name).outputMode("complete").start()
    return compile(program, mode="streaming", parallelism=2)


@contextmanager
def server(first: threading.Event) -> Iterator[int]:
    """Send the lines to whoever connects: one half, and when told to, the other; then stay until the end."""
    over = threading.Event()

    def serve() -> None:
        connection, _ = listening.accept()
        with connection:
            half = len(LINES) // 2
            for part in (LINES[:half], LINES[half:]):
                connection.sendall("".join(f"{second} {text}\n" for second, text in part).encode())
                first.wait(60)
            over.wait(60)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listening.getsockname()[1]
        finally:
            first.set()
            over.set()
            thread.join()


@pytest.mark.parametrize(("deal_out", "edges"), [(False, ["HASH"]), (True, ["REBALANCE", "HASH"])])
def test_source_and_flat_map_share_a_stage_unless_the_cell_repartitions(spark, deal_out, edges) -> None:
    graph = compiled(spark, f"topology_{deal_out}".lower(), 9999, deal_out=deal_out)
    vertices = graph.job_graph.vertices_in_topological_order()
    inputs = [edge for vertex in vertices for edge in vertex.inputs]
    assert [edge.partitioner.kind for edge in inputs] == [PartitionerKind[kind] for kind in edges]
    assert {edge.source.result_type for edge in inputs} == {ResultPartitionType.PIPELINED_BOUNDED}
    splits = [at for at, vertex in enumerate(vertices) if "Generate" in vertex.name]
    assert splits == [len(edges) - 1]  # where the rows are that the socket, or the shuffle, has given
    assert graph.execution_graph.pipelined_regions.count == 1


@pytest.mark.long
@pytest.mark.parametrize("deal_out", [False, True], ids=["one-stage", "dealt-out"])
def test_the_counts_of_every_window_are_exact(spark, deal_out) -> None:
    name, rest = f"socket_words_{deal_out}".lower(), threading.Event()
    with server(rest) as port:
        job = compiled(spark, name, port, deal_out=deal_out).run(wait=False)
        try:
            wait_for_rows(job, name, len(LINES) // 2)
            rest.set()
            wait_for_rows(job, name, len(LINES))
        finally:
            job.cancel()
            assert job.wait(30) is JobStatus.CANCELED
    seen = {(int(row.window.start.timestamp()), row.word): row["count"] for row in spark.table(name).collect()}
    assert seen == Counter((second - second % WINDOW_S, word) for second, text in LINES for word in text.split())


def wait_for_rows(job: Any, query: str, rows: int) -> None:
    deadline = time.monotonic() + 60
    while sum(batch.input_rows for batch in job.progress()[query]) < rows:
        assert time.monotonic() < deadline, job.report()
        assert not job.status.is_terminal, job.report()
        time.sleep(0.05)
