"""Reads what the operators of a stage have measured, once it has run (``java/StageMetrics.java``)."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Metrics = Mapping[str, Any]
"""Spark's SQL metrics above zero, by Spark's names. A scan of files also has their ``paths`` (the roots), which
``partitions`` of them it reads (a condition), the ``format``, and whether it is ``splittable``."""

NOTHING: Metrics = {}


@dataclass(frozen=True)
class StageMetrics:
    """The measures of one stage; none of a stage that has not run, or was over soon."""

    operators: Mapping[int, Metrics] = field(default_factory=dict)
    """By the number of an operator's node."""
    top: Metrics = field(default_factory=dict)
    """Of what is above all operators: the exchange that the stage writes, or the write's command."""
    words: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """By a metric's name, what Spark's UI calls it, and of which kind it is: ``sum`` (a number), ``size`` (bytes),
    ``timing`` (ms), ``nsTiming`` (ns), ``average``."""

    @classmethod
    def of(cls, deflated: bytes) -> StageMetrics:
        """Read what the driver has told."""
        answer = json.loads(zlib.decompress(deflated))
        top = answer.pop("top", NOTHING)
        words = {name: (called, kind) for name, (called, kind) in answer.pop("words", {}).items()}
        return cls({int(number): metrics for number, metrics in answer.items()}, top, words)
