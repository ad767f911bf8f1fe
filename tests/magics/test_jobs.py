"""What `%flinkjobs` prints of errors and of results."""

from __future__ import annotations

from types import SimpleNamespace

from flinkmagic.errors.deployment import VertexFailedError
from flinkmagic.magics.jobs import errors_text, retained_table
from flinkmagic.reuse.retained_results import RetainedResult
from flinkmagic.scheduling.failover.exception_history import ExceptionHistoryEntry, RootExceptionHistoryEntry


def test_a_query_that_fails_is_told_once_and_by_its_own_name() -> None:
    error = VertexFailedError("monthly", "ValueError: torn", where="cell 7, line 3")
    both = [ExceptionHistoryEntry(error, 0.0, at, f"Sink: memory monthly ({at}/2)", 0, "session") for at in (2, 1)]
    job = SimpleNamespace(name="flights", exceptions=lambda: (RootExceptionHistoryEntry(both[0], (), (both[1],)),))
    assert errors_text(job, full=False) == (
        "monthly failed (cell 7, line 3): ValueError: torn [attempt 1 on executor session]"
    )


def test_of_many_results_the_largest_have_a_line_each_in_their_order() -> None:
    results = [
        RetainedResult(f"{n}", "shuffle", "flights", "rows", True, None, 1024 * (n % 5 + 1), name=f"flights.{n}")
        for n in range(10)
    ]
    first, *lines = retained_table(results, [], most=4).splitlines()
    assert first.startswith("result")
    assert [line.split()[0] for line in lines[:4]] == ["flights.3", "flights.4", "flights.8", "flights.9"]
    assert [line.split() for line in lines[4:]] == [["6", "smaller", "12.0", "KiB"], ["10", "results", "30.0", "KiB"]]
    assert len(retained_table(results, []).splitlines()) == 12


def test_a_result_without_a_name_is_told_by_the_beginning_of_its_code() -> None:
    code = f"groupBy({'k' * 40!r}).count()"
    result = RetainedResult("1", "shuffle", "flights", code, True, None, 1, name="flights.1")
    assert f"  groupBy('{'k' * 22}…  " in retained_table([result], [])
