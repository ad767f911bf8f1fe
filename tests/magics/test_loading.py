"""What `%load_ext flinkmagic` brings along: little, as it runs in every session that may never compile a graph."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from flinkmagic.magics import HINT

SCRIPT = """
import sys
import pyspark.sql
from IPython.core.interactiveshell import InteractiveShell
before = set(sys.modules)
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "flinkmagic")
assert "flinkgraph" in shell.magics_manager.magics["cell"]
print(sorted({name.split(".")[0] for name in set(sys.modules) - before}))
print(sorted(name for name in sys.modules if name.startswith("flinkmagic.")))
"""


def test_neither_numerics_nor_widgets_nor_the_scheduler_are_loaded() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    packages, modules = done.stdout.splitlines()[-2:]
    for heavy in ("numpy", "scipy", "ipywidgets", "anywidget", "graphviz", "fastjsonschema"):
        assert repr(heavy) not in packages
    for heavy in ("scheduling.default_scheduler", "planning.planner", "display.picture"):
        assert repr(f"flinkmagic.{heavy}") not in modules


TWICE = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "flinkmagic")
shell.run_line_magic("reload_ext", "flinkmagic")
"""


def test_a_new_profile_is_told_once_where_to_begin(tmp_path: Path) -> None:
    told = [
        subprocess.run(
            [sys.executable, "-c", TWICE],
            env={**os.environ, "IPYTHONDIR": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for _ in range(2)
    ]
    assert told == [f"{HINT}\n", ""]


GRAPH = """
import threading
from IPython.core.interactiveshell import InteractiveShell
import flinkmagic
from flinkmagic.planning.java_classes import CLASSES
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "flinkmagic")
shell.user_ns["spark"] = spark = flinkmagic.local_session("classes", "local[1]")
assert shell.run_cell("%%flinkgraph rows\\nrows = spark.range(9).groupBy('id').count()").success
[thread.join() for thread in threading.enumerate() if thread.name == "flinkmagic-warm-up"]
print(CLASSES._compiled[spark.sparkContext._gateway].is_loaded)
spark.stop()
"""


@pytest.mark.long
def test_the_java_classes_of_a_captured_cell_are_compiled_for_later_kernels_too(tmp_path: Path) -> None:
    told = [
        subprocess.run(
            [sys.executable, "-c", GRAPH],
            env={**os.environ, "IPYTHONDIR": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()[-1]
        for _ in range(2)
    ]
    assert told == ["False", "True"]
