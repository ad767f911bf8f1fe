"""Planned jobs on the session's own SparkContext.

Vertices run as Spark stages (`stages`), submitted when Flink's scheduler wants them (`spark_slot_provider`), and
what Spark says of their tasks (`watching`) becomes the states of their executions (`vertices`).
"""

from flinkmagic.deployment.deployment_snapshot import DeploymentSnapshot
from flinkmagic.deployment.spark_deployment import SparkDeployment
from flinkmagic.deployment.watching.task_records import TaskRecord

__all__ = ["DeploymentSnapshot", "SparkDeployment", "TaskRecord"]
