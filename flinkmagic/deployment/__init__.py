"""Planned jobs on the session's own SparkContext.

Vertices run as Spark stages (`stage_runner`), submitted when Flink's scheduler wants them (`spark_slot_provider`), and
what Spark says of their tasks (`task_monitor`) becomes the states of their executions (`subtask_state`).
"""

from flinkmagic.deployment.deployment_snapshot import DeploymentSnapshot
from flinkmagic.deployment.spark_deployment import SparkDeployment
from flinkmagic.deployment.task_records import TaskRecord

__all__ = ["DeploymentSnapshot", "SparkDeployment", "TaskRecord"]
