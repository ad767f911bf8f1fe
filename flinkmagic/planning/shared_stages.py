"""Finds what the sinks of a translated job share, under the user's names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from flinkmagic.planning.boundaries import Boundary
from flinkmagic.planning.plan_reader import PlanNode
from flinkmagic.planning.requests import SinkRequest
from flinkmagic.planning.sinks import PlannedBoundary, SharedStage
from flinkmagic.planning.sql_words import keys_of
from flinkmagic.planning.translation import KeptStage, Translator


def shared_stages(
    translator: Translator,
    requests: Sequence[SinkRequest],
    boundaries: Sequence[Boundary],
    kept: Sequence[KeptStage],
) -> tuple[SharedStage, ...]:
    """Return the boundaries and caches, then the exchanges that are equal in several sinks (or boundaries)."""
    found = []
    why = {boundary.dataset_id: boundary.why for boundary in boundaries}
    for stage in kept:
        if stage.cache is not None and len(stage.readers) > 1:
            facts = stage.cache.metadata or {}
            found.append(
                SharedStage(
                    what=facts.get("call") or stage.name,
                    variable=stage.name,
                    sinks=_names(requests, _sinks_of(stage.readers, len(requests), kept)),
                    why=why.get(stage.dataset_id, "it is cached"),
                )
            )
    for number, units in translator.consumers.items():
        if len(units) < 2:
            continue
        partition = translator.partition_of(number)
        facts = partition.input.metadata or {}
        found.append(
            SharedStage(
                what=_of_sql(facts, translator.exchange_of(number))
                or facts.get("call")
                or facts.get("operator")
                or partition.name,
                # What a SQL text made has the name, not each of its operators.
                variable="" if "reads" in facts and "call" in facts else facts.get("variable", ""),
                sinks=_names(requests, _sinks_of(units, len(requests), kept)),
            )
        )
    return tuple(found)


def _of_sql(facts: Mapping[str, Any], exchange: PlanNode) -> str:
    """Return the tables and columns that an exchange inside a SQL text handles."""
    if "reads" not in facts:
        return ""
    done, keys = facts["does"], keys_of(exchange)
    return facts["reads"] + (f" ({done})" if done and done != "scan" else "") + (f" by {keys}" if keys else "")


def planned_boundaries(
    requests: Sequence[SinkRequest], boundaries: Sequence[Boundary], kept: Sequence[KeptStage]
) -> tuple[PlannedBoundary, ...]:
    """Return the boundaries that are still read once everything is optimised."""
    stages = {stage.dataset_id: stage for stage in kept}
    found = [(boundary, stages[boundary.dataset_id]) for boundary in boundaries]
    return tuple(
        PlannedBoundary(
            name=boundary.name,
            dataframes=boundary.dataframes,
            columns=boundary.columns,
            is_computed_anyway=boundary.is_computed_anyway,
            tail_id=stage.cache.inputs[0].id,
            sinks=_sinks_of(stage.readers, len(requests), kept),
            multiplies=boundary.multiplies,
        )
        for boundary, stage in found
        if stage.cache is not None and stage.cache.inputs[0].id is not None
    )


def _sinks_of(units: Iterable[int], sinks: int, kept: Sequence[KeptStage]) -> tuple[int, ...]:
    """Return the sinks among some units, and those that use the boundaries among them."""
    found: set[int] = set()
    waiting = list(units)
    while waiting:
        unit = waiting.pop()
        if unit < sinks:
            found.add(unit)
        else:
            waiting += kept[unit - sinks].readers
    return tuple(sorted(found))


def _names(requests: Sequence[SinkRequest], sinks: Iterable[int]) -> tuple[str, ...]:
    return tuple(requests[sink].name for sink in sinks)
