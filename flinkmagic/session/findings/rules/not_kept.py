"""What is computed in every run, or again although an earlier line has kept its rows: with the reason.

Source: the session's own record of what is retained (`Job.not_retained`, `Job.not_used`).

Threshold: any; a stage that cannot be retained is told of from the second run on.

Counter-example: the first run of a graph has nothing to find.
"""

from __future__ import annotations

from collections.abc import Iterator

from flinkmagic.display.findings import Finding
from flinkmagic.errors.actions import FIRST_USE
from flinkmagic.session.findings.facts import JobFacts, OperatorFacts, VertexFacts
from flinkmagic.session.findings.rule import Rule


def _find(job: JobFacts) -> Iterator[Finding]:
    again = {name: f"was computed again: {why}" for name, why in job.not_used.items()}
    if job.has_run_before:
        again |= {name: f"is computed in every run: {why}" for name, why in job.not_retained.items()}
    told: set[str] = set()
    # Consumers first: what is below a stage that is computed again is computed for it.
    for vertex in reversed(job.vertices):
        reason = again.get(vertex.stage)
        if reason is None or vertex.id in told:
            continue
        needed = _needed(job, vertex)
        told |= {one.id for one in needed}
        yield RULE.finding(
            f"{vertex.stage} {reason}",
            vertex,
            next(filter(None, map(_draws, needed)), None),
            sum(one.run_ms for one in needed),
            "measured: the time of the stage, and of those that it needs",
            "likely",
            _cure(vertex.stage, reason),
        )


def _cure(name: str, reason: str) -> str:
    df = name if name.isidentifier() else "df"
    if FIRST_USE in reason:
        return f"{df} = {df}.cache()  # before its first use; later lines read what is kept now in any case"
    why = "keeps the rows of this one computation; or make the line give the same rows each time"
    return f"{df} = {df}.cache()  # {why}"


def _needed(job: JobFacts, vertex: VertexFacts) -> list[VertexFacts]:
    """Return a vertex and all that have run for it."""
    found, waiting = {vertex.id: vertex}, [vertex]
    while waiting:
        for one in job.producers(waiting.pop()):
            if one.id not in found:
                found[one.id] = one
                waiting.append(one)
    return list(found.values())


def _draws(vertex: VertexFacts) -> OperatorFacts | None:
    """Return an operator whose rows differ from run to run."""
    return vertex.first(lambda one: any(word in one.text for word in ("rand(", "randn(", "uuid(", "Sample")))


RULE = Rule("not-kept", _find)
