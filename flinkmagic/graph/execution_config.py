"""The settings of a job: those that its operators share, and those of its scheduler.

Departure from Flink: jars, files, savepoints and checkpoints are not here. Spark ships and keeps its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from flinkmagic.graph.exchange_mode import BatchShuffleMode
from flinkmagic.graph.transformations import UPPER_BOUND_MAX_PARALLELISM


@dataclass(frozen=True)
class ExecutionConfig:
    """The settings that all operators of a job share. Mirrors ``ExecutionConfig``."""

    parallelism: int = 1
    max_parallelism: int | None = None
    chaining: bool = True
    batch_shuffle_mode: BatchShuffleMode = BatchShuffleMode.ALL_EXCHANGES_BLOCKING
    upper_bound_max_parallelism: int = UPPER_BOUND_MAX_PARALLELISM


class InputDependencyConstraint(Enum):
    """Mirrors ``InputDependencyConstraint``: whether a region waits for ANY or ALL of its inputs."""

    ANY = "ANY"
    ALL = "ALL"
