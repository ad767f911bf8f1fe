"""What is needed to bring a retained result up to date when files are added (`append_refresh`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject


class Part(NamedTuple):
    """What one job has made of a result."""

    exchange: JavaObject | None
    """Of a shuffle, as it ran."""
    states: JavaObject
    """The lists of files of which this part and those before it were made, as `ResultKeys.states` returns them."""


@dataclass(frozen=True)
class Appendable:
    """What is needed to bring a retained result up to date."""

    open_key: str
    """As `OpenKey.digest`."""
    parts: tuple[Part, ...] = field(repr=False)
    """All that have its rows, oldest first. Of kept rows the last one has all."""
