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
        "PlanReader",
        "PlanRebuilder",
    ),
    uses={
        "LogicalCuts": ("PlanRebuilder",),
        "ObservedMetrics": ("PlanRebuilder",),
        "PlanReader": ("LeafPartitions",),
        "PlanRebuilder": ("AdaptiveJoins", "CoalescedReads", "LeafPartitions"),
    },
)
