"""Planning's Java classes, compiled inside the session's driver."""

from __future__ import annotations

from flinkmagic.jvm.driver_classes import DriverClasses

CLASSES = DriverClasses(
    "flinkmagic.planning",
    (
        "AdaptiveJoins",
        "CoalescedReads",
        "ColumnPlanning",
        "ColumnStore",
        "CommandRows",
        "FrameParts",
        "KeptColumns",
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
        "Replacement",
        "SelectedRows",
        "SingleStages",
        "SourceColumns",
        "SourceScan",
        "TotalExpressions",
        "TotalPlans",
    ),
    uses={
        "CoalescedReads": ("MergedRows",),
        "ColumnPlanning": ("ColumnStore", "KeptColumns"),
        "ColumnStore": ("KeptColumns",),
        "FrameParts": ("PlanLeaves", "PlanNodes", "TotalExpressions", "TotalPlans"),
        "KeptColumns": ("PlanLeaves", "PlanNodes", "Replacement"),
        "LogicalCuts": ("PlanLeaves", "PlanNodes", "Replacement", "SelectedRows"),
        "MergedRows": ("PlanLeaves", "PlanNodes"),
        "ObservedMetrics": ("PlanRebuilder",),
        "PlanNodes": ("LeafPartitions", "PlanLeaves", "Replacement"),
        "PlanReader": ("LeafPartitions", "SelectedRows"),
        "PlanRebuilder": ("AdaptiveJoins", "CoalescedReads", "MergedRows", "PipelinedExchanges", "PlanNodes"),
        "SelectedRows": ("PlanNodes",),
        "SourceColumns": ("ColumnPlanning", "ColumnStore", "FrameParts", "PlanLeaves", "PlanNodes", "SourceScan"),
        "SourceScan": (
            "ColumnPlanning",
            "KeptColumns",
            "PlanLeaves",
            "PlanNodes",
            "Replacement",
            "TotalExpressions",
        ),
        "TotalPlans": ("PlanLeaves", "TotalExpressions"),
    },
)
