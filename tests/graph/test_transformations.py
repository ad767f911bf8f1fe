from __future__ import annotations

import pytest

from flinkmagic.errors import graph as errors
from flinkmagic.graph.exchange_mode import ChainingStrategy
from flinkmagic.graph.partitioner import PartitionerKind
from flinkmagic.graph.transformations import (
    CoFeedbackTransformation,
    FeedbackTransformation,
    OneInputTransformation,
    OutputTag,
    PartitionTransformation,
    SideOutputTransformation,
    SinkTransformation,
    SourceTransformation,
    TwoInputTransformation,
    UnionTransformation,
)

SOURCE = SourceTransformation("source")


@pytest.mark.parametrize("parallelism", [0, -2, -7])
def test_parallelism_is_positive_or_the_default(parallelism: int) -> None:
    with pytest.raises(errors.OperatorParallelismError, match=f"map: the parallelism is {parallelism}"):
        OneInputTransformation(SOURCE, "map", parallelism=parallelism)
    assert OneInputTransformation(SOURCE, "map", parallelism=-1).parallelism == -1


@pytest.mark.parametrize("max_parallelism", [0, -3, 32769])
def test_max_parallelism_is_in_range(max_parallelism: int) -> None:
    with pytest.raises(errors.OperatorMaxParallelismError, match="1 to 32768"):
        OneInputTransformation(SOURCE, "map", max_parallelism=max_parallelism)
    assert OneInputTransformation(SOURCE, "map", max_parallelism=32768).max_parallelism == 32768


def test_operators_have_the_chaining_strategy_of_their_kind_unless_told() -> None:
    assert SOURCE.chaining_strategy is ChainingStrategy.HEAD
    assert OneInputTransformation(SOURCE, "map").chaining_strategy is ChainingStrategy.ALWAYS
    assert TwoInputTransformation(SOURCE, SOURCE, "join").chaining_strategy is ChainingStrategy.HEAD
    assert SinkTransformation(SOURCE, "sink").chaining_strategy is ChainingStrategy.ALWAYS
    never = SinkTransformation(SOURCE, "sink", chaining_strategy=ChainingStrategy.NEVER)
    assert never.chaining_strategy is ChainingStrategy.NEVER


def test_a_union_needs_inputs_of_one_type() -> None:
    with pytest.raises(errors.EmptyUnionError):
        UnionTransformation([])
    longs = SideOutputTransformation(SOURCE, OutputTag("n", "LONG"))
    with pytest.raises(errors.UnionTypeMismatchError, match="Input 1 of the union 'Union' is a stream of LONG"):
        UnionTransformation([SOURCE, longs])
    assert UnionTransformation([longs, longs]).output_type == "LONG"


def test_virtual_transformations_carry_the_type_of_their_input_on() -> None:
    longs = SideOutputTransformation(SOURCE, OutputTag("n", "LONG"))
    assert PartitionTransformation(longs, PartitionerKind.HASH).output_type == "LONG"
    assert FeedbackTransformation(longs).output_type == "LONG"
    assert OneInputTransformation(longs, "map").output_type == "STRING"


def test_a_side_output_needs_a_name() -> None:
    with pytest.raises(errors.EmptyOutputTagError):
        SideOutputTransformation(SOURCE, "")
    assert SideOutputTransformation(SOURCE, "late").name == "side-late"


def test_each_partition_transformation_has_a_partitioner_of_its_own() -> None:
    one = PartitionTransformation(SOURCE, PartitionerKind.HASH)
    other = PartitionTransformation(SOURCE, PartitionerKind.HASH)
    assert one.partitioner != other.partitioner


def test_feedback_edges_are_added_later() -> None:
    for iteration in (FeedbackTransformation(SOURCE), CoFeedbackTransformation()):
        assert iteration.feedback_edges == []
        iteration.add_feedback_edge(SOURCE)
        assert iteration.feedback_edges == [SOURCE]
