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

import functools
import json
import subprocess
import sys

import pytest

from tests.differential.cells_file import Notebook, all_notebooks

pytestmark = pytest.mark.timeout(900)  # the first test of a kind waits for all notebooks of it


@functools.cache
def differences_of(kind: str) -> dict[str, list[str]]:
    """By the name of a notebook what differs, of all notebooks of a kind.

    They run in a process of their own: what they leave in a session (a database, a stopped context) is nothing for the
    session that other tests share.
    """
    command = [sys.executable, "-m", "tests.differential", f"{kind}/"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=880)
    told = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    assert told, ran.stderr
    assert "notebooks" in told[-1], ran.stderr
    return {one["name"]: one["differences"] for one in told[:-1]}


@pytest.mark.parametrize("notebook", all_notebooks(), ids=lambda notebook: notebook.name)
def test_leaves_what_a_plain_run_leaves(notebook: Notebook) -> None:
    assert differences_of(notebook.name.partition("/")[0])[notebook.name] == []
