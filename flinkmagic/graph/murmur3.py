"""MurmurHash3 x64 128, the hash from which Flink makes operator ids (Guava's ``Hashing.murmur3_128(0)``)."""

from __future__ import annotations

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
    """Return the 16 bytes of the hash of ``data``, seed 0, in Guava's byte order (little endian)."""
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
