"""What `%flinkjobs --errors` prints."""

from __future__ import annotations

from types import SimpleNamespace

from flinkmagic.errors.deployment import VertexFailedError
from flinkmagic.magics.jobs import errors_text
from flinkmagic.scheduling.failover.exception_history import ExceptionHistoryEntry, RootExceptionHistoryEntry


def test_a_query_that_fails_is_told_once_and_by_its_own_name() -> None:
    error = VertexFailedError("monthly", "ValueError: torn", where="cell 7, line 3")
    both = [ExceptionHistoryEntry(error, 0.0, at, f"Sink: memory monthly ({at}/2)", 0, "session") for at in (2, 1)]
    job = SimpleNamespace(name="flights", exceptions=lambda: (RootExceptionHistoryEntry(both[0], (), (both[1],)),))
    assert errors_text(job, full=False) == (
        "monthly failed (cell 7, line 3): ValueError: torn [attempt 1 on executor session]"
    )
