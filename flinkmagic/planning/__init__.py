"""Reads Spark's physical plans and translates them to Flink's Transformations.

For each sink: Catalyst plans its write's own command (or its query) on a clone of the session (`clones`), the physical
plan is read in one call (`plan_reader`), the number of partitions of every operator is derived from the plan's
structure (`partitions`), every operator is assigned the user's call that asked for it (`provenance`), and stage by
stage they become Transformations (`translation`) with handles to run them by (`stage_handles`, made by
`stage_handle_factory`).

No Spark job is started here: `deployment` runs the handles. Which results are kept for later jobs is decided in
`reuse`.
"""

from flinkmagic.planning.planner import PlannedJob, plan

__all__ = ["PlannedJob", "plan"]
