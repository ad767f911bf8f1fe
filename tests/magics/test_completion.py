"""Tab completion of the magics."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
from traitlets import TraitError

from flinkmagic.magics import load_ipython_extension
from flinkmagic.magics.completion import completions
from flinkmagic.magics.flink_magics import FlinkMagics
from flinkmagic.options import OPTIONS


@pytest.fixture(scope="module")
def magics(spark):
    shell = InteractiveShell.instance()
    load_ipython_extension(shell)
    registered = shell.magics_manager.registry["FlinkMagics"]
    delays = SimpleNamespace(sink_names=lambda: ["by_hour", "by_line", "late#1"])
    registered.graphs.update(delays=delays, detours=None, words=None)
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
        ("%flinkrun delays --only ", ["by_hour", "by_line", "late#1"]),
        ("%flinkrun delays --only by_hour by", ["by_line"]),
        ("%flinkrun delays --only by_hour --f", ["--full"]),
        ("%flinkgraph fl", ["flights"]),
        ("%flinkgraph o", ["off", "on"]),
        ("%flinkgraph delays o", []),
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
    for option in OPTIONS:
        assert option.flags[0] in offered
        assert FlinkMagics.class_traits(config=True)[option.name].default() == option.default


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


@pytest.mark.parametrize(
    ("name", "wrong", "told"),
    [
        ("restart", "maybe", "restart must be none, fixed-delay"),
        ("parallelism", 0, "parallelism must be a whole number of at least 1, not 0"),
        ("share", "some", "expected any of"),
    ],
)
def test_config_takes_what_compile_takes(magics, name: str, wrong: object, told: str) -> None:
    with pytest.raises(TraitError, match=told):
        setattr(magics, name, wrong)
    assert getattr(magics, name) == next(option for option in OPTIONS if option.name == name).default


def test_storage_levels_are_pyspark_s(magics) -> None:
    from pyspark import StorageLevel

    levels = completions(magics, "%%flinkgraph delays --storage-level ")
    assert levels == sorted(
        name for name, level in vars(StorageLevel).items() if isinstance(level, StorageLevel) and name != "NONE"
    )
    on_disk = completions(magics, "%%flinkgraph delays --storage-level DISK")
    assert on_disk == ["DISK_ONLY", "DISK_ONLY_2", "DISK_ONLY_3"]
