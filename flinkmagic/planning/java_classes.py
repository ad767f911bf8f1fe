"""Planning's Java classes, compiled inside the session's driver."""

from __future__ import annotations

from flinkmagic.jvm.driver_classes import DriverClasses

CLASSES = DriverClasses(
    "flinkmagic.planning",
    (
        "AdaptiveJoins",
        "CoalescedReads",
        "CommandRows",
        "FrameParts",
        "LeafPartitions",
        "LogicalCuts",
        "MergedRows",
        "ObservedMetrics",
        "PipelinedExchanges",
        "PlanKinds",
        "PlanLeaves",
        "PlanNodes",
        "PlanReader",
        "PlanRebuilder",
        "SelectedRows",
        "SingleStages",
        "SourceColumns",
        "TotalExpressions",
        "TotalPlans",
    ),
    uses={
        "CoalescedReads": ("MergedRows",),
        "FrameParts": ("PlanLeaves", "PlanNodes", "TotalExpressions", "TotalPlans"),
        "LogicalCuts": ("PlanLeaves", "PlanNodes", "SelectedRows"),
        "MergedRows": ("PlanLeaves", "PlanNodes"),
        "ObservedMetrics": ("PlanRebuilder",),
        "PlanNodes": ("LeafPartitions",),
        "PlanReader": ("LeafPartitions", "SelectedRows"),
        "PlanRebuilder": ("AdaptiveJoins", "CoalescedReads", "MergedRows", "PipelinedExchanges", "PlanNodes"),
        "SelectedRows": ("PlanNodes",),
        "SourceColumns": ("FrameParts", "PlanLeaves", "PlanNodes", "TotalExpressions"),
        "TotalPlans": ("TotalExpressions",),
    },
)
