"""What travels with a job through all graphs and decides nothing about them.

Flink keeps these on ``StreamGraph`` and ``JobGraph``. Here they are informative, unless a field says otherwise:
deployments and displays read them, no graph rule does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any


class TimeCharacteristic(Enum):
    """Mirrors ``TimeCharacteristic``. Informative: Spark's operators carry their own notion of time."""

    PROCESSING_TIME = "ProcessingTime"
    INGESTION_TIME = "IngestionTime"
    EVENT_TIME = "EventTime"


class ScheduleMode(Enum):
    """Mirrors the ``ScheduleMode`` of Flink up to 1.12.

    Informative: the scheduler goes by pipelined regions; both modes are special cases of them (one region: EAGER).
    """

    EAGER = "EAGER"
    LAZY_FROM_SOURCES = "LAZY_FROM_SOURCES"
    LAZY_FROM_SOURCES_WITH_BATCH_SLOT_REQUEST = "LAZY_FROM_SOURCES_WITH_BATCH_SLOT_REQUEST"


class InputDependencyConstraint(Enum):
    """Mirrors ``InputDependencyConstraint``: whether a region waits for ANY or ALL of its inputs.

    The scheduler reads it.
    """

    ANY = "ANY"
    ALL = "ALL"


@dataclass(frozen=True)
class CheckpointConfig:
    """Mirrors ``CheckpointConfig``. Informative: a Structured Streaming query checkpoints by itself."""

    interval_ms: int | None = None
    mode: str = "EXACTLY_ONCE"
    timeout_ms: int = 600_000
    max_concurrent: int = 1
    unaligned: bool = False

    @property
    def enabled(self) -> bool:
        """Whether checkpoints are taken."""
        return self.interval_ms is not None


@dataclass(frozen=True)
class SavepointRestoreSettings:
    """Mirrors ``SavepointRestoreSettings``. Informative: the path that a streaming query was told to start from."""

    restore_path: str | None = None
    allow_non_restored_state: bool = False


@dataclass(frozen=True)
class JobSettings:
    """The job-wide settings and attachments.

    Attributes
    ----------
    user_jars, classpath : tuple of str
        The SparkContext's jars. The deployment ships nothing by itself: Spark distributed them already.
    user_artifacts : Mapping of str to str
        Name to path of the SparkContext's files, Python files and archives (Flink's distributed cache).
    blob_keys : tuple of str
        Keys of uploaded jars in a blob server; Spark has its own file server, so they are its addresses.
    time_characteristic, state_backend, checkpoint_config, savepoint_restore_settings
        Informative.
    schedule_mode : ScheduleMode or None
        Informative; None is what Flink chose for the runtime mode.
    input_dependency_constraint : InputDependencyConstraint
        Read by the scheduler.
    global_job_parameters : Mapping of str to str
        Shown to the user as the job's configuration.
    """

    user_jars: tuple[str, ...] = ()
    classpath: tuple[str, ...] = ()
    user_artifacts: Mapping[str, str] = field(default_factory=dict)
    blob_keys: tuple[str, ...] = ()
    time_characteristic: TimeCharacteristic = TimeCharacteristic.EVENT_TIME
    state_backend: str | None = None
    checkpoint_config: CheckpointConfig = CheckpointConfig()
    savepoint_restore_settings: SavepointRestoreSettings = SavepointRestoreSettings()
    schedule_mode: ScheduleMode | None = None
    input_dependency_constraint: InputDependencyConstraint = InputDependencyConstraint.ALL
    global_job_parameters: Mapping[str, Any] = field(default_factory=dict)
