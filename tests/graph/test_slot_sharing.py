from __future__ import annotations

from collections.abc import Callable

from flinkmagic.graph.exchange_mode import ChainingStrategy
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.job_graph import JobGraph
from flinkmagic.graph.partitioner import PartitionerKind
from flinkmagic.graph.slot_sharing import local_input_preferred
from flinkmagic.graph.transformations import (
    OneInputTransformation,
    PartitionTransformation,
    SinkTransformation,
    SourceTransformation,
    Transformation,
    TwoInputTransformation,
)

JobGraphOf = Callable[..., JobGraph]
NEVER = ChainingStrategy.NEVER


def groups(job_graph: JobGraph) -> list[str]:
    """The members of each group, as the first letters of the vertices' names with their subtasks."""
    graph = ExecutionGraph(job_graph)
    vertices = [graph.execution_vertex(index) for index in range(graph.n_vertices)]
    names = [f"{v.job_vertex.job_vertex.head.name.split(': ')[-1][0]}{v.subtask}" for v in vertices]
    return [" ".join(names[index] for index in members) for members in local_input_preferred(graph).members()]


def rescaled(stream: Transformation, name: str, **common: object) -> OneInputTransformation:
    partition = PartitionTransformation(stream, PartitionerKind.RESCALE)
    return OneInputTransformation(partition, name, chaining_strategy=NEVER, **common)


def shuffled(stream: Transformation, name: str, **common: object) -> OneInputTransformation:
    return OneInputTransformation(PartitionTransformation(stream, PartitionerKind.SHUFFLE), name, **common)


def test_each_subtask_joins_the_first_of_its_producers(job_graph: JobGraphOf) -> None:
    assert groups(job_graph(rescaled(SourceTransformation("s", parallelism=4), "m", parallelism=2))) == [
        "s0 m0", "s1", "s2 m1", "s3",
    ]  # fmt: skip


def test_what_producers_cannot_take_fills_free_groups_and_then_new_ones(job_graph: JobGraphOf) -> None:
    source = SourceTransformation("s", parallelism=2)
    assert groups(job_graph(rescaled(source, "m", parallelism=5))) == ["s0 m0", "s1 m3", "m1", "m2", "m4"]
    narrow = shuffled(SourceTransformation("s", parallelism=3), "n", parallelism=1)
    wide = shuffled(narrow, "w", parallelism=3)
    assert groups(job_graph(narrow, wide)) == ["s0 n0 w0", "s1 w1", "s2 w2"]


def test_other_slot_sharing_groups_offer_nothing(job_graph: JobGraphOf) -> None:
    source = SourceTransformation("s", parallelism=2, slot_sharing_group="one")
    assert groups(job_graph(rescaled(source, "m", parallelism=2, slot_sharing_group="two"))) == ["s0", "s1", "m0", "m1"]


def test_co_located_subtasks_share_a_slot_even_where_a_producer_is_nearer(job_graph: JobGraphOf) -> None:
    source = SourceTransformation("s", parallelism=2)
    first = shuffled(source, "a", parallelism=2, co_location_group="k")
    # b0 reads a0 and a1 in this order; without co-location it would still join a0, so swap by a detour of one subtask.
    detour = rescaled(SourceTransformation("x", parallelism=3), "d", parallelism=3)
    joined = TwoInputTransformation(
        PartitionTransformation(detour, PartitionerKind.SHUFFLE),
        PartitionTransformation(first, PartitionerKind.SHUFFLE),
        "b", parallelism=2, co_location_group="k",
    )  # fmt: skip
    found = groups(job_graph(first, detour, joined))
    assert [members for members in found if "a0" in members] == [m for m in found if "b0" in m]
    assert [members for members in found if "a1" in members] == [m for m in found if "b1" in m]


def test_groups_are_a_column(job_graph: JobGraphOf) -> None:
    sink = SinkTransformation(SourceTransformation("s"), "sink", chaining_strategy=NEVER)
    graph = ExecutionGraph(job_graph(sink, parallelism=3))
    found = local_input_preferred(graph)
    assert found.group_of.tolist() == [0, 1, 2, 0, 1, 2]
    assert found.count == 3
