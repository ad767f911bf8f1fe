"""Writes findings and the critical path as text, for views, and as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace

from flinkmagic.amounts import count, duration
from flinkmagic.display.findings import Finding, FindingsView
from flinkmagic.session.findings.critical_path import CriticalPath

NOTHING_FOUND = "nothing that costs 200 ms of a slot, and 2 % of its slots' time"

FIRST_FINDINGS = 3
"""So many are told where a job's outcome is."""


def finding_line(finding: Finding) -> str:
    """Return a finding in one line, with its cure."""
    return f"{finding}. Try: {finding.cure}"


def finding_lines(findings: Sequence[Finding], most: int = FIRST_FINDINGS) -> list[str]:
    """Return the first findings, a line each: those of several stages with one cause and one cure are one line."""
    alike: dict[tuple[str, str, str], list[Finding]] = {}
    for one in findings:
        alike.setdefault((one.rule, one.where, one.cure), []).append(one)
    told = [_in_one(*group) for group in alike.values()]
    return [finding_line(one) for one in sorted(told, key=lambda one: -one.cost_s)[:most]]


def _in_one(first: Finding, *others: Finding) -> Finding:
    more = f"; {count(len(others), 'more stage')} alike" if others else ""
    return replace(first, what=first.what + more, cost_s=sum(one.cost_s for one in (first, *others)))


def findings_text(name: str, findings: Sequence[Finding], path: CriticalPath | str | None) -> str:
    """Return all that is known about why a job took as long as it did."""
    lines = [f"{name}: {path or 'no task of the job has run'}"]
    if not findings:
        lines.append(f"  found: {NOTHING_FOUND}")
    for number, one in enumerate(findings, start=1):
        lines.append(f"  {number}. {one.what}")
        lines.append(f"     rule: {one.rule} ({one.certainty})")
        lines.append(f"     where: {one.where}{f': {one.code}' if one.code else ''}")
        lines.append(f"     vertex: {one.vertex}{f', {one.operator}' if one.operator else ''}")
        lines.append(f"     cost: {duration(1000 * one.cost_s)} of slots ({one.estimate})")
        lines.append(f"     try: {one.cure}")
    return "\n".join(lines)


def findings_view(findings: Sequence[Finding], path: CriticalPath | None) -> FindingsView:
    """Return the same, as views show it."""
    none = "" if findings else f"Found: {NOTHING_FOUND}."
    return FindingsView("" if path is None else str(path), tuple(findings), none)


def findings_json(name: str, findings: Sequence[Finding], path: CriticalPath | str | None) -> str:
    """Return the same as one JSON object in one line: ``name``, ``findings``, ``critical_path``.

    Of a path of which only the text is known, that is its ``text``.
    """
    told = {
        "name": name,
        "findings": [one.to_dict() for one in findings],
        "critical_path": ({"text": path} if isinstance(path, str) else asdict(path)) if path else None,
    }
    return json.dumps(told)
