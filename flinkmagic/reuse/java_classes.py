"""Declares the Java classes of `reuse`, compiled inside the session's driver."""

from __future__ import annotations

from flinkmagic.jvm.driver_classes import DriverClasses

CLASSES = DriverClasses(
    "flinkmagic.reuse",
    (
        "BackgroundJobs",
        "CompilerDirectives",
        "ColumnNames",
        "Digests",
        "FileListings",
        "GeneratedCode",
        "LocalRows",
        "PersistedRdds",
        "PlanFact",
        "PlanKeys",
        "RowFiles",
        "SessionSettings",
    ),
    uses={
        "FileListings": ("Digests",),
        "LocalRows": ("Digests",),
        "PlanKeys": (
            "ColumnNames",
            "Digests",
            "FileListings",
            "LocalRows",
            "PersistedRdds",
            "PlanFact",
            "SessionSettings",
        ),
    },
)
