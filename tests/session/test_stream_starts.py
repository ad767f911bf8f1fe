"""The starts of a graph's streaming queries, as far as they need no Spark."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from flinkmagic.session.stream_starts import StreamStart, StreamStarts


def test_a_query_that_cannot_be_stopped_leaves_no_other_one_running() -> None:
    ended: list[str] = []

    def query(name: str, error: Exception | None = None) -> Any:
        def stop() -> None:
            ended.append(f"stop {name}")
            if error is not None:
                raise error

        starter = SimpleNamespace(close=lambda: ended.append(f"close {name}"))
        return StreamStart(SimpleNamespace(java_query=SimpleNamespace(stop=stop), starter=starter), None)  # type: ignore[arg-type]

    starts = StreamStarts({0: query("a"), 1: query("b", TimeoutError("b runs")), 2: query("c")})
    with pytest.raises(TimeoutError, match="b runs"):
        starts.stop()
    assert sorted(ended) == ["close a", "close b", "close c", "stop a", "stop b", "stop c"]
    assert all(ended.index(f"stop {name}") < ended.index(f"close {name}") for name in "abc")
