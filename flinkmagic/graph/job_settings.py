"""The settings of a job that its graphs pass to the scheduler, and Flink's old names for its ways of scheduling."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class ScheduleMode(Enum):
    """Mirrors the ``ScheduleMode`` of Flink up to 1.12.

    Informative: the scheduler follows pipelined regions; both modes are special cases of them (one region: EAGER).
    """

    EAGER = "EAGER"
    LAZY_FROM_SOURCES_WITH_BATCH_SLOT_REQUEST = "LAZY_FROM_SOURCES_WITH_BATCH_SLOT_REQUEST"


class InputDependencyConstraint(Enum):
    """Mirrors ``InputDependencyConstraint``: whether a region waits for ANY or ALL of its inputs."""

    ANY = "ANY"
    ALL = "ALL"


@dataclass(frozen=True)
class JobSettings:
    """The job-wide settings.

    Departure from Flink: jars, files, savepoints and checkpoints are not here. Spark ships and keeps its own.
    """

    input_dependency_constraint: InputDependencyConstraint = InputDependencyConstraint.ALL
