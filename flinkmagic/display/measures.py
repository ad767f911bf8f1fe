"""What views show of the work of a job vertex: where its tasks' time went, and what its operators have measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Facts = tuple[tuple[str, str], ...]
"""Readable names and values."""

PARTS: dict[str, str] = {
    "computing": "#0072b2",
    "Python": "#cc79a7",
    "sorting": "#56b4e9",
    "shuffle read wait": "#e69f00",
    "shuffle write": "#f0e442",
    "garbage collection": "#d55e00",
    "serialization": "#8894a5",
    "scheduler delay": "#c9ced6",
    "lost attempts": "#7a2f00",
}
"""What the time of tasks consists of, in the order of the bar, with its colours."""


@dataclass(frozen=True)
class StageLink:
    """Where Spark's own UI shows a stage."""

    words: str
    url: str


@dataclass(frozen=True)
class VertexMeasures:
    """What is known of the work of one job vertex."""

    parts: Mapping[str, float] = field(default_factory=dict)
    """The time of all tasks in milliseconds, by names of `PARTS`; parts that took none are left out."""
    facts: Facts = ()
    """Of the tasks of its stage, added up."""
    operators: Mapping[int, Facts] = field(default_factory=dict)
    """By the id of a stream node."""
    above: Facts = ()
    """Of the exchange that its rows go through, or of the command of a write."""
    stages: tuple[StageLink, ...] = ()
