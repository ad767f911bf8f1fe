"""Planning's Java classes, compiled inside the session's driver."""

from __future__ import annotations

from flinkmagic.jvm.driver_classes import DriverClasses

CLASSES = DriverClasses(
    "flinkmagic.planning",
    (
        "AdaptiveJoins",
        "CoalescedReads",
        "CommandRows",
        "LeafPartitions",
        "LogicalCuts",
        "ObservedMetrics",
        "PlanKinds",
        "PlanNodes",
        "PlanReader",
        "PlanRebuilder",
        "SingleStages",
    ),
    uses={
        "LogicalCuts": ("PlanNodes",),
        "ObservedMetrics": ("PlanRebuilder",),
        "PlanNodes": ("LeafPartitions",),
        "PlanReader": ("LeafPartitions",),
        "PlanRebuilder": ("AdaptiveJoins", "CoalescedReads", "PlanNodes"),
    },
)
