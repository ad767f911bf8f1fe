"""Ids of operators that stay the same as long as the program does. Mirrors ``StreamGraphHasherV2``.

An id is made from the node's place in a breadth-first walk, the number of nodes chained to it, and the ids of its
inputs; a ``uid`` replaces all that. The ids are Flink's own, bit by bit, down to the hash: MurmurHash3.
"""

from __future__ import annotations

from collections import deque

from flinkmagic.errors.graph import DuplicateUidError
from flinkmagic.graph.chaining import Chaining
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


_MASK = (1 << 64) - 1
_C1 = 0x87C37B91114253D5
_C2 = 0x4CF5AD432745937F


def _mix_k1(k: int) -> int:
    k = k * _C1 & _MASK
    k = (k << 31 | k >> 33) & _MASK
    return k * _C2 & _MASK


def _mix_k2(k: int) -> int:
    k = k * _C2 & _MASK
    k = (k << 33 | k >> 31) & _MASK
    return k * _C1 & _MASK


def _finalize(h: int) -> int:
    h = (h ^ h >> 33) * 0xFF51AFD7ED558CCD & _MASK
    h = (h ^ h >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return h ^ h >> 33


def murmur3_128(data: bytes) -> bytes:
    """Return MurmurHash3 x64 128 of ``data``, seed 0: 16 bytes in Guava's order (its ``Hashing.murmur3_128(0)``)."""
    h1 = h2 = 0
    length = len(data)
    body = length & ~15
    for start in range(0, body, 16):
        h1 ^= _mix_k1(int.from_bytes(data[start : start + 8], "little"))
        h1 = (h1 << 27 | h1 >> 37) & _MASK
        h1 = ((h1 + h2) * 5 + 0x52DCE729) & _MASK
        h2 ^= _mix_k2(int.from_bytes(data[start + 8 : start + 16], "little"))
        h2 = (h2 << 31 | h2 >> 33) & _MASK
        h2 = ((h2 + h1) * 5 + 0x38495AB5) & _MASK
    h1 ^= _mix_k1(int.from_bytes(data[body : body + 8], "little"))
    h2 ^= _mix_k2(int.from_bytes(data[body + 8 :], "little"))
    h1 ^= length
    h2 ^= length
    h1 = (h1 + h2) & _MASK
    h2 = (h2 + h1) & _MASK
    h1, h2 = _finalize(h1), _finalize(h2)
    h1 = (h1 + h2) & _MASK
    h2 = (h2 + h1) & _MASK
    return h1.to_bytes(8, "little") + h2.to_bytes(8, "little")
