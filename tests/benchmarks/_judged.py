"""What a reader has said of the findings of jobs in which nobody has planted a fault, and why."""

from __future__ import annotations

from typing import NamedTuple


class Verdict(NamedTuple):
    """What a reader has said of a finding."""

    is_wrong: bool
    """Whether its cause is not true, or its cure does not help."""
    why: str


VERDICTS: dict[tuple[str, str, str], Verdict] = {}
"""By the notebook or the query, the rule, and the code of the line."""
