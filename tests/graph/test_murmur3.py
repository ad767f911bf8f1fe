from __future__ import annotations

import pytest

from flinkmagic.graph.murmur3 import murmur3_128


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
