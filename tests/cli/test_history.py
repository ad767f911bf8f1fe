"""The command that shows event logs."""

from __future__ import annotations

from pathlib import Path

import pytest

from flinkmagic import cli

LOG = Path(__file__).parents[1] / "history" / "logs" / "spark-3.5.zstd"


def test_it_prints_text_or_writes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["history", str(LOG), "--jobs", "2"]) == 0
    assert capsys.readouterr().out.count("is the critical path") == 2
    out = tmp_path / "page.html"
    assert cli.main(["history", str(LOG), "--jobs", "2", "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"Written to {out}\n"
    page = out.read_text(encoding="utf-8")
    # For each of two jobs its graphs, and its timeline.
    assert page.count("<img ") == 6
    assert page.count("<details") == 2 * (1 + 3)


def test_what_cannot_be_read_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["history", str(tmp_path)]) == 1
    assert "holds no event log of Spark" in capsys.readouterr().err
    assert cli.main(["history", str(tmp_path / "absent")]) == 1
    assert "cannot be read: No such file" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["history", str(LOG), "--jobs", "0"])
    assert "--jobs" in capsys.readouterr().err
