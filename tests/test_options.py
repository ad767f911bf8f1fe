"""The table of a graph's options, and what is made of it outside of the magics."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import flinkmagic
from flinkmagic.options import OPTIONS, JobOptions

PAGE = Path(__file__).parents[1] / "docs" / "magics.md"


def table_of_options() -> str:
    """What the page of the magics says of the options."""
    lines = ["| option | what it sets | by default |", "| --- | --- | --- |"]
    for option in OPTIONS:
        values = option.values
        value = values.metavar or "\\|".join(values.choices)
        lines.append(f"| `{option.flags[0]} {value}` | {option.what} | {option.by_default} |")
    return "\n".join(lines)


def test_the_page_s_table_is_the_table() -> None:
    written = re.search(r"^\| option \|.*?(?=\n\n)", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert written is not None
    assert written[0] == table_of_options()


def test_compile_has_each_option_with_its_default_and_its_description() -> None:
    parameters = inspect.signature(flinkmagic.compile).parameters
    told = inspect.getdoc(flinkmagic.compile)
    for option in OPTIONS:
        assert parameters[option.name].default == option.default
        assert f"\n    {option.sentence}\n" in told
    assert "**options" not in told


def test_a_folder_may_be_a_path(tmp_path) -> None:
    assert JobOptions(checkpoint_dir=tmp_path).checkpoint_dir == str(tmp_path)
