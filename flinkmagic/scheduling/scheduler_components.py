"""Makes the parts of a scheduler that options choose (Flink's `DefaultSchedulerComponents`)."""

from __future__ import annotations

from collections.abc import Sequence

from flinkmagic.errors.usage import InvalidValueError
from flinkmagic.graph.exchange_mode import RuntimeExecutionMode
from flinkmagic.graph.execution_graph import ExecutionGraph
from flinkmagic.graph.slot_sharing import local_input_preferred
from flinkmagic.scheduling.executions import Executions
from flinkmagic.scheduling.failover.failover_strategy import (
    FailoverStrategy,
    RestartAllFailoverStrategy,
    RestartPipelinedRegionFailoverStrategy,
)
from flinkmagic.scheduling.partition_tracker import JobMasterPartitionTracker
from flinkmagic.scheduling.preferred_resources import PreferredResources
from flinkmagic.scheduling.scheduling_topology import SchedulingTopology
from flinkmagic.scheduling.slots.execution_slot_allocator import SlotSharingExecutionSlotAllocator
from flinkmagic.scheduling.slots.physical_slot_provider import PhysicalSlotProvider

FAILOVER_STRATEGIES = ("region", "full")
"""`jobmanager.execution.failover-strategy`."""


def make_allocator(
    graph: ExecutionGraph,
    executions: Executions,
    slot_provider: PhysicalSlotProvider,
    groups: Sequence[Sequence[int]] | None,
    topology: SchedulingTopology,
) -> SlotSharingExecutionSlotAllocator:
    """Return an allocator for a job; without `groups`, with Flink's local-input-preferred ones."""
    if groups is None:
        groups = [members.tolist() for members in local_input_preferred(graph).members()]
    names = [graph.job_vertex_of(group[0]).job_vertex.slot_sharing_group.name for group in groups]
    return SlotSharingExecutionSlotAllocator(
        slot_provider,
        groups,
        names,
        graph.job_graph.job_type is RuntimeExecutionMode.STREAMING,
        PreferredResources(topology, executions),
    )


def make_failover_strategy(
    name: str, graph: ExecutionGraph, topology: SchedulingTopology, tracker: JobMasterPartitionTracker
) -> FailoverStrategy:
    """Return a failover strategy by its name in Flink's configuration."""
    if name == "region":
        return RestartPipelinedRegionFailoverStrategy(topology, graph.state, tracker)
    if name == "full":
        return RestartAllFailoverStrategy(graph.state)
    raise InvalidValueError(name, f"one of {', '.join(FAILOVER_STRATEGIES)}", "the failover strategy")
