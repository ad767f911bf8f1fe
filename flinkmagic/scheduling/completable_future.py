"""Passes a value that comes later, on the one thread that owns the scheduler's state."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")


class CompletableFuture(Generic[T]):
    """A single-threaded future (Java's `CompletableFuture`, as far as the scheduler uses it).

    `concurrent.futures.Future` would do but for two things: it swallows what a callback raises, which hides broken
    invariants, and it makes a lock and a condition for each of 16,000 slots.

    Callbacks run immediately, in the order in which they were added, in the caller of `complete` or, if the future is
    done already, of `when_complete`. That caller gets what a callback raises.
    """

    __slots__ = ("_callbacks", "_done", "_error", "_value")

    def __init__(self) -> None:
        self._done = False
        self._value: T | None = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[T | None, BaseException | None], None]] | None = None

    @property
    def is_done(self) -> bool:
        """Whether it holds a value or an error."""
        return self._done

    def complete(self, value: T) -> None:
        """Set its value; do nothing if it was done already."""
        if not self._done:
            self._value = value
            self._finish()

    def complete_exceptionally(self, error: BaseException) -> None:
        """Fail it; do nothing if it was done already."""
        if not self._done:
            self._error = error
            self._finish()

    def when_complete(self, callback: Callable[[T | None, BaseException | None], None]) -> None:
        """Call `callback(value, error)` once it is done; one of the two is None."""
        if self._done:
            callback(self._value, self._error)
        elif self._callbacks is None:
            self._callbacks = [callback]
        else:
            self._callbacks.append(callback)

    def _finish(self) -> None:
        self._done = True
        callbacks, self._callbacks = self._callbacks, None
        if callbacks is not None:
            for callback in callbacks:
                callback(self._value, self._error)


def all_done(futures: Iterable[CompletableFuture[T]]) -> CompletableFuture[None]:
    """Return a future that is done once all of these are, failed ones too (`FutureUtils.waitForAll`)."""
    every: CompletableFuture[None] = CompletableFuture()
    pending = [future for future in futures if not future.is_done]
    left = len(pending)

    def one_done(_value: T | None, _error: BaseException | None) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            every.complete(None)

    for future in pending:
        future.when_complete(one_done)
    if not pending:
        every.complete(None)
    return every
