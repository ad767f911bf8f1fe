"""Numbers of DataFrames."""

from __future__ import annotations

import gc
from typing import Any

from flinkmagic.capturing.frames import FrameRegistry


class Frame:
    """Anything that can be referred to weakly."""


def test_a_frame_can_be_known_by_the_number_of_another() -> None:
    registry, original, kept = FrameRegistry(), Frame(), Frame()
    frames: list[Any] = [original, kept]
    number = registry.add(frames[0])
    registry.alias(frames[1], number)
    assert registry.number(frames[1]) == number
    assert registry.aliases() == [(kept, number)]
    assert registry.living() == {number: original}
    registry.use(frames[1])
    registry.use(frames[1])
    registry.keep(frames[0])
    assert registry.kept == {number: kept}, "what was used twice first represents both"


def test_an_alias_ends_with_its_frame_and_never_takes_a_number_away() -> None:
    registry, original, kept = FrameRegistry(), Frame(), Frame()
    frames: list[Any] = [original, kept]
    number = registry.add(frames[0])
    other = registry.add(frames[1])
    registry.alias(frames[1], number)
    assert (registry.number(frames[1]), registry.aliases()) == (other, [])
    frames.pop()
    del kept
    late: Any = Frame()
    registry.alias(late, number)
    del late
    gc.collect()
    assert registry.aliases() == []
