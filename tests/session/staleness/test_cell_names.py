"""What a cell reads and binds, from its text alone."""

from __future__ import annotations

import pytest

from flinkmagic.session.staleness.cell_names import CellNames, cell_names

READS = {
    "y = x + 1": "x",
    "x = 1\ny = x": "",
    "x = x + 1": "x",
    "x += 1": "x",
    "if a:\n    x = 1\nprint(x)": "a print x",
    "if a:\n    x = 1\nelse:\n    x = 2\nx": "a",
    "for i in items:\n    t = i\nt": "items",
    "[x for x in xs if x > low]": "xs low",
    "x = 5\n[x for x in xs]\nx": "xs",
    "[(y := f(x)) for x in xs]\ny": "f xs",
    "def f(n=start):\n    return n + k": "start k",
    "k = 1\ndef f(n):\n    return n + k": "",
    "def f(n):\n    return n + k\nk = 1\nf(2)": "",
    "def f():\n    t = u\n    def g():\n        return t, v\n    return g": "u v",
    "late = df.where(lambda r: r.id > low)": "df low",
    "class A(Base):\n    size = n\n    def f(self):\n        return A, m": "Base n m",
    "import a.b as c, d.e\nc, d": "",
    "from m import f\nf(x)": "x",
    "try:\n    x = f()\nexcept E as e:\n    print(e)\nx": "f E print",
    "with open(p) as f:\n    f.read()": "open p",
    "match v:\n    case {'a': a, **rest}:\n        a, rest\n    case [b, *c]:\n        b, c": "v",
    "x: int\nx": "int x",
    "d['a'] = v": "d v",
    "del x\nx = 1": "",
    "f'{x:{w}}'": "x w",
}


@pytest.mark.parametrize("source", READS)
def test_a_cell_reads_what_it_may_find_from_before(source) -> None:
    assert cell_names(source).reads == frozenset(READS[source].split())


def test_a_cell_binds_and_changes() -> None:
    names = cell_names(
        "def f():\n    global g\n    g = 1\n    own = 2\nimport a.b\nd['k'].x = 1\nfor i in r:\n    pass\ndel z"
    )
    assert names.binds == {"f", "g", "a", "i", "z"}
    assert names.changes == {"d"}


def test_what_is_no_python_has_no_names() -> None:
    assert cell_names("SELECT 1 FROM t") == CellNames()
