from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.intermediate_result import Connection
from flinkmagic.graph.job_graph import JobGraph
from flinkmagic.graph.partitioner import PartitionerKind
from flinkmagic.graph.transformations import PartitionTransformation, SinkTransformation, SourceTransformation
from tests.graph.consumer_groups import consumed_groups, consumer_groups

JobGraphOf = Callable[..., JobGraph]


@pytest.fixture
def connect(job_graph: JobGraphOf) -> Callable[..., tuple[ExecutionGraph, Connection]]:
    def connected(producers: int, consumers: int, kind: PartitionerKind) -> tuple[ExecutionGraph, Connection]:
        source = SourceTransformation("source", parallelism=producers)
        sink = SinkTransformation(PartitionTransformation(source, kind), "sink", parallelism=consumers)
        graph = ExecutionGraph(job_graph(sink))
        (connection,) = graph.connections
        return graph, connection

    return connected


Connect = Callable[..., tuple[ExecutionGraph, Connection]]
CONSUMERS = (1, 2, 3, 5, 8, 12)


@pytest.mark.parametrize("m", [1, 2, 3, 4, 7, 12])
def test_pointwise_is_flinks_formula(connect: Connect, m: int) -> None:
    for n in CONSUMERS:
        _, connection = connect(m, n, PartitionerKind.RESCALE)
        check_formula(connection, m, n)


def check_formula(connection: Connection, m: int, n: int) -> None:
    for consumer in range(n):
        partitions = connection.partition_range(connection.group_of_consumer(consumer))
        if m >= n:
            assert partitions == range(consumer * m // n, (consumer + 1) * m // n)
            assert connection.subpartition_of(consumer) == 0
        else:
            (partition,) = partitions
            readers = range(math.ceil(partition * n / m), math.ceil((partition + 1) * n / m))
            assert consumer in readers
            assert connection.consumer_range(connection.group_of_consumer(consumer)) == readers
            assert connection.subpartition_of(consumer) == consumer % len(readers)


@pytest.mark.parametrize("kind", [PartitionerKind.RESCALE, PartitionerKind.HASH])
@pytest.mark.parametrize("m", [1, 2, 3, 4, 7, 12])
def test_groups_cover_both_sides_once_and_lookups_agree(connect: Connect, m: int, kind: PartitionerKind) -> None:
    for n in CONSUMERS:
        _, connection = connect(m, n, kind)
        check_groups(connection, m, n, kind)


def check_groups(connection: Connection, m: int, n: int, kind: PartitionerKind) -> None:
    groups = range(connection.n_groups)
    assert len(groups) == (min(m, n) if kind is PartitionerKind.RESCALE else 1)
    assert [p for g in groups for p in connection.partition_range(g)] == list(range(m))
    assert [c for g in groups for c in connection.consumer_range(g)] == list(range(n))
    assert all(connection.group_of_partition(p) == g for g in groups for p in connection.partition_range(g))
    assert all(connection.group_of_consumer(c) == g for g in groups for c in connection.consumer_range(g))
    assert connection.partition_bounds.tolist() == [*(connection.partition_range(g).start for g in groups), m]
    assert connection.consumer_bounds.tolist() == [*(connection.consumer_range(g).start for g in groups), n]


def test_all_to_all_gives_each_consumer_a_subpartition_of_each_partition(connect: Connect) -> None:
    graph, connection = connect(3, 4, PartitionerKind.HASH)
    assert [connection.subpartition_of(consumer) for consumer in range(4)] == [0, 1, 2, 3]
    assert graph.results[0].n_subpartitions(2) == 4


def test_groups_are_the_same_from_both_sides(connect: Connect) -> None:
    graph, _ = connect(2, 6, PartitionerKind.RESCALE)
    (of_first,), (of_third,), (of_last,) = (consumed_groups(graph, index) for index in (2, 4, 7))
    assert of_first == of_third
    assert of_first != of_last
    assert (of_last.partitions, of_last.producers, of_last.consumers) == (range(1, 2), range(1, 2), range(5, 8))
    (seen_by_producer,) = consumer_groups(graph, 1)
    assert seen_by_producer == of_last
