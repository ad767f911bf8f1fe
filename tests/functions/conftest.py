"""Functions as a notebook's cell defines them, and as PySpark ships them."""

from __future__ import annotations

import textwrap

import pytest
from pyspark import cloudpickle

from flinkmagic.functions.purity import impurity


@pytest.fixture
def why():
    """Why the function `f` of a cell's source is not known to be pure; None where it is."""

    def judge(source, **names):
        namespace = {"__name__": "__main__", **names}
        exec(compile(textwrap.dedent(source), "cell", "exec", dont_inherit=True), namespace)
        return impurity(cloudpickle.dumps((namespace["f"], "return type")))

    return judge
