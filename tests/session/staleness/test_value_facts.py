"""When two values are known to be the same."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
from pyspark.sql import Row
from pyspark.sql import functions as F

from flinkmagic.session.staleness.value_facts import ValueFacts


@pytest.fixture
def facts() -> ValueFacts:
    return ValueFacts(lambda df: "")


def made(source: str, name: str = "made", **names: Any) -> Any:
    namespace = {"__name__": "__main__", **names}
    exec(compile(textwrap.dedent(source), "cell", "exec", dont_inherit=True), namespace)
    return namespace[name]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("made = 1", "made = 1.0"),
        ("made = [1, {'a': (2, 'b')}]", "made = [1, {'a': (2, 'c')}]"),
        ("made = {'b', 'a'}", "made = {'a'}"),
        ("made = [1, [2]]", "made = [1, 2, []]"),
        ("def made(x):\n    return x + 1", "def made(x):\n    return x + 2"),
        ("def made(x, y=1):\n    return x", "def made(x, y=2):\n    return x"),
        ("def f(k):\n    return lambda: k\nmade = f(1)", "def f(k):\n    return lambda: k\nmade = f(2)"),
        ("class made:\n    def f(self):\n        return 1", "class made:\n    def f(self):\n        return 2"),
        (
            "class made(dict):\n    def f(self):\n        return super().f()",
            "class made(dict):\n    def g(self):\n        return super().f()",
        ),
        ("made = [Row(a=1)]", "made = [Row(b=1)]"),
        ("made = F.udf(lambda x: x + 1, 'long')", "made = F.udf(lambda x: x + 1, 'int')"),
        ("made = F.udf(lambda x: x + 1, 'long')", "made = F.udf(lambda x: x + 2, 'long')"),
    ],
)
def test_values_are_the_same_if_they_say_the_same(facts, spark, one, other) -> None:
    first = facts.of(made(one, F=F, Row=Row))
    assert first.key
    assert first.is_same(facts.of(made(f"# further down\n\n{one}", F=F, Row=Row)))
    assert not first.is_same(facts.of(made(other, F=F, Row=Row)))


def test_other_objects_count_by_identity_and_by_how_often_they_were_changed(facts) -> None:
    value, other = made("class A:\n    pass\nmade = A()"), made("class A:\n    pass\nmade = A()")
    first = facts.of(value)
    assert first.is_same(facts.of(value))
    assert not first.is_same(facts.of(other))
    facts.change(value)
    assert not first.is_same(facts.of(value))


def test_what_is_too_large_or_holds_itself_has_no_key(facts) -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert facts.of(endless).key == facts.of(list(range(2000))).key == facts.of("x" * 200_000).key == ""


def test_a_module_counts_by_its_source(facts, tmp_path, monkeypatch) -> None:
    import importlib

    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "helpers_of_cells.py").write_text("def f():\n    return 1\n")
    module = importlib.import_module("helpers_of_cells")
    whole, function = facts.of(module), facts.of(module.f)
    (tmp_path / "helpers_of_cells.py").write_text("def f():\n    return 1  # as before\n")
    assert whole.is_same(facts.of(module))
    (tmp_path / "helpers_of_cells.py").write_text("def f():\n    return 'another'\n")
    assert not whole.is_same(facts.of(module))
    assert not function.is_same(facts.of(module.f))
