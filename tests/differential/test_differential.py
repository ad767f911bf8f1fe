"""Captured cells leave what plain cells leave: rows, types, files, tables, printed text, values, exceptions.

The notebooks are text files in `cells/`, by kind; `runner` says how they are run and compared, and knows none of them.

Left out, with the reason:

- A write that fails only when its tasks run: documented to end later than the plain one, after what follows it.
- A DataFrame that is named, fails when it is computed, and is never used: `%flinkrun` computes it, as documented.
- Clocks read between two writes: they time the capture, as documented.
- Spark Connect: there is no SparkContext to deploy on, and the magic says so.
- Catalogs and formats that need packages of their own (Delta, Iceberg, Kafka, Avro), Hive: not installed with PySpark.
- Streams that never end: what they leave depends on when they are stopped.
- Child processes of `multiprocessing`: they have no session.
- The kernel's pseudo-terminal is IPython's own here (`pexpect`), the kernel's messages are not: `tests/magics`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.differential.cells_file import Notebook, all_notebooks
from tests.differential.runner import Runner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def runner(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    with Runner(lambda: spark, tmp_path_factory.mktemp("differential")) as runner:
        yield runner


SHARED = [notebook for notebook in all_notebooks() if not notebook.name.startswith("sessions/")]


@pytest.mark.parametrize("notebook", SHARED, ids=lambda notebook: notebook.name)
def test_leaves_what_a_plain_run_leaves(runner: Runner, notebook: Notebook) -> None:
    assert list(runner.differences(notebook)) == []


def test_leaves_what_a_plain_run_leaves_where_the_session_is_stopped() -> None:
    command = [sys.executable, "-m", "tests.differential", "sessions/"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=280)
    told = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    assert [one for one in told if one.get("differences")] == []
    assert told[-1]["notebooks"] == len(all_notebooks()) - len(SHARED), ran.stderr
