"""Functions that do the same have one fingerprint, wherever they stand; functions that do not have two."""

from __future__ import annotations

import datetime
import importlib
import os
import subprocess
import sys
import textwrap

import pytest
from pyspark import cloudpickle

from flinkmagic.functions import user_modules
from flinkmagic.functions.user_modules import CannotCompareError, ModuleSources
from flinkmagic.reuse.code_fingerprint import fingerprint

BASE = "def f(x, y=1):\n    return x + y + 2\n"


def defined(source, name="f", filename="cell", **names):
    """A function as a notebook's cell defines it: in `__main__`, under a file's name of the cell's own."""
    namespace = {"__name__": "__main__", **names}
    exec(compile(textwrap.dedent(source), filename, "exec", dont_inherit=True), namespace)
    return namespace[name]


def digest(source, name="f", filename="cell", **names):
    return digest_of(defined(source, name, filename, **names))


def digest_of(function):
    return fingerprint(cloudpickle.dumps((function, "return type"))).digest


@pytest.mark.parametrize(
    ("source", "filename"),
    [
        ("\n\n" + BASE, "cell"),
        (BASE, "another cell"),
        ("# a word\n" + BASE.replace("return", "# why\n    return"), "cell"),
        ("unused = 3\n" + BASE, "cell"),
    ],
    ids=["moved", "in another file", "commented", "beside something else"],
)
def test_the_same_function_elsewhere(source, filename):
    assert digest(source, filename=filename) == digest(BASE)


@pytest.mark.parametrize(
    "source",
    [
        BASE.replace("+ 2", "+ 3"),
        BASE.replace("+ 2", "- 2"),
        BASE.replace("+ 2", "+ 2.0"),
        BASE.replace("y=1", "y=2"),
        BASE.replace("y=1", "y"),
        BASE.replace("y=1", "*, y=1"),
        BASE.replace("+ 2", "+ (lambda: 3)()"),
    ],
)
def test_another_function(source):
    assert digest(source) != digest(BASE)


def test_inner_code_counts_and_its_lines_do_not():
    nested = "def f(x):\n    def g():\n        return [i * {} for i in x]\n    return g()\n"
    assert digest(nested.format(2)) == digest("\n\n" + nested.format(2))
    assert digest(nested.format(2)) != digest(nested.format(3))


def test_globals_count_as_far_as_they_are_referred_to():
    source = "def f(x):\n    return x + limit\n"
    assert digest(source, limit=1) == digest("\n" + source, limit=1, other=5)
    assert digest(source, limit=1) != digest(source, limit=2)


def test_globals_are_followed_through_functions():
    source = "def g(x):\n    return x * factor\n\ndef f(x):\n    return g(x)\n"
    assert digest(source, factor=2) == digest("\n" + source, factor=2)
    assert digest(source, factor=2) != digest(source, factor=3)


def test_a_function_that_calls_itself():
    source = "def f(x):\n    return 1 if x < {} else f(x - 1)\n"
    assert digest(source.format(1)) == digest("\n" + source.format(1))
    assert digest(source.format(1)) != digest(source.format(2))


def test_closures_count():
    source = "def make(n):\n    def inner(x):\n        return x + n\n    return inner\nf = make({})\n"
    assert digest(source.format(1)) == digest("\n\n" + source.format(1))
    assert digest(source.format(1)) != digest(source.format(2))


def test_what_a_closure_holds_is_compared_by_value():
    source = "def f(x):\n    return table[x]\n"
    assert digest(source, table={1: ["a"]}) == digest(source, table={1: ["a"]})
    assert digest(source, table={1: ["a"]}) != digest(source, table={1: ["b"]})
    assert digest(source, table={1}) != digest(source, table=[1])
    assert digest(source, table=frozenset({"a", "b"})) == digest(source, table=frozenset({"b", "a"}))
    assert digest(source, table=-0.0) != digest(source, table=0.0)
    assert digest(source, table=True) != digest(source, table=1)


def test_classes_of_a_cell_count_by_what_they_say():
    source = "class C:\n    limit = {}\n    def m(self, x):\n        return x\n\ndef f(x):\n    return C().m(x)\n"
    assert digest(source.format(1)) == digest("\n\n" + source.format(1))
    assert digest(source.format(1)) != digest(source.format(2))
    assert digest(source.format(1)) != digest(source.format(1).replace("return x\n\n", "return -x\n\n"))


def test_instances_of_a_cell_s_classes_count_by_what_they_hold():
    source = (
        "from dataclasses import dataclass\nfrom collections import namedtuple\n"
        "@dataclass\nclass C:\n    a: int\n"
        "P = namedtuple('P', 'a b c d e')\n"
        "c, p = C({}), P(1, 2, 3, 4, {})\n"
        "def f(x):\n    return x + c.a + p.e\n"
    )
    assert digest(source.format(1, 5)) == digest("\n\n" + source.format(1, 5))
    assert len({digest(source.format(*given)) for given in ((1, 5), (2, 5), (1, 6))}) == 3
    assert digest(source.format(1, 5)) != digest(source.replace("a: int", "a: int\n    b: int = 2").format(1, 5))


def test_objects_and_arrays_count_by_value():
    numpy = pytest.importorskip("numpy")
    source = "def f(x):\n    return x + a.sum()\n"
    assert digest(source, a=numpy.arange(3)) == digest(source, a=numpy.arange(3))
    assert digest(source, a=numpy.arange(3)) != digest(source, a=numpy.arange(4))


def test_a_library_counts_by_its_name():
    import json
    import math

    source = "def f(x):\n    return m.f(x)\n"
    assert digest(source, m=math) == digest(source, m=math)
    assert digest(source, m=math) != digest(source, m=json)


@pytest.mark.parametrize("library", ["graphviz", "bs4"])
def test_a_function_that_imports_a_library_is_the_same_before_and_after_that(monkeypatch, library):
    source = f"def f(x):\n    import {library}\n    return {library}.__version__\n"
    monkeypatch.delitem(sys.modules, library, raising=False)
    before = digest(source)
    importlib.import_module(library)
    assert digest(source) == before
    monkeypatch.delitem(sys.modules, library)


def test_dates_and_times_count_by_value():
    source = "import datetime, json\ndef f(x):\n    return x < noon and json.loads('1')\n"
    noon = datetime.time(12)
    assert digest(source, noon=noon) == digest("\n" + source, noon=noon)
    assert digest(source, noon=noon) != digest(source, noon=datetime.time(13))


def test_bytes_that_are_no_pickle_are_not_comparable():
    with pytest.raises(CannotCompareError, match="cannot be read"):
        fingerprint(b"no pickle")


def test_nothing_of_the_pickle_is_run(tmp_path):
    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "made"),)

    source = "def f(x):\n    return bomb\n"
    assert digest(source, bomb=Bomb()) == digest("\n" + source, bomb=Bomb())
    assert not (tmp_path / "made").exists()


def test_another_process_finds_the_same(tmp_path):
    source = "def f(x):\n    return x in {'a', 'b', 'c'} or x in table\n"
    script = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from pyspark import cloudpickle\n"
        "from flinkmagic.reuse.code_fingerprint import fingerprint\n"
        "namespace = {'__name__': '__main__', 'table': {'d', 'e', 'f'}}\n"
        f"exec(compile({source!r}, 'a', 'exec'), namespace)\n"
        "print(fingerprint(cloudpickle.dumps((namespace['f'], 'return type'))).digest)\n"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", script], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True,
            text=True, check=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert answers == {digest(source, table={"f", "e", "d"}) + "\n"}


# -- modules of the user's ----------------------------------------------------------------------------


USES_MODULE = "import fm_helper\ndef f(x):\n    return fm_helper.g(x)\n"


def test_an_edited_module_counts_reloaded_or_not(modules):
    modules(fm_helper="def g(x):\n    return x + 1\n")
    before = digest(USES_MODULE)
    modules(fm_helper="# a word\n\ndef g(x):\n    return x + 1\n")
    assert digest(USES_MODULE) == before
    modules(fm_helper="def g(x):\n    return x + 22\n")
    edited = digest(USES_MODULE)
    assert edited != before
    importlib.reload(sys.modules["fm_helper"])
    assert digest(USES_MODULE) == edited


@pytest.mark.parametrize(
    "source",
    [
        "from fm_helper import g as f\n",
        "from fm_helper import g\ndef f(x):\n    return g(x)\n",
        "def f(x):\n    import fm_helper\n    return fm_helper.g(x)\n",
        "def f(x):\n    from fm_helper import g\n    return g(x)\n",
        "from fm_helper import C\nc = C()\ndef f(x):\n    return c\n",
    ],
    ids=["itself", "global", "import inside", "from inside", "class"],
)
def test_a_module_counts_however_it_is_referred_to(modules, source):
    modules(fm_helper="class C:\n    pass\ndef g(x):\n    return x + 1\n")
    before = digest(source)
    assert digest("\n" + source) == before
    modules(fm_helper="class C:\n    pass\ndef g(x):\n    return x + 2\n")
    assert digest(source) != before


def test_a_module_is_parsed_again_only_if_its_file_has_changed(modules, monkeypatch):
    parsed = []
    parse = user_modules.ast.parse
    monkeypatch.setattr(user_modules.ast, "parse", lambda source: parsed.append(source) or parse(source))
    modules(often_read="def g(x):\n    return x + 1\n")
    old = ModuleSources().of("often_read")
    assert ModuleSources().of("often_read") == old
    assert len(parsed) == 2, "a file so young may change once more within one tick of its clock"
    monkeypatch.setattr(user_modules, "_RECENT_NS", -1)
    assert ModuleSources().of("often_read") == ModuleSources().of("often_read") == old
    assert len(parsed) == 3
    modules(often_read="def g(x):\n    return x + 2\n")
    assert ModuleSources().of("often_read") != old
    assert len(parsed) == 4


def test_modules_are_followed_into_modules(modules):
    modules(fm_helper="import fm_deep\ndef g(x):\n    return fm_deep.h(x)\n", fm_deep="def h(x):\n    return x\n")
    before = digest(USES_MODULE)
    modules(fm_deep="def h(x):\n    return -x\n")
    assert digest(USES_MODULE) != before


def test_modules_of_packages_are_followed(modules):
    modules(
        fm_package____init__="",
        fm_package__one="from . import two\ndef g(x):\n    from .three import h\n    return two.h(x) + h(x)\n",
        fm_package__two="def h(x):\n    return x\n",
        fm_package__three="def h(x):\n    return x\n",
    )
    source = "from fm_package import one\ndef f(x):\n    return one.g(x)\n"
    seen = {digest(source)}
    modules(fm_package__two="def h(x):\n    return -x\n")
    seen.add(digest(source))
    modules(fm_package__three="def h(x):\n    return -x\n")
    seen.add(digest(source))
    modules(fm_package____init__="VALUE = 1\n")
    seen.add(digest(source))
    assert len(seen) == 4


def test_a_module_that_cannot_be_parsed_is_not_comparable(modules):
    modules(fm_helper="def g(x):\n    return x\n")
    function = defined(USES_MODULE)
    modules(fm_helper="def g(x)\n")
    with pytest.raises(CannotCompareError, match="cannot be parsed"):
        digest_of(function)
