"""Applies the rules of findings to a job."""

from __future__ import annotations

import logging

from flinkmagic.display.findings import Finding
from flinkmagic.session.findings.facts import JobFacts
from flinkmagic.session.findings.rule import Rule
from flinkmagic.session.findings.rules import (
    cross_join,
    driver_busy,
    evicted_cache,
    failed_tasks,
    garbage_collection,
    idle_slots,
    input_read_again,
    large_broadcast,
    multiplying_join,
    needless_sort,
    not_kept,
    one_partition,
    python_functions,
    shuffle_partitions,
    skewed_partition,
    small_files_read,
    small_files_written,
    small_side_shuffled,
    spill,
    straggling_task,
    tiny_tasks,
    too_few_tasks,
    unfiltered_partitions,
    unread_cache,
    unsplittable_files,
)

_LOG = logging.getLogger(__name__)

RULES: tuple[Rule, ...] = (
    cross_join.RULE,
    driver_busy.RULE,
    evicted_cache.RULE,
    failed_tasks.RULE,
    garbage_collection.RULE,
    idle_slots.RULE,
    input_read_again.RULE,
    large_broadcast.RULE,
    multiplying_join.RULE,
    needless_sort.RULE,
    not_kept.RULE,
    one_partition.RULE,
    python_functions.RULE,
    shuffle_partitions.RULE,
    skewed_partition.RULE,
    small_files_read.RULE,
    small_files_written.RULE,
    small_side_shuffled.RULE,
    spill.RULE,
    straggling_task.RULE,
    tiny_tasks.RULE,
    too_few_tasks.RULE,
    unfiltered_partitions.RULE,
    unread_cache.RULE,
    unsplittable_files.RULE,
)

NOTABLE_S = 0.2
NOTABLE_SHARE = 0.02
"""What costs less is not told: less than this time of a slot, or than this part of all slots' time in the job."""


def find(job: JobFacts) -> tuple[Finding, ...]:
    """Return what is worth telling of a job, the most expensive first; symptoms of other findings are left out."""
    least_s = max(NOTABLE_S, NOTABLE_SHARE * job.elapsed_ms * job.slots / 1000)
    if job.elapsed_ms * job.slots < 1000 * least_s:
        return ()
    explains = {rule.name: rule.explains for rule in RULES}
    found = [one for rule in RULES for one in _found_by(rule, job) if one.cost_s >= least_s]
    explained = {(one.vertex_id, symptom) for one in found for symptom in explains[one.rule]}
    told = [one for one in found if (one.vertex_id, one.rule) not in explained]
    return tuple(sorted(told, key=lambda one: -one.cost_s))


def _found_by(rule: Rule, job: JobFacts) -> list[Finding]:
    """Return what a rule finds. A rule that is wrong about a job must not hide how the job ended."""
    try:
        return list(rule.find(job))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        _LOG.exception("The rule %s of findings could not be applied", rule.name)
        return []
