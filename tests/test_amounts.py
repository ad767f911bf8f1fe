from __future__ import annotations

import pytest

from flinkmagic import amounts


@pytest.mark.parametrize(
    ("ms", "words"),
    [(None, "–"), (12.4, "12 ms"), (4210, "4.2 s"), (59_949, "59.9 s"), (59_990, "1 min 00 s"), (185_000, "3 min 05 s"),
     (3_900_000, "1 h 05 min")],
)  # fmt: skip
def test_durations(ms: float | None, words: str) -> None:
    assert amounts.duration(ms) == words


@pytest.mark.parametrize(("amount", "words"), [(None, "–"), (512, "512 B"), (1536, "1.5 KiB"), (3 << 40, "3.0 TiB")])
def test_sizes(amount: int | None, words: str) -> None:
    assert amounts.size(amount) == words


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.4, "0 s"), (59, "59 s"), (150, "2 min"), (7_300, "2 h"), (90_000, "1 d")]
)
def test_ages(seconds: float, words: str) -> None:
    assert amounts.age(seconds) == words


@pytest.mark.parametrize(
    ("number", "words"),
    [(None, ""), (950, "950"), (12_345, "12.3 K"), (999_600, "1.0 M"), (6e6, "6.0 M"), (2e12, "2.0 T")],
)
def test_magnitudes(number: int | None, words: str) -> None:
    assert amounts.magnitude(number) == words
