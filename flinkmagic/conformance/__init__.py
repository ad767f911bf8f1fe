"""Graphs and schedules as plain data, in the form in which Flink's own are recorded for comparison.

This package stands alone: `flinkmagic compile` prints what is made here, and no layer that plans, schedules or runs a
job knows it. (`CompiledGraph.to_json` prints the same form of a session's graph; the import contract names that one
line.)
"""
