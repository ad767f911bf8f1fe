"""Small questions to the driver's JVM."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from flinkmagic.jvm.java import is_stopped


class Stopping:
    """A SparkContext that another thread stops after it was looked at so many times."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    @property
    def _jsc(self):
        self.looks -= 1
        return SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: False)) if self.looks >= 0 else None


@pytest.mark.parametrize(("looks", "expected"), [(0, True), (1, True), (9, False)])
def test_a_context_that_is_stopped_meanwhile_is_stopped(looks, expected):
    assert is_stopped(SimpleNamespace(sparkContext=Stopping(looks))) is expected
