"""Compiles capturing's Java classes inside the session's driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flinkmagic.jvm.driver_classes import DriverClasses

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLASSES = DriverClasses(
    "flinkmagic.capturing.driver",
    (
        "CaptureReader",
        "LeafReader",
        "LineageReader",
        "ListedInputs",
        "PlanFunctions",
        "PrunedReads",
        "SqlReader",
    ),
    uses={
        **dict.fromkeys(("LeafReader", "LineageReader", "PlanFunctions", "SqlReader"), ("CaptureReader",)),
        **dict.fromkeys(("ListedInputs", "PrunedReads"), ("CaptureReader", "LeafReader")),
    },
)


def require_compiler(spark: SparkSession) -> None:
    """Check, before anything is captured, that the session's JVM compiles our classes.

    Raises
    ------
    DriverClassesRefusedError
        If it does not.
    """
    CLASSES.shared_instance(spark.sparkContext._gateway, "CaptureReader")
