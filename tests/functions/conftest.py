"""Functions as a notebook's cell defines them, and as PySpark ships them."""

from __future__ import annotations

import importlib
import sys
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


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """Write modules into a folder on the path; forgotten after the test."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)

    def write(**sources):
        for name, source in sources.items():
            path = tmp_path / (name.replace("__", "/", 1) + ".py")
            path.parent.mkdir(exist_ok=True)
            path.write_text(textwrap.dedent(source))
        importlib.invalidate_caches()

    yield write
    for name in set(sys.modules) - before:
        del sys.modules[name]
