"""Tab completion of the magics."""

from __future__ import annotations

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell

from flinkmagic.magics import load_ipython_extension
from flinkmagic.magics.completion import completions


@pytest.fixture(scope="module")
def magics(spark):
    shell = InteractiveShell.instance()
    load_ipython_extension(shell)
    registered = shell.magics_manager.registry["FlinkMagics"]
    registered.graphs.update(delays=None, detours=None, words=None)
    shell.user_ns.update(flights=spark.range(1), fleet="no DataFrame", _hidden=spark.range(1))
    yield registered
    registered.graphs.clear()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("%flinkrun de", ["delays", "detours"]),
        ("%flinkrun ", ["delays", "detours", "words"]),
        ("%flinkcancel w", ["words"]),
        ("%flinkrun delays --de", ["--detach"]),
        ("%flinkgraph fl", ["flights"]),
        ("%flinkgraph delays --view ", ["execution", "job", "regions", "stream"]),
        ("%flinkgraph delays --view s", ["stream"]),
        ("%%flinkgraph delays --", ["--parallelism", "--run", "--slots"]),
        ("%%flinkgraph delays --p", ["--parallelism"]),
        ("%%flinkgraph delays --parallelism ", []),
        ("%time de", []),
        ("flinkrun = de", []),
    ],
)
def test_completions(magics, line: str, found: list[str]) -> None:
    assert completions(magics, line) == found


def test_the_shell_asks_for_them(magics) -> None:
    completer = InteractiveShell.instance().Completer
    with provisionalcompleter():
        assert [c.text for c in completer.completions("%flinkrun del", 13)] == ["delays"]
