"""How long graphs take to be compiled, and what they weigh.

Times are CPU time of this process (`time.process_time`), the median of repeated runs after a warm-up. Memory is the
peak that `tracemalloc` saw over what was there before (numpy reports its arrays to it), in MB of 10**6 bytes, of one
more run.

* ``a2a``, ``pointwise``: two vertices of parallelism 16,000, from the JobGraph to the ExecutionGraph with its regions.
* ``slot_sharing``: the groups of the all-to-all pipelined one.
* ``chain1000``, ``diamond1000``: 1000 transformations, made ones, to the JobGraph.
* ``million``: 10 vertices of parallelism 100,000, pointwise, from the JobGraph to the ExecutionGraph with its regions
  and slot sharing groups.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
import tracemalloc
from collections.abc import Callable, Sequence

from flinkmagic.graph.environment import StreamExecutionEnvironment
from flinkmagic.graph.exchange_mode import (
    BatchShuffleMode,
    ChainingStrategy,
    RuntimeExecutionMode,
    StreamExchangeMode,
)
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.job_graph import JobGraph
from flinkmagic.graph.job_graph_generator import create_job_graph
from flinkmagic.graph.partitioner import PartitionerKind
from flinkmagic.graph.slot_sharing import ExecutionSlotSharingGroups, local_input_preferred
from flinkmagic.graph.transformations import (
    OneInputTransformation,
    PartitionTransformation,
    SinkTransformation,
    SourceTransformation,
    Transformation,
    TwoInputTransformation,
)

PARALLELISM = 16_000
N_TRANSFORMATIONS = 1000


def two_vertices(partitioner: PartitionerKind, mode: StreamExchangeMode, parallelism: int = PARALLELISM) -> JobGraph:
    environment = StreamExecutionEnvironment(
        "two vertices", RuntimeExecutionMode.BATCH, parallelism,
        batch_shuffle_mode=BatchShuffleMode.ALL_EXCHANGES_PIPELINED,
    )  # fmt: skip
    source = SourceTransformation("source")
    partition = PartitionTransformation(source, partitioner, mode)
    environment.add_operator(SinkTransformation(partition, "sink", chaining_strategy=ChainingStrategy.NEVER))
    return create_job_graph(environment.get_stream_graph())


def row_of_vertices(count: int, parallelism: int) -> JobGraph:
    environment = StreamExecutionEnvironment(
        "row", RuntimeExecutionMode.STREAMING, parallelism, upper_bound_max_parallelism=1 << 20
    )
    stream: Transformation = SourceTransformation("source")
    for number in range(1, count):
        stream = OneInputTransformation(stream, f"map {number}", chaining_strategy=ChainingStrategy.NEVER)
        environment.add_operator(stream)
    return create_job_graph(environment.get_stream_graph())


def chain_of_transformations() -> StreamExecutionEnvironment:
    environment = StreamExecutionEnvironment("chain", parallelism=4)
    stream: Transformation = SourceTransformation("source")
    for number in range(N_TRANSFORMATIONS - 2):
        stream = OneInputTransformation(stream, f"map {number}")
        environment.add_operator(stream)
    environment.add_operator(SinkTransformation(stream, "sink"))
    return environment


def diamonds_of_transformations() -> StreamExecutionEnvironment:
    """Split into two and joined again, over and over: a source, groups of three operators, a sink."""
    environment = StreamExecutionEnvironment("diamond", parallelism=4)
    stream: Transformation = SourceTransformation("source")
    for number in range((N_TRANSFORMATIONS - 2) // 3):
        left = OneInputTransformation(stream, f"left {number}")
        right = OneInputTransformation(stream, f"right {number}")
        stream = TwoInputTransformation(left, right, f"join {number}")
        for operator in (left, right, stream):
            environment.add_operator(operator)
    for number in range((N_TRANSFORMATIONS - 2) % 3):
        stream = OneInputTransformation(stream, f"map {number}")
        environment.add_operator(stream)
    environment.add_operator(SinkTransformation(stream, "sink"))
    return environment


def median_ms(run: Callable[[], object], repeats: int) -> float:
    for _ in range(min(3, repeats)):
        run()
    times = []
    for _ in range(repeats):
        gc.collect()
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return round(statistics.median(times) * 1000, 2)


def peak_mb(run: Callable[[], object]) -> float:
    gc.collect()
    tracemalloc.start()
    kept = run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    del kept
    return round(peak / 1e6, 2)


def compile_jobs(make: Callable[[], StreamExecutionEnvironment]) -> Callable[[], JobGraph]:
    return lambda: create_job_graph(make().get_stream_graph())


def million(job_graph: JobGraph) -> tuple[ExecutionGraph, ExecutionSlotSharingGroups]:
    graph = ExecutionGraph(job_graph)
    return graph, local_input_preferred(graph)


def main(argv: Sequence[str]) -> dict[str, float]:
    parser = argparse.ArgumentParser(prog="compile", description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=21)
    repeats = parser.parse_args(argv).repeats
    figures: dict[str, float] = {}
    shapes = {
        "a2a_pipelined": (PartitionerKind.REBALANCE, StreamExchangeMode.PIPELINED),
        "a2a_blocking": (PartitionerKind.REBALANCE, StreamExchangeMode.BATCH),
        "pointwise_pipelined": (PartitionerKind.RESCALE, StreamExchangeMode.PIPELINED),
        "pointwise_blocking": (PartitionerKind.RESCALE, StreamExchangeMode.BATCH),
    }
    for name, (partitioner, mode) in shapes.items():
        job_graph = two_vertices(partitioner, mode)
        figures[f"{name}_ms"] = median_ms(lambda job_graph=job_graph: ExecutionGraph(job_graph), repeats)
        figures[f"{name}_mb"] = peak_mb(lambda job_graph=job_graph: ExecutionGraph(job_graph))
    graph = ExecutionGraph(two_vertices(*shapes["a2a_pipelined"]))
    figures["slot_sharing_ms"] = median_ms(lambda: local_input_preferred(graph), repeats)
    figures["chain1000_ms"] = median_ms(compile_jobs(chain_of_transformations), repeats)
    figures["diamond1000_ms"] = median_ms(compile_jobs(diamonds_of_transformations), repeats)
    row = row_of_vertices(10, 100_000)
    figures["million_s"] = median_ms(lambda: million(row), min(repeats, 3)) / 1000
    figures["million_mb"] = peak_mb(lambda: million(row))
    return figures
