"""Writes the README's table of benefits from what the benchmarks printed.

`python docs/benefits.py` reads the last lines of `python -m tests.benchmarks NAME` from `docs/figures/NAME.json` and
puts the table between its marks.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FIGURES = ROOT / "docs" / "figures"
README = ROOT / "README.md"
PLACE = re.compile(r"(?<=<!-- benefits -->\n).*?(?=<!-- /benefits -->)", re.DOTALL)

ROWS = (
    ("sharing", "plain_s", "ours_s", "four writes over one expensive DataFrame"),
    ("notebooks", "median_plain_s", "median_ours_s", "the middle of 14 notebooks, `%flinkgraph on`"),
    ("notebooks", "worst_plain_s", "worst_ours_s", "the worst"),
    ("resume", "full_s", "mended_s", "six stages: the last failed, mended, run again"),
)
"""The benchmark, its figures for plain PySpark and for ours, and what is measured."""


def table(figures: dict[str, dict[str, Any]]) -> str:
    """Return the table in Markdown.

    Parameters
    ----------
    figures : dict of str to dict
        The last line of each benchmark, by its name.
    """
    lines = ["| measured on two cores, medians | plain PySpark | flinkmagic | |", "| --- | --- | --- | --- |"]
    for name, plain, ours, what in ROWS:
        before, after = figures[name][plain], figures[name][ours]
        lines.append(f"| {what} | {before:.1f} s | {after:.1f} s | {before / after:.1f} × |")
    return "\n".join(lines) + "\n"


def saved_figures() -> dict[str, dict[str, Any]]:
    """Return what is in `docs/figures`."""
    return {name: json.loads((FIGURES / f"{name}.json").read_text(encoding="utf-8")) for name, *_ in ROWS}


def main() -> None:
    """Put the table into the README."""
    text = README.read_text(encoding="utf-8")
    README.write_text(PLACE.sub(lambda _: table(saved_figures()), text, count=1), encoding="utf-8")


if __name__ == "__main__":
    main()
