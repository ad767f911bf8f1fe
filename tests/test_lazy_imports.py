"""Names that are imported on first use."""

from __future__ import annotations

import pytest

import flinkmagic
from flinkmagic import display, session
from flinkmagic.lazy_imports import imported_on_use


@pytest.mark.parametrize("package", [flinkmagic, display, session])
def test_all_that_a_package_offers_can_be_imported(package):
    assert all(getattr(package, name) is not None for name in package._HOMES)
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'nothing'"):
        _ = package.nothing


def test_what_is_imported_comes_from_its_home():
    find = imported_on_use("one", {"count": "flinkmagic.amounts"})
    assert find("count")(2, "task") == "2 tasks"
