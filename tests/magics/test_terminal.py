"""The magics in plain IPython, in a terminal of its own: a tree, a progress line, a table."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

pexpect = pytest.importorskip("pexpect")

ON = "import asyncio\nawait asyncio.sleep(0)\nspark.range(0, 3, 1, 1).write.mode('overwrite').json('on')"
CELLS = (
    "%load_ext flinkmagic",
    "import flinkmagic\nfrom pyspark.sql import functions as F\n"
    "spark = flinkmagic.local_session('terminal', 'local[2]', {'spark.ui.enabled': 'false', "
    "'spark.driver.memory': '1g', 'spark.ui.showConsoleProgress': 'false'})\n"
    "spark.sparkContext.setLogLevel('OFF')",
    "%%flinkgraph totals --parallelism 2\n"
    "nap = F.udf(lambda value: __import__('time').sleep(0.02) or value, 'long')\n"
    "numbers = spark.range(0, 60, 1, 2).select(nap('id').alias('id'))\n"
    "sums = numbers.groupBy((F.col('id') % 10).alias('last')).count()\n"
    "sums.write.mode('overwrite').json('totals')\n",
    "%flinkrun totals",
    "print('-- shown'); get_ipython().run_line_magic('flinkshow', 'totals')",
    "%flinkgraph on",
    # The cells of a notebook that is run are silent, which IPython tells no extension of.
    f"get_ipython().run_cell({ON!r}, store_history=True);",
    "%flinkgraph off",
    "print('-- fails')",
    "%%flinkgraph fails --run\n"
    "def check(value):\n    raise ValueError('bad \\x1b[31mrow\\x1b[0m \\u202e' + str(value))\n"
    "spark.range(3).select(F.udf(check, 'long')('id').alias('id')).write.mode('overwrite').json('fails')\n",
)


@pytest.fixture(scope="module")
def screen(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the terminal, 100 columns wide, was sent."""
    folder = tmp_path_factory.mktemp("terminal")
    cells = [
        {"cell_type": "code", "id": str(i), "metadata": {}, "source": text, "outputs": [], "execution_count": None}
        for i, text in enumerate(CELLS)
    ]
    (folder / "cells.ipynb").write_text(
        json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    )
    child = pexpect.spawn(
        sys.executable,
        ["-m", "IPython", "--no-banner", "--colors=NoColor", "-c", "%run cells.ipynb"],
        cwd=str(folder),
        env={**os.environ, "TERM": "xterm", "IPYTHONDIR": str(folder / "ipython")},
        dimensions=(50, 100),
        encoding="utf-8",
        timeout=240,
    )
    child.expect(pexpect.EOF)
    shots = os.environ.get("FLINKMAGIC_SCREENSHOTS")
    if shots:
        Path(shots, "terminal.txt").write_bytes(child.before.encode())
    return str(child.before)


def lines(screen: str) -> list[str]:
    """What stands in the end: of a line that was rewritten in place, the last writing."""
    return [line.rstrip("\r").rpartition("\r")[2] for line in screen.split("\n")]


def test_a_cell_is_a_tree(screen: str) -> None:
    shown = "\n".join(lines(screen))
    assert "totals · Job graph" in shown
    assert re.search(r"^\[\d\] Sink: write\.mode\('overwrite'\)\.json\('totals'\)", shown, re.MULTILINE)
    assert re.search(r"^└─ HASH .*← \[1\] ", shown, re.MULTILINE)
    assert "Run it: %flinkrun totals" in shown


def test_a_running_job_is_a_line_that_is_rewritten_in_place(screen: str) -> None:
    progress = re.findall(r"\r(totals ▶ RUNNING \[[█▒ ]{20}\] \d/4 tasks[^\r\n]*)", screen)
    assert len(progress) >= 2
    assert max(map(len, progress)) < 100
    assert not any("RUNNING" in line for line in lines(screen))


def test_an_ended_job_is_a_table_and_a_line_for_each_sink(screen: str) -> None:
    shown = lines(screen)
    (header,) = [n for n, line in enumerate(shown) if line.startswith("vertex ")][:1]
    assert shown[header].split() == [
        "vertex", "tasks", "time", "rows", "in", "rows", "out", "bytes", "in", "bytes", "out",
    ]  # fmt: skip
    assert set(shown[header + 1]) == {"─", " "}
    assert "2 finished" in shown[header + 2]
    assert max(map(len, shown[header : header + 4])) < 100
    assert re.search(r"^  ✓ totals: json, overwrite -> file:.*/totals \(cell \d+, line 5\)$", "\n".join(shown), re.M)


def test_flinkshow_is_the_tree_with_states(screen: str) -> None:
    shown = "\n".join(lines(screen)).partition("-- shown")[2].partition("-- fails")[0]
    assert "✓ FINISHED" in shown
    assert "✓2 finished" in shown


def test_a_failure_is_told_once_and_its_control_characters_are_written_out(screen: str) -> None:
    shown = screen.partition("-- fails")[2]
    assert "2 failed" in shown
    assert "ValueError: bad ⟨U+001B⟩[31mrow⟨U+001B⟩[0m ⟨U+202E⟩" in shown
    assert "\x1b[31m" not in shown
    assert "\u202e" not in shown
    assert ", line 3, in check" in shown


def test_with_the_session_mode_on_a_write_is_one_line(screen: str) -> None:
    shown = [line for line in lines(screen) if "json('on')" in line]
    assert len(shown) == 1
    assert shown[0].startswith("write.mode('overwrite').json('on') · line 3 · 1 stage, 1 task · ")
