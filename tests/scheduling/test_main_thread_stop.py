"""A main thread that is stopped still answers who has asked."""

from __future__ import annotations

import threading

import pytest

from flinkmagic.errors.scheduling import MainThreadStoppedError
from flinkmagic.scheduling.clock import SystemClock
from flinkmagic.scheduling.main_thread import MainThreadExecutor, ask


def test_a_question_that_was_put_before_the_stop_is_answered() -> None:
    uncaught: list[BaseException] = []
    main_thread = MainThreadExecutor("stopping", SystemClock(), uncaught.append)
    busy, go_on = threading.Event(), threading.Event()
    answers: list[int] = []

    def stop_once_asked() -> None:
        busy.set()
        assert go_on.wait(5)
        main_thread.stop()

    main_thread.execute(stop_once_asked)
    assert busy.wait(5)
    asking = threading.Thread(target=lambda: answers.append(ask(main_thread, lambda: 42, 5.0)))
    asking.start()
    while not main_thread._agenda._heap:
        asking.join(0.001)
    go_on.set()
    asking.join(5)
    assert answers == [42]


def test_what_is_scheduled_for_later_is_dropped_and_nothing_more_is_taken() -> None:
    uncaught: list[BaseException] = []
    main_thread = MainThreadExecutor("stopping", SystemClock(), uncaught.append)
    ran: list[str] = []
    main_thread.schedule(lambda: ran.append("later"), 50.0)
    main_thread.stop()
    assert ran == []
    with pytest.raises(MainThreadStoppedError, match="'stopping' has been stopped"):
        main_thread.execute(lambda: ran.append("after"))
