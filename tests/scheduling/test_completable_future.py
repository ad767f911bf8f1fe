"""Futures of one thread."""

from __future__ import annotations

import pytest

from flinkmagic.scheduling.completable_future import CompletableFuture, all_done


def test_callbacks_run_once_in_order_with_value_or_error() -> None:
    future: CompletableFuture[int] = CompletableFuture()
    heard: list[object] = []
    future.when_complete(lambda value, error: heard.append(("first", value, error)))
    future.when_complete(lambda value, error: heard.append(("second", value, error)))
    future.complete(1)
    future.complete(2)
    future.complete_exceptionally(ValueError())
    future.when_complete(lambda value, error: heard.append(("late", value, error)))
    assert heard == [("first", 1, None), ("second", 1, None), ("late", 1, None)]


def test_an_error_is_heard_instead_of_a_value() -> None:
    future: CompletableFuture[int] = CompletableFuture()
    heard: list[object] = []
    error = ValueError("no")
    future.complete_exceptionally(error)
    future.when_complete(lambda value, error: heard.append((value, error)))
    assert heard == [(None, error)]


def test_what_a_callback_raises_reaches_whoever_completes() -> None:
    future: CompletableFuture[int] = CompletableFuture()
    future.when_complete(lambda value, error: [][0])
    with pytest.raises(IndexError):
        future.complete(1)


def test_all_done_waits_for_failed_ones_too() -> None:
    futures: list[CompletableFuture[int]] = [CompletableFuture() for _ in range(3)]
    futures[0].complete(0)
    every = all_done(futures)
    futures[1].complete_exceptionally(ValueError())
    assert not every.is_done
    futures[2].complete(2)
    assert every.is_done
    assert all_done([]).is_done
