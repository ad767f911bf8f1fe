"""Planned jobs on the session's own SparkContext.

The session's dispatcher (`session_cluster`) runs a master for each job (`spark_job_master`). Vertices run as Spark
stages (`stages`), submitted when Flink's scheduler wants them (`spark_slot_pool`), and what Spark reports about their
tasks (`watching`) becomes the states of their executions (`vertices`).
"""

from flinkmagic.deployment.deployment import Deployment
from flinkmagic.deployment.deployment_snapshot import DeploymentSnapshot
from flinkmagic.deployment.spark_deployment import SparkDeployment
from flinkmagic.deployment.watching.task_records import TaskRecord

__all__ = ["Deployment", "DeploymentSnapshot", "SparkDeployment", "TaskRecord"]
