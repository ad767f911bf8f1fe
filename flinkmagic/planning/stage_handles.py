"""Makes the handles of stages: ties what was planned to the plans that are run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flinkmagic.planning import driver_classes
from flinkmagic.planning.handles import (
    BroadcastStageHandle,
    Once,
    Renewable,
    ResultStageHandle,
    ShuffleMapStageHandle,
    StageHandle,
    SubqueryStageHandle,
    WriteStageHandle,
)
from flinkmagic.planning.partitions import PartitionCount, PartitionCounts
from flinkmagic.planning.plan_reader import BROADCAST_EXCHANGE, SHUFFLE_EXCHANGE, PlanForest, PlanNode

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

    from flinkmagic.planning.requests import SinkRequest
    from flinkmagic.planning.translation import Stage


class StageHandles:
    """The handles of one job, over plans in which equal exchanges are one.

    The plans are rebuilt when a handle is first asked for its objects, and each node once.

    Parameters
    ----------
    forest : PlanForest
        The plans as they were read.
    counts : PartitionCounts
        How many partitions operators have.
    """

    def __init__(self, forest: PlanForest, counts: PartitionCounts) -> None:
        self._forest = forest
        self._counts = counts
        self._rebuilder = driver_classes.new_instance(forest.sc, "PlanRebuilder")

    def share(self, node: PlanNode, first: PlanNode) -> None:
        """Let the plans that are run use the rows of `first` in place of `node`."""
        self._rebuilder.share(self._forest.jvm_node(node), self._forest.jvm_node(first))

    def of_exchange(self, node: PlanNode, stage: Stage, rows: PartitionCount) -> StageHandle:
        """The handle of the stage below an exchange or a subquery."""
        if node.kind == SHUFFLE_EXCHANGE:
            return ShuffleMapStageHandle(
                name=node.name,
                tasks=rows.number,
                exact=rows.exact,
                starts_jobs_early=self._starts_jobs(stage) or _samples(node),
                output_partitions=node.partitions or 0,
                dependency=Once(lambda: self._rebuilt(node).shuffleDependency()),
            )
        kind = BroadcastStageHandle if node.kind == BROADCAST_EXCHANGE else SubqueryStageHandle
        return kind(
            name=node.name,
            tasks=rows.number,
            # A scalar subquery takes two rows, partition after partition.
            exact=rows.exact and (node.kind == BROADCAST_EXCHANGE or rows.number <= 1),
            starts_jobs_early=self._starts_jobs(stage),
            made=Renewable(
                lambda: self._rebuilt(node), lambda: self._rebuilder.renew(self._forest.jvm_node(node))
            ),
        )

    def hidden_shuffle(self, node: PlanNode, stage: Stage, rows: PartitionCount) -> ShuffleMapStageHandle:
        """The handle of the stage before a shuffle that an operator makes by itself."""
        jvm_node = self._forest.jvm_node(node)
        self._rebuilder.hide(jvm_node)
        return ShuffleMapStageHandle(
            name=node.name,
            tasks=rows.number,
            exact=rows.exact,
            starts_jobs_early=self._starts_jobs(stage),
            output_partitions=1,
            hidden=True,
            dependency=Once(lambda: self._rebuilder.shuffleOf(jvm_node)),
        )

    def of_write(
        self, request: SinkRequest, query_execution: JavaObject, plan: JavaObject, stage: Stage, tasks: int
    ) -> WriteStageHandle:
        """The handle of a write whose plan has the command on top."""
        return WriteStageHandle(
            name=request.name,
            tasks=max(1, tasks),  # a write of nothing still runs one task, for an empty file with the schema
            exact=self._exact(stage),
            starts_jobs_early=self._starts_jobs(stage),
            query_execution=query_execution,
            made=Once(lambda: self._rebuilder.rebuild(plan)),
        )

    def of_result(
        self, request: SinkRequest, query_execution: JavaObject, plan: JavaObject, stage: Stage, tasks: int
    ) -> ResultStageHandle:
        """The handle of rows that stay in the session."""
        return ResultStageHandle(
            name=request.name,
            tasks=tasks,
            exact=self._exact(stage),
            starts_jobs_early=self._starts_jobs(stage),
            query_execution=query_execution,
            made=Once(lambda: self._rebuilder.rebuild(plan)),
            schema_json=request.schema_json,
        )

    def _rebuilt(self, node: PlanNode) -> JavaObject:
        return self._rebuilder.rebuild(self._forest.jvm_node(node))

    def _exact(self, stage: Stage) -> bool:
        return all(self._counts.of(node).exact for node in stage.nodes)

    def _starts_jobs(self, stage: Stage) -> bool:
        return any(self._counts.starts_job(node) for node in stage.nodes)


def _samples(exchange: PlanNode) -> bool:
    """Whether Spark samples the rows below when it makes the shuffle's dependency."""
    return exchange.partitioning == "RangePartitioning" and (exchange.partitions or 0) > 1
