"""Ids of operators that stay the same as long as the program does. Mirrors ``StreamGraphHasherV2``.

An id is made from the node's place in a breadth-first walk, the number of nodes chained to it, and the ids of its
inputs; a ``uid`` replaces all that. The ids are Flink's own, bit by bit.
"""

from __future__ import annotations

from collections import deque

from flinkmagic.errors.graph import DuplicateUidError
from flinkmagic.graph.chaining import Chaining
from flinkmagic.graph.murmur3 import murmur3_128
from flinkmagic.graph.stream_graph import StreamGraph, StreamNode

_TIMES_37 = bytes(value * 37 & 0xFF for value in range(256))


def generate_hashes(graph: StreamGraph, chaining: Chaining) -> dict[int, bytes]:
    """Return the id of every node of the graph as 16 bytes.

    Raises
    ------
    DuplicateUidError
        If a uid yields the id of an earlier node.
    """
    hashes: dict[int, bytes] = {}
    taken: set[bytes] = set()
    remaining = deque(graph.nodes[id] for id in sorted(graph.source_ids))
    visited = set(graph.source_ids)
    while remaining:
        node = remaining.popleft()
        hashed = _hash(node, hashes, chaining)
        if hashed is None:
            visited.discard(node.id)  # an input still has no id; it will bring this node back
            continue
        if node.uid is not None and hashed in taken:
            raise DuplicateUidError(node.uid)
        hashes[node.id] = hashed
        taken.add(hashed)
        for edge in node.out_edges:
            if edge.target.id not in visited:
                visited.add(edge.target.id)
                remaining.append(edge.target)
    return hashes


def _hash(node: StreamNode, hashes: dict[int, bytes], chaining: Chaining) -> bytes | None:
    if node.uid is not None:
        return murmur3_128(node.uid.encode())
    inputs = []
    for edge in node.in_edges:
        hashed = hashes.get(edge.source.id)
        if hashed is None:
            return None
        inputs.append(hashed)
    chained = sum(chaining.is_chained_output(edge) for edge in node.out_edges)
    value = murmur3_128(len(hashes).to_bytes(4, "little") * (1 + chained))
    for hashed in inputs:
        mixed = int.from_bytes(value.translate(_TIMES_37), "little") ^ int.from_bytes(hashed, "little")
        value = mixed.to_bytes(16, "little")
    return value
