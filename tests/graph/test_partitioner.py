from __future__ import annotations

import pytest

from flinkmagic.graph.partitioner import PartitionerKind, StreamPartitioner

KEYED = {PartitionerKind.HASH, PartitionerKind.RANGE, PartitionerKind.CUSTOM}


@pytest.mark.parametrize("kind", PartitionerKind)
def test_keyed_partitioners_are_equal_to_themselves_others_by_kind(kind: PartitionerKind) -> None:
    one, other = StreamPartitioner(kind), StreamPartitioner(kind)
    assert one == one
    assert (one == other) == (kind not in KEYED)
    assert len({one, other}) == 1 + (kind in KEYED)


def test_forward_and_rescale_alone_are_pointwise() -> None:
    pointwise = {kind for kind in PartitionerKind if StreamPartitioner(kind).is_pointwise}
    assert pointwise == {PartitionerKind.FORWARD, PartitionerKind.RESCALE}


def test_a_partitioner_prints_as_its_kind() -> None:
    assert str(StreamPartitioner(PartitionerKind.HASH)) == "HASH"
    assert repr(StreamPartitioner(PartitionerKind.HASH)) == "StreamPartitioner(HASH)"
