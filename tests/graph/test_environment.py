from __future__ import annotations

import pytest

from flinkmagic.errors import graph as errors
from flinkmagic.graph.environment import StreamExecutionEnvironment, reachable
from flinkmagic.graph.partitioner import PartitionerKind
from flinkmagic.graph.transformations import (
    CoFeedbackTransformation,
    FeedbackTransformation,
    OneInputTransformation,
    PartitionTransformation,
    SinkTransformation,
    SourceTransformation,
    TwoInputTransformation,
)


def test_ids_are_given_inputs_first_and_kept() -> None:
    environment = StreamExecutionEnvironment("job")
    source = SourceTransformation("source")
    partition = PartitionTransformation(source, PartitionerKind.HASH)
    left, right = OneInputTransformation(partition, "left"), OneInputTransformation(source, "right", id=2)
    join = TwoInputTransformation(left, right, "join")
    environment.add_operator(join)
    ids = [t.id for t in (source, partition, left, right, join)]
    assert ids == [1, 3, 4, 2, 5]
    environment.add_operator(SinkTransformation(join, "sink"))
    assert [t.id for t in (source, partition, left, right, join)] == ids


def test_two_transformations_cannot_have_one_id() -> None:
    environment = StreamExecutionEnvironment("job")
    source = SourceTransformation("source", id=1)
    with pytest.raises(errors.DuplicateTransformationIdError, match=r"the id 1\. Give one of them another"):
        environment.add_operator(OneInputTransformation(source, "map", id=1))


@pytest.mark.parametrize(("given", "taken"), [(3, 3), (-1, -1), (-2, 1)])
def test_default_parallelism(given: int, taken: int) -> None:
    assert StreamExecutionEnvironment("job", parallelism=given).config.parallelism == taken


def test_defaults_out_of_range_are_refused() -> None:
    with pytest.raises(errors.OperatorParallelismError):
        StreamExecutionEnvironment("job", parallelism=0)
    with pytest.raises(errors.OperatorMaxParallelismError):
        StreamExecutionEnvironment("job", max_parallelism=32769)


def test_a_virtual_transformation_has_the_parallelism_of_its_first_input() -> None:
    environment = StreamExecutionEnvironment("job", parallelism=5)
    source = SourceTransformation("source", parallelism=-1)
    partition = PartitionTransformation(source, PartitionerKind.HASH)
    assert environment.parallelism_of(FeedbackTransformation(partition)) == -1
    assert environment.parallelism_of(OneInputTransformation(partition, "map")) == 5
    assert environment.parallelism_of(CoFeedbackTransformation()) == 5


def test_what_is_fed_back_has_the_parallelism_of_the_iteration() -> None:
    environment = StreamExecutionEnvironment("job", parallelism=2)
    feedback = FeedbackTransformation(SourceTransformation("source"))
    feedback.add_feedback_edge(OneInputTransformation(feedback, "fits", parallelism=2))
    environment.check_feedback(feedback)
    feedback.add_feedback_edge(OneInputTransformation(feedback, "does not", parallelism=3))
    with pytest.raises(errors.FeedbackParallelismError, match="'does not' has 3"):
        environment.check_feedback(feedback)


def test_reachable_goes_through_feedback_edges_and_ends() -> None:
    source = SourceTransformation("source")
    feedback = FeedbackTransformation(source)
    body = OneInputTransformation(feedback, "body")
    aside = OneInputTransformation(body, "aside")
    feedback.add_feedback_edge(aside)
    found = reachable([body])
    assert {t.name for t in found} == {"source", "Feedback", "body", "aside"}
    assert found.index(source) < found.index(feedback)
    assert found.index(feedback) < found.index(body)
