"""Applies the rules of findings to a job."""

from __future__ import annotations

import importlib
import logging
import pkgutil

from flinkmagic.display.findings import Finding
from flinkmagic.session.findings import rules
from flinkmagic.session.findings.facts import JobFacts
from flinkmagic.session.findings.rule import Rule

_LOG = logging.getLogger(__name__)

RULES: tuple[Rule, ...] = tuple(
    importlib.import_module(f"{rules.__name__}.{module.name}").RULE for module in pkgutil.iter_modules(rules.__path__)
)
"""In the order of their modules' names: whatever module is there is a rule."""

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
