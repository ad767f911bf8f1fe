"""What a Spark job says of its stage's place in a run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from flinkmagic.deployment.stages.stage_place import StagePlace
from flinkmagic.graph.partitioner import PartitionerKind


def edge(producer: str, kind: PartitionerKind) -> Any:
    return SimpleNamespace(producer=SimpleNamespace(id=producer), partitioner=SimpleNamespace(kind=kind))


def test_a_place_is_read_as_it_was_written() -> None:
    reads = [edge("aaaaaaaa0000", PartitionerKind.HASH), edge("bbbbbbbb0000", PartitionerKind.BROADCAST)]
    vertex: Any = SimpleNamespace(id="0123456789abcdef", inputs=reads)
    place = StagePlace.of("flinkmagic-1", vertex, "shuffle")
    assert str(place) == "flinkmagic-1 01234567 shuffle aaaaaaaa:HASH bbbbbbbb:BROADCAST"
    assert StagePlace.read(str(place)) == place
    assert StagePlace.read("run 01234567 write") == StagePlace("run", "01234567", "write", ())


@pytest.mark.parametrize("text", ["", "run", "run 0123456 write", "run 01234567 write x", "run 01234567 write 0:HASH"])
def test_another_text_is_no_place(text: str) -> None:
    assert StagePlace.read(text) is None
