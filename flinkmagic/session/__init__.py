"""Compiled graphs and their jobs: the Python API that the magics are a shell over."""

from __future__ import annotations

from flinkmagic.capturing.recorder import capture
from flinkmagic.session.compiled_graph import (
    FORMATS,
    VIEWS,
    CompiledGraph,
    check_name,
    check_parallelism,
    compile,
)
from flinkmagic.session.job import Job
from flinkmagic.session.simulated_run import SimulatedRun, simulate_graph

__all__ = [
    "FORMATS",
    "VIEWS",
    "CompiledGraph",
    "Job",
    "SimulatedRun",
    "capture",
    "check_name",
    "check_parallelism",
    "compile",
    "simulate_graph",
]
