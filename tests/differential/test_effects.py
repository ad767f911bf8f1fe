"""The same for cells with effects, errors and threads: a file of its own, so that both run simultaneously."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.differential.cells_file import Notebook, all_notebooks

if TYPE_CHECKING:
    from tests.differential.conftest import Differences

pytestmark = [pytest.mark.long, pytest.mark.matrix(20)]

KINDS = ("effects", "exceptions", "jvm", "law", "lost", "manners", "no_sink", "observe", "threads")

NOTEBOOKS = [one for one in all_notebooks() if one.name.partition("/")[0] in KINDS]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.name)
def test_leaves_what_a_plain_run_leaves(notebook: Notebook, differences: Differences) -> None:
    assert differences.of(notebook.name) == []
