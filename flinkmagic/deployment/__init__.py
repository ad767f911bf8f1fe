"""Runs planned jobs on the session's own SparkContext.

The session's dispatcher (`session_cluster`) runs a master for each job (`spark_job_master`). Vertices run as Spark
stages (`stages`). When they are submitted, and what Spark's reports about their tasks (`watching`) mean for their
executions, is decided on the stage board (`board`).

Plans are made in `planning`, not here. When a job restarts is decided in `scheduling`, and what is kept for later jobs
in `reuse`.
"""

from flinkmagic.deployment.deployment import Deployment, DeploymentSnapshot
from flinkmagic.deployment.spark_deployment import SparkDeployment
from flinkmagic.deployment.watching.task_records import TaskRecord

__all__ = ["Deployment", "DeploymentSnapshot", "SparkDeployment", "TaskRecord"]
