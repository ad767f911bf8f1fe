"""Tab completion of the magics."""

from __future__ import annotations

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell

from flinkmagic.magics import load_ipython_extension
from flinkmagic.magics.completion import completions
from flinkmagic.magics.flink_magics import FlinkMagics
from flinkmagic.magics.options import _JOB_OPTIONS
from flinkmagic.session.options import JobOptions


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
        ("%%flinkgraph delays --p", ["--parallelism"]),
        ("%%flinkgraph delays --sl", ["--slots"]),
        ("%%flinkgraph delays --slots 2 --slo", []),
        ("%flinksim delays --fail Map:1@1s --fail", ["--fail"]),
        ("%%flinkgraph delays --share ", ["always", "auto", "never"]),
        ("%%flinkgraph delays --retain ", ["job", "none", "session"]),
        ("%%flinkgraph delays --restart f", ["failure-rate:3:5m:1s", "fixed-delay:3:1s"]),
        ("%%flinkgraph delays --retain-bytes ", ["2g", "500m", "8g"]),
        ("%%flinkgraph delays --parallelism ", []),
        ("%time de", []),
        ("flinkrun = de", []),
    ],
)
def test_completions(magics, line: str, found: list[str]) -> None:
    assert completions(magics, line) == found


@pytest.mark.parametrize("escape", ["%%", "%"])
def test_every_option_of_a_graph_is_offered_and_has_a_default_in_config(magics, escape: str) -> None:
    offered = completions(magics, f"{escape}flinkgraph delays --")
    for name in _JOB_OPTIONS:
        assert f"--{name.replace('_', '-')}" in offered
        assert name in FlinkMagics.class_trait_names(config=True)


def test_every_value_that_is_suggested_is_accepted(magics) -> None:
    parser = magics.magics["cell"]["flinkgraph"].parser
    tried = 0
    for option in completions(magics, "%%flinkgraph delays --"):
        for value in completions(magics, f"%%flinkgraph delays {option} "):
            assert parser.parse_args(["delays", option, value]).name == "delays"
            tried += 1
    assert tried > 10


def test_the_shell_asks_for_them(magics) -> None:
    completer = InteractiveShell.instance().Completer
    with provisionalcompleter():
        assert [c.text for c in completer.completions("%flinkrun del", 13)] == ["delays"]


def test_the_defaults_in_config_are_those_of_the_python_api(magics) -> None:
    for name in _JOB_OPTIONS:
        assert FlinkMagics.class_traits()[name].default() == getattr(JobOptions(), name), name


def test_storage_levels_are_pyspark_s(magics) -> None:
    from pyspark import StorageLevel

    levels = completions(magics, "%%flinkgraph delays --storage-level ")
    assert levels == sorted(
        name for name, level in vars(StorageLevel).items() if isinstance(level, StorageLevel) and name != "NONE"
    )
    on_disk = completions(magics, "%%flinkgraph delays --storage-level DISK")
    assert on_disk == ["DISK_ONLY", "DISK_ONLY_2", "DISK_ONLY_3"]
