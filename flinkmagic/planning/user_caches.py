"""Plans what the user has cached as persistent results, which outlive the job as Spark's cache outlives it.

The rows are Spark's own: its cache manager has the relation, ``unpersist()`` drops it, and a query that is no part of a
graph reads it. So a job never replaces the plan behind a cache, and never releases its rows.

1. A cache that is not filled, or filled in part, is filled by a stage of its own, once for all that read it: plain
   Spark fills it in the first query that reads it, and two that run simultaneously wait for each other's blocks.
2. A filled one is read, as a job of Flink's reads the persistent result of an earlier one. The result has the same name
   in every graph while Spark keeps the rows.
3. Checkpointed rows (``checkpoint()``, ``localCheckpoint()``: both run on their line) are read in the same way.
4. If the plan is adaptive, as Spark's are by default, Spark plans the stages below the cache while it runs them: they
   belong to the one vertex that fills it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from flinkmagic.graph.exchange_mode import ChainingStrategy
from flinkmagic.graph.transformations import CacheTransformation, SourceTransformation
from flinkmagic.jvm.java import dataset_of, execution_of, java_class, simple_name
from flinkmagic.planning.partitions import is_adaptive_cache
from flinkmagic.planning.plan_reader import ADAPTIVE
from flinkmagic.planning.translation import KeptStage

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import SparkSession

    from flinkmagic.capturing.program import Program
    from flinkmagic.planning.operator_labels import OperatorLabels
    from flinkmagic.planning.partitions import PartitionCounts
    from flinkmagic.planning.plan_reader import PlanForest, PlanNode
    from flinkmagic.planning.stage_handle_factory import StageHandleFactory
    from flinkmagic.planning.translation import Translator


class UserCaches:
    """Makes persistent results of the caches that the plans of a job read.

    Parameters
    ----------
    program : Program
        It knows the names of what is cached. A cache is filled under the configuration of its session.
    """

    def __init__(
        self,
        program: Program,
        forest: PlanForest,
        counts: PartitionCounts,
        labels: OperatorLabels,
        handles: StageHandleFactory,
    ) -> None:
        self._spark = program.spark
        self._program = program
        self._forest = forest
        self._counts = counts
        self._labels = labels
        self._handles = handles
        self._seen = 0
        self._names: dict[str, str] | None = None

    def cut(self, translator: Translator, first_unit: int) -> list[KeptStage]:
        """Make the caches that were met since the last call persistent results; return those that are to be filled.

        They are numbered from `first_unit` on, as `KeptStage` says.
        """
        fills: list[KeptStage] = []
        for scan in self._met():
            if scan.inside is None:
                translator.cache_reads[scan.number] = self._read(scan)
            elif scan.inside.number not in translator.kept:
                fills.append(self._fill(scan, first_unit + len(fills)))
                translator.cut_at(scan.inside, fills[-1])
            self._counts.filled_before.add(scan.number)
        return fills

    def _met(self) -> Iterator[PlanNode]:
        """Return the scans of cached or checkpointed rows in the plans that were read since the last call."""
        numbers = range(len(self._forest.nodes) - 1, self._seen - 1, -1)
        self._seen = len(self._forest.nodes)
        for number in numbers:
            if self._forest.nodes[number].cache:
                yield self._forest.nodes[number]

    def _read(self, scan: PlanNode) -> CacheTransformation:
        """Return the persistent result that a scan of a filled cache reads."""
        tasks = max(1, self._counts.of(scan).number)
        name = self._name(scan)
        return CacheTransformation(
            SourceTransformation(name, parallelism=tasks),
            name,
            dataset_id=_dataset_id(scan),
            cached=True,
            chaining_strategy=ChainingStrategy.HEAD,
            parallelism=tasks,
            metadata={"operator": f"CacheRead: {name}"},
        )

    def _fill(self, scan: PlanNode, unit: int) -> KeptStage:
        """Return the stage that fills the cache which a scan reads."""
        name, plan = self._name(scan), scan.inside
        assert plan is not None
        relation = self._forest.jvm_node(scan).relation()
        early = plan.kind == ADAPTIVE
        handle = partial(self._handles.of_cache, name, relation, self._spark._jsparkSession, early=early)
        return KeptStage(unit, name, _dataset_id(scan), handle, is_users=True)

    def adaptive_notes(self, scans: Iterable[PlanNode]) -> Iterator[str]:
        """Return what the user should know of each cache with an adaptive plan."""
        for scan in {scan.cache: scan for scan in scans if is_adaptive_cache(scan)}.values():
            name = self._name(scan)
            if scan.number in self._counts.filled_before:
                yield (
                    f"{name} is cached, and its plan is adaptive: Spark plans the stages that fill the cache while it "
                    "runs them, and they all belong to the vertex that fills it."
                )
            else:
                yield (
                    f"{name} is cached, the cache is not filled yet, and its plan is adaptive: the first stage that "
                    "reads it runs stages that are not in the graph. Fill it first (count()), or do not cache it."
                )

    def _name(self, scan: PlanNode) -> str:
        """Return the user's name for what is cached, else a table's, else the call that made it, else its columns."""
        if self._names is None:
            found = list(self._names_of_caches())
            self._names = dict(reversed(found))  # the first name, where projections of the same rows have others
        facts = self._labels.of(scan).metadata
        known = self._names.get(_dataset_id(scan)) or scan.table or facts.get("variable") or facts.get("call")
        more = ["…"] if len(scan.columns) > _FEW else []
        return known or f"rows ({', '.join([*scan.columns[:_FEW], *more])})"

    def _names_of_caches(self) -> Iterator[tuple[str, str]]:
        manager = self._spark._jsparkSession.sharedState().cacheManager()
        for name, value in [*(self._program.namespace or {}).items(), *self._program.variables.items()]:
            if name.startswith("_") or not isinstance(value, DataFrame):
                continue
            kept = _rows_of(value, manager)
            if kept is not None and simple_name(kept) == "InMemoryRelation":
                yield dataset_id_of(self._spark, kept.cacheBuilder()), name
            elif kept is not None:
                yield f"cache-rdd{kept.rdd().id()}", name


_FEW = 4
"""How many columns name rows that have no name."""


def _rows_of(df: DataFrame, manager: JavaObject) -> JavaObject | None:
    """Return the relation of a DataFrame that is cached, or that is nothing but kept rows, as a checkpointed one is."""
    if df.is_cached:
        cached = manager.lookupCachedData(df._jdf)
        return cached.get().cachedRepresentation() if cached.isDefined() else None
    plan = execution_of(df).analyzed()
    while simple_name(plan) == "Project":
        plan = plan.child()
    if simple_name(plan) == "InMemoryRelation":
        return plan
    if simple_name(plan) != "LogicalRDD":
        return None
    rows = dataset_of(df.sparkSession._jvm, df.sparkSession._jsparkSession, plan)
    cached = manager.lookupCachedData(rows)
    return cached.get().cachedRepresentation() if cached.isDefined() else plan


def dataset_id_of(spark: SparkSession, builder: JavaObject) -> str:
    """Return the name of the persistent result whose rows a builder of cached rows holds."""
    system = java_class(spark.sparkContext._jvm, "java.lang.System")
    return f"cache-{system.identityHashCode(builder) & 0xFFFFFFFF:x}"


def _dataset_id(scan: PlanNode) -> str:
    return f"cache-{scan.cache}"
