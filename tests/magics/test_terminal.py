"""A line of a terminal that is rewritten in place."""

from __future__ import annotations

import pytest

from flinkmagic.magics.terminal import RewrittenLine


def test_a_line_is_cut_at_the_edge_of_the_window_and_wiped_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "10")
    line = RewrittenLine()
    line.write("x" * 30)
    line.write("y")
    line.wipe()
    line.wipe()
    assert capsys.readouterr().out == f"\r{'x' * 9}\ry{' ' * 8}\r \r"
