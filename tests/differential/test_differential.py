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

from typing import TYPE_CHECKING

import pytest

from tests.differential.cells_file import Notebook, all_notebooks
from tests.differential.test_effects import KINDS as OF_EFFECTS

if TYPE_CHECKING:
    from tests.differential.conftest import Differences

pytestmark = [pytest.mark.long, pytest.mark.matrix(20)]

NOTEBOOKS = [one for one in all_notebooks() if one.name.partition("/")[0] not in OF_EFFECTS]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.name)
def test_leaves_what_a_plain_run_leaves(notebook: Notebook, differences: Differences) -> None:
    assert differences.of(notebook.name) == []
