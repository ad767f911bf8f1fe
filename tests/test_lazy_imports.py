"""Names that are imported on first use."""

from __future__ import annotations

import pytest

import flinkmagic
from flinkmagic import display, session
from flinkmagic.graph.transformations import OutputTag
from flinkmagic.lazy_imports import imported_on_use


@pytest.mark.parametrize(
    ("package", "some"),
    [
        (flinkmagic, {"capture", "compile", "load_ipython_extension", "split"}),
        (display, {"GraphView", "JobView", "to_svg"}),
        (session, {"SessionActions", "compile", "submitted_jobs"}),
    ],
)
def test_all_that_a_package_offers_can_be_imported(package, some):
    assert some <= {*package.__all__}
    assert all(getattr(package, name) is not None for name in package.__all__)
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'nothing'"):
        _ = package.nothing


def test_a_name_comes_from_the_module_that_type_checkers_see():
    names, find = imported_on_use("flinkmagic")
    assert names == flinkmagic.__all__
    assert find("OutputTag") is OutputTag
