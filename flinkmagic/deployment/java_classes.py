"""Deployment's Java classes, compiled inside the session's driver.

The driver alone needs them, but for what `python_workers` sends to executors.
"""

from __future__ import annotations

from flinkmagic.jvm.driver_classes import DriverClasses

CLASSES = DriverClasses(
    "flinkmagic.deployment",
    (
        "InSession",
        "JobProperties",
        "Observations",
        "PythonWorkers",
        "SessionQuery",
        "StageBody",
        "TaskMonitor",
    ),
)
