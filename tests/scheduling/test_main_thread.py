"""Main threads: one call after the other, in a known order."""

from __future__ import annotations

import threading
import time

import pytest

from flinkmagic.errors.base import InvariantViolatedError
from flinkmagic.scheduling.clock import ManualClock, SystemClock
from flinkmagic.scheduling.main_thread import MainThreadExecutor, ManualMainThreadExecutor, ask
from tests.virtual_time import advance, run_until


def raised(error: BaseException) -> None:
    raise error


def test_calls_run_by_instant_then_by_arrival() -> None:
    clock = ManualClock()
    main_thread = ManualMainThreadExecutor(clock)
    ran: list[tuple[str, float]] = []

    def note(name: str) -> None:
        ran.append((name, clock.now_ms()))

    main_thread.schedule(lambda: note("late"), 10.0)
    main_thread.schedule(lambda: note("early"), 5.0)
    main_thread.execute(lambda: note("now"))
    main_thread.schedule(lambda: note("early, too"), 5.0)
    while main_thread.run_next():
        pass
    assert ran == [("now", 0.0), ("early", 5.0), ("early, too", 5.0), ("late", 10.0)]


def test_what_is_taken_back_does_not_run() -> None:
    main_thread = ManualMainThreadExecutor(ManualClock())
    ran: list[int] = []
    call = main_thread.schedule(lambda: ran.append(1), 5.0)
    main_thread.schedule(lambda: ran.append(2), 6.0)
    call.cancel()
    assert main_thread.next_due_ms == 6.0
    run_until(main_thread, 10.0)
    assert ran == [2]
    assert main_thread.clock.now_ms() == 10.0


def test_running_what_is_ready_leaves_time_alone() -> None:
    main_thread = ManualMainThreadExecutor(ManualClock())
    ran: list[int] = []
    main_thread.execute(lambda: main_thread.execute(lambda: ran.append(1)))
    main_thread.schedule(lambda: ran.append(2), 1.0)
    main_thread.run_ready()
    assert ran == [1]


def test_a_clock_does_not_go_back() -> None:
    clock = ManualClock(5.0)
    with pytest.raises(InvariantViolatedError, match=r"stands at 5\.0 ms"):
        clock.advance_to(4.0)
    advance(clock, 1.0)
    assert clock.now_ms() == 6.0


def test_the_system_clock_is_about_right() -> None:
    assert abs(SystemClock().now_ms() - time.time() * 1000.0) < 5_000.0


def test_a_thread_runs_calls_of_other_threads_in_order() -> None:
    main_thread = MainThreadExecutor("job", SystemClock(), raised)
    try:
        ran: list[tuple[int, str]] = []
        for number in range(100):
            main_thread.execute(lambda number=number: ran.append((number, threading.current_thread().name)))
        assert ask(main_thread, lambda: main_thread.is_current, 5.0)
        assert ran == [(number, "job") for number in range(100)]
    finally:
        main_thread.stop()


def test_a_delayed_call_runs_although_nothing_else_happens() -> None:
    main_thread = MainThreadExecutor("job", SystemClock(), raised)
    try:
        done = threading.Event()
        main_thread.schedule(done.set, 20.0)
        assert done.wait(5.0)
    finally:
        main_thread.stop()


def test_a_broken_call_is_reported_and_the_thread_goes_on() -> None:
    reported: list[BaseException] = []
    main_thread = MainThreadExecutor("job", SystemClock(), reported.append)
    try:
        main_thread.execute(lambda: 1 / 0)
        assert ask(main_thread, lambda: 7, 5.0) == 7
        assert [type(error) for error in reported] == [ZeroDivisionError]
        with pytest.raises(KeyError):
            ask(main_thread, lambda: {}["nothing"], 5.0)
    finally:
        main_thread.stop()


def test_a_broken_handler_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    main_thread = MainThreadExecutor("job", SystemClock(), raised)
    try:
        main_thread.execute(lambda: 1 / 0)
        ask(main_thread, lambda: None, 5.0)
    finally:
        main_thread.stop()
    assert "the handler of uncaught errors failed as well" in caplog.text


def test_only_the_main_thread_passes_for_it() -> None:
    main_thread = MainThreadExecutor("job", SystemClock(), raised)
    try:
        with pytest.raises(InvariantViolatedError, match="belongs to 'job' is done there"):
            main_thread.assert_running_in_main_thread()
        ask(main_thread, main_thread.assert_running_in_main_thread, 5.0)
    finally:
        main_thread.stop()
