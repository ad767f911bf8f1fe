"""Planning's few Java classes, compiled inside the session's driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flinkmagic.capturing.driver_classes import DriverClasses

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext

_CLASSES = DriverClasses(
    "flinkmagic.planning",
    (
        "LeafPartitions",
        "PlanReader",
        "AdaptiveJoins",
        "CoalescedReads",
        "PlanRebuilder",
        "ObservedMetrics",
        "LogicalCuts",
        "PlanKinds",
        "PlanKeys",
        "CommandRows",
    ),
)


def new_instance(sc: SparkContext, name: str) -> JavaObject:
    """An object of one of planning's Java classes.

    Raises
    ------
    DriverClassesRefusedError
        Where this JVM does not let us compile.
    """
    assert sc._gateway is not None
    return _CLASSES.new_instance(sc._gateway, name)
