"""Records in the properties of a Spark job which stage of which run it is.

Each stage of a run is a Spark job of its own, and the plan of a later one has only the rows of the earlier ones: an
event log would not tell that they belong together, nor who reads a broadcast. The property costs some bytes a task.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flinkmagic.graph.job_graph import JobVertex

PROPERTY = "flinkmagic.stage"
"""The local property of Spark's; ``java/JobProperties.java`` sets it, too."""

HELPER = "helper"

_DIGITS = 8
"""So many of an id's digits tell the vertices of a job apart."""
_TEXT = re.compile(r"(\S+) ([0-9a-f]{8}) ([a-z]+)((?: [0-9a-f]{8}:[A-Z_]+)*)")


@dataclass(frozen=True)
class StagePlace:
    """A stage's place in its run."""

    run: str
    """The Spark job group of the run."""
    vertex: str
    """How the id of its job vertex begins."""
    kind: str
    """What it leaves: ``shuffle``, ``broadcast``, ``subquery``, ``boundary``, ``result``, ``write``; `HELPER` of a job
    that only prepares the stage."""
    inputs: tuple[tuple[str, str], ...]
    """How the ids of the vertices begin that it reads, each with the name of the partitioner."""

    @classmethod
    def of(cls, run: str, vertex: JobVertex, kind: str) -> StagePlace:
        """Return the place of a vertex's stage."""
        inputs = tuple((edge.producer.id[:_DIGITS], edge.partitioner.kind.name) for edge in vertex.inputs)
        return cls(run, vertex.id[:_DIGITS], kind, inputs)

    @classmethod
    def read(cls, text: str) -> StagePlace | None:
        """Return the place that a property tells; None if it tells none."""
        found = _TEXT.fullmatch(text)
        if found is None:
            return None
        run, vertex, kind, inputs = found.groups()
        pairs = (one.partition(":") for one in inputs.split())
        return cls(run, vertex, kind, tuple((producer, partitioner) for producer, _, partitioner in pairs))

    def __str__(self) -> str:
        return " ".join([self.run, self.vertex, self.kind, *(f"{one}:{how}" for one, how in self.inputs)])
