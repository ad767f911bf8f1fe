"""Simulates a job on a cluster that one does not have (`flinkmagic simulate`)."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from flinkmagic.cli.compile import read_topology_file
from flinkmagic.graph.environment import StreamExecutionEnvironment, reachable
from flinkmagic.graph.execution_config import InputDependencyConstraint
from flinkmagic.graph.job_graph import JobGraph
from flinkmagic.graph.job_graph_generator import create_job_graph
from flinkmagic.graph.topology import read_topology
from flinkmagic.graph.transformations import SourceTransformation
from flinkmagic.simulation.arguments import SIMULATION_ARGUMENTS, asked_for
from flinkmagic.simulation.faults import parse_duration
from flinkmagic.simulation.gantt import gantt_svg
from flinkmagic.simulation.options import SimulationOptions, simulation_options
from flinkmagic.simulation.simulation import SimulationResult, simulate
from flinkmagic.simulation.timeline import timeline_text

FORMATS = ("text", "json", "svg")


def add_parser(subparsers: Any) -> None:
    """Add the command to the console script's parser."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "simulate",
        help="run a program in JSON on a virtual cluster",
        description="Run a topology with Flink's scheduler on a virtual cluster, on virtual time. The same seed gives "
        "the same run.",
    )
    add = parser.add_argument
    add("topology", type=Path, metavar="TOPOLOGY", help="a JSON file, as for compile")
    for flag, how in SIMULATION_ARGUMENTS.items():
        add(flag, **how)
    add("--failover", choices=("region", "full"), default="region", help="what a failure restarts (region)")
    add("--input-dependency", choices=("all", "any"), default="all", help="when a region's inputs are enough")
    add("--evenly-spread", action="store_true", help="spread the job over the executors")
    add("--run-for", default="60s", metavar="TIME", help="when a job with unbounded sources is cancelled (60s)")
    add("--format", choices=FORMATS, default="text", help="how to show the run (text)")
    add("--events", action="store_true", help="with text: also the events of the job")
    add("--out", type=Path, metavar="FILE", help="where to write it instead of printing it")


def run(arguments: argparse.Namespace) -> int:
    """Simulate; return 0 if the job finished or was cancelled as asked, 1 if it failed or got stuck."""
    environment = read_topology(read_topology_file(arguments.topology))
    stream_graph = environment.get_stream_graph()
    job_graph = create_job_graph(stream_graph, job_id=f"{arguments.seed & (1 << 128) - 1:032x}")
    options = _options(arguments, environment, job_graph)
    result = simulate(job_graph, options)
    shown = _show(result, arguments)
    if arguments.out is None:
        print(shown)
    else:
        arguments.out.write_text(shown + "\n", encoding="utf-8")
    is_asked_for = result.status.name == "FINISHED" or (result.status.name == "CANCELED" and bool(options.endless))
    return 0 if is_asked_for else 1


def _options(
    arguments: argparse.Namespace, environment: StreamExecutionEnvironment, job_graph: JobGraph
) -> SimulationOptions:
    return simulation_options(
        job_graph,
        **asked_for(arguments),
        endless=frozenset(_unbounded_sources(environment)),
        run_for_ms=parse_duration(arguments.run_for),
        evenly_spread=arguments.evenly_spread,
        failover_strategy=arguments.failover,
        input_dependency=InputDependencyConstraint(arguments.input_dependency.upper()),
    )


def _unbounded_sources(environment: StreamExecutionEnvironment) -> Iterator[int]:
    for transformation in reachable(environment.transformations):
        if isinstance(transformation, SourceTransformation) and not transformation.bounded:
            assert transformation.id is not None  # an environment assigns ids to all that it knows
            yield transformation.id


def _show(result: SimulationResult, arguments: argparse.Namespace) -> str:
    if arguments.format == "json":
        return json.dumps(result.to_json(), indent=1, ensure_ascii=False)
    if arguments.format == "svg":
        return gantt_svg(result.timeline)
    parts = [str(event) for event in result.events] if arguments.events else []
    parts.append(timeline_text(result.timeline))
    if result.is_stuck:
        parts.append("The job is stuck: regions wait for each other, as they would in Flink.")
    if result.info.failure_cause is not None:
        parts.append(f"last failure: {result.info.failure_cause}")
    parts += [f"fault: {what}" for _, what in result.injected]
    return "\n".join(parts)
