"""Names that are free, and names that are imported on first use."""

from __future__ import annotations

import pytest

import flinkmagic
from flinkmagic import display, session
from flinkmagic.names import free_name, imported_on_use


def test_a_name_that_is_taken_gets_the_first_free_number():
    assert free_name("out", {"other"}) == "out"
    assert free_name("out", {"out", "out_3"}) == "out_2"
    assert free_name("out", {"out", "out_2"}) == "out_3"
    assert free_name("df", {"df", "result2"}, stem="result") == "result3"


@pytest.mark.parametrize("package", [flinkmagic, display, session])
def test_all_that_a_package_offers_can_be_imported(package):
    assert all(getattr(package, name) is not None for name in package._HOMES)
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'nothing'"):
        _ = package.nothing


def test_what_is_imported_comes_from_its_home():
    find = imported_on_use("one", {"count": "flinkmagic.amounts"})
    assert find("count")(2, "task") == "2 tasks"
