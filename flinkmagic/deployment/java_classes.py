"""Holds deployment's Java classes, which are compiled inside the session's driver.

Only the driver needs them, except those that `python_workers` sends to executors.
"""

from __future__ import annotations

from flinkmagic.jvm.driver_classes import DriverClasses

CLASSES = DriverClasses("flinkmagic.deployment", filled=("SessionQuery",), others=("PythonWorkerWatch",))
