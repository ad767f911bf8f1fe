"""A run of a compiled graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flinkmagic.deployment import JobFailure, SparkDeployment, TaskRecord
from flinkmagic.display.snapshot import ErrorView, JobSnapshot
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.planning import PlannedJob
from flinkmagic.scheduling.job_status import JobStatus
from flinkmagic.session.snapshots import job_snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
