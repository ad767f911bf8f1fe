from __future__ import annotations

from collections.abc import Callable

import pytest

from flinkmagic.errors import graph as errors
from flinkmagic.graph.chaining import Chaining
from flinkmagic.graph.partitioner import PartitionerKind
from flinkmagic.graph.stream_graph import StreamGraph
from flinkmagic.graph.stream_graph_hasher import generate_hashes, murmur3_128
from flinkmagic.graph.transformations import (
    OneInputTransformation,
    PartitionTransformation,
    SinkTransformation,
    SourceTransformation,
    Transformation,
    UnionTransformation,
)

StreamGraphOf = Callable[..., StreamGraph]


def ids(graph: StreamGraph) -> dict[str, str]:
    hashes = generate_hashes(graph, Chaining(graph))
    return {graph.nodes[id].name: value.hex() for id, value in hashes.items()}


def program(*, uid: str | None = None, partitioned: bool = False, name: str = "map") -> list[Transformation]:
    stream: Transformation = SourceTransformation("source")
    if partitioned:
        stream = PartitionTransformation(stream, PartitionerKind.HASH)
    mapped = OneInputTransformation(stream, name, uid=uid)
    return [mapped, SinkTransformation(mapped, "sink")]


def test_ids_are_the_same_from_run_to_run_and_do_not_depend_on_names(stream_graph: StreamGraphOf) -> None:
    once, again = ids(stream_graph(*program())), ids(stream_graph(*program()))
    renamed = ids(stream_graph(*program(name="other")))
    assert once == again
    assert list(once.values()) == list(renamed.values())
    assert len(set(once.values())) == 3


def test_chaining_goes_into_the_id(stream_graph: StreamGraphOf) -> None:
    chained, apart = ids(stream_graph(*program())), ids(stream_graph(*program(partitioned=True)))
    assert chained["Source: source"] != apart["Source: source"]


def test_a_uid_makes_the_id_wherever_the_operator_stands(stream_graph: StreamGraphOf) -> None:
    one = ids(stream_graph(*program(uid="mine")))
    other = ids(stream_graph(*program(uid="mine", partitioned=True)))
    assert one["map"] == other["map"] == murmur3_128(b"mine").hex()
    assert one["Sink: sink"] != ids(stream_graph(*program()))["Sink: sink"]


def test_a_uid_is_used_once(stream_graph: StreamGraphOf) -> None:
    mapped = OneInputTransformation(SourceTransformation("source"), "map", uid="same")
    graph = stream_graph(mapped, SinkTransformation(mapped, "sink", uid="same"))
    with pytest.raises(errors.DuplicateUidError, match="'same'"):
        generate_hashes(graph, Chaining(graph))


def test_a_node_waits_for_the_ids_of_all_its_inputs(stream_graph: StreamGraphOf) -> None:
    near = SourceTransformation("near")
    far = OneInputTransformation(OneInputTransformation(SourceTransformation("a"), "b"), "c")
    graph = stream_graph(SinkTransformation(UnionTransformation([near, far]), "sink"))
    assert set(ids(graph)) == {"Source: near", "Source: a", "b", "c", "Sink: sink"}


@pytest.mark.parametrize(
    ("data", "digest"),
    [
        (b"", "00000000000000000000000000000000"),
        (b"hello", "cbd8a7b341bd9b025b1e906a48ae1d19"),
        (b"hello, world", "342fac623a5ebc8e4cdcbc079642414d"),
        (b"19 Jan 2038 at 3:14:07 AM", "b89e5988b737affc664fc2950231b2cb"),
        (b"The quick brown fox jumps over the lazy dog.", "cd99481f9ee902c9695da1a38987b6e7"),
    ],
)
def test_reference_digests(data: bytes, digest: str) -> None:
    # Published test vectors give the two 64-bit halves as big-endian numbers; Guava lays them out little-endian.
    halves = murmur3_128(data)
    assert halves[:8][::-1].hex() + halves[8:][::-1].hex() == digest


def test_the_first_source_of_every_flink_job() -> None:
    assert murmur3_128(bytes(4)).hex() == "bc764cd8ddf7a0cff126f51c16239658"
