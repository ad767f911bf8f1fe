"""Answers that outlive their process: what has changed is computed, what has not is answered, exactly as it was."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from flinkmagic.options import JobOptions
from flinkmagic.reuse import durable_store, result_keys
from flinkmagic.reuse.retained_answers import retained_answers
from flinkmagic.session import SessionActions, release_retained, retained

ROOT = Path(__file__).parents[3]


def kernel(folder, cells, master="local[2]", config=None, cwd=ROOT, *, rows=False, **environment):
    """Run cells in a process of its own; return what each answered, and what it has said."""
    given = {"folder": str(folder), "master": master, "config": config or {}, "cells": cells, "rows": rows}
    paths = os.pathsep.join([str(ROOT), *filter(None, [environment.pop("PYTHONPATH", "")])])
    # Python chooses the seed of its hashes, and Spark that of its workers.
    without_seed = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.session.actions.durable_process"],
        input=json.dumps(given), capture_output=True, text=True, check=False, cwd=cwd, timeout=280,
        env={**without_seed, **environment, "PYTHONPATH": paths},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


@dataclass
class Case:
    """A cell, and what becomes of it before another kernel runs it."""

    before: str
    after: str = ""
    """Its lines in the other kernel; by default the same."""
    happens: object = None
    """Called with the case's folder in between."""
    settings: dict = field(default_factory=dict)
    settings_after: dict = field(default_factory=dict)
    first: str = ""
    """Lines that run plainly before the cell, in both kernels."""


def _rows(at, name, *, rows, part="part-0"):
    folder = at / name
    folder.mkdir(exist_ok=True)
    (folder / f"{part}.csv").write_text("".join(f"{number},{text}\n" for number, text in rows))
    return folder


def _prepare(at):
    at.mkdir(parents=True)
    _rows(at, "data", rows=[(1, "a"), (2, "b"), (3, "c")])
    _rows(at, "data", rows=[(4, "d"), (5, "e")], part="part-1")
    _rows(at, "other", rows=[(1, "x"), (2, "y")])
    (at / "p").mkdir()
    _rows(at, "p/day=1", rows=[(1, "x"), (2, "y")])
    (at / "j").mkdir()
    (at / "j" / "a.json").write_text('{"n": 1}\n')
    (at / f"helper_fm{at.name}.py").write_text(
        f"import inner_fm{at.name}\nFACTOR = 2\n\ndef changed(n):\n    return n * inner_fm{at.name}.double(n)\n"
    )
    (at / f"inner_fm{at.name}.py").write_text("def double(n):\n    return 2 * n\n")


def _in_place(at, text="7,z\n8,y\n9,x\n"):
    file = at / "data" / "part-0.csv"
    was = file.stat()
    with file.open("r+") as opened:
        opened.write(text)
    os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (was.st_size, was.st_mtime_ns)


def _replaced(at):
    file = at / "data" / "part-0.csv"
    was = file.stat()
    (at / "new").write_text("7,z\n8,y\n9,x\n")
    os.utime(at / "new", ns=(was.st_atime_ns, was.st_mtime_ns))
    os.replace(at / "new", file)
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (was.st_size, was.st_mtime_ns)


def _edit(name, old, new):
    def edit(at):
        file = at / name.replace("_fm", f"_fm{at.name}")
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))

    return edit


DATA = "df = spark.read.schema('n int, s string').csv(f'{at}/data')\n"
OTHER = "other = spark.read.schema('n int, t string').csv(f'{at}/other')\n"
COUNTED = DATA + "df.groupBy().agg(F.sum('n'), F.max('s')).collect()"
UDF = "{more}def f(n{default}):\n    {comment}return {body}\ndf.select(F.udf(f, 'long')('n')).collect()"


def udf(body="n + 1", more="", default="", comment=""):
    return DATA + UDF.format(body=body, more=more, default=default, comment=comment)


def helper(body="helper_fm.changed(n)"):
    """A function that calls one of a module, whose name is its case's own."""
    added = "for name in ('inner_fm', 'helper_fm'):\n    spark.sparkContext.addPyFile(f'{at}/{name}.py')\n"
    return added + "import helper_fm\n" + udf(body)


PANDAS = (
    "import pandas as pd\n" + DATA + "def f(n: pd.Series) -> pd.Series:\n    return n * 2\n"
    "df.select(F.pandas_udf(f, 'long')('n')).collect()"
)
IN_PANDAS = (
    DATA + "def f(frame):\n    return frame.assign(n=frame.n + 1)\n"
    "df.groupBy('n').applyInPandas(f, 'n int, s string').orderBy('n').collect()"
)
CLASS = "class A:\n    rate = {rate}\n    def of(self, n):\n        return n * self.rate + {more}\na = A()\n"
NESTED = "def outer(n):\n    def inner(m):\n        return m + {number}\n    return inner(n)\n"
DERIVED = "class B:\n    rate = {rate}\nclass A(B):\n    def of(self, n):\n        return n * self.rate\na = A()\n"
PROPERTY = "class A:\n    @property\n    def twice(self):\n        return {factor}\na = A()\n"
PARTIAL = (
    "import functools\ndef f(n, k):\n    return n * k\n"
    "df.select(F.udf(functools.partial(f, k={k}), 'long')('n')).collect()"
)
DECORATED = (
    "import functools\ndef more(f):\n    @functools.wraps(f)\n    def called(n):\n        return f(n) + {more}\n"
    "    return called\n@F.udf('long')\n@more\ndef f(n):\n    return n\ndf.select(f('n')).collect()"
)
LAMBDA = "df.select(F.udf(lambda n: n + {more}, 'long')('n')).collect()"
RATES = "import dataclasses\n@dataclasses.dataclass\nclass Rates:\n    rate: int = {rate}\n"
RATE = "import enum\nclass Rate(enum.Enum):\n    LOW = 1\n    TOP = {top}\n"
REGISTERED = (
    "df.createOrReplaceTempView('told_fm')\nspark.udf.register('more_fm', lambda n: n + {more}, 'int')\n"
    "spark.sql('SELECT more_fm(n) AS n FROM told_fm').collect()"
)
MEAN = (
    "import pandas as pd\ndef f(n: pd.Series) -> float:\n    return float(n.mean() * {factor})\n"
    "df.groupBy('s').agg(F.pandas_udf(f, 'double')('n')).orderBy('s').collect()"
)
RUNNING = (
    "from pyspark.sql import Window\n"
    "rows = Window.partitionBy(F.lit(1)).orderBy('n').rowsBetween("
    "Window.unboundedPreceding if '{first}' == 'unbounded' else -1, 0)\n"
    "df.select(F.sum('n').over(rows)).collect()"
)
PARTED = "spark.read.schema('n int, s string, day int').csv(f'{at}/p').groupBy('day').count().orderBy('day').collect()"
VIEW = "df.createOrReplaceTempView('seen_fm')\nspark.sql('SELECT sum(n) AS n FROM seen_fm').collect()"
TABLE = "spark.sql('CREATE TABLE IF NOT EXISTS fm_table_{case} (n INT) USING parquet LOCATION \"' + at + '/t\"')\n"

CHANGES = {
    "appended": Case(COUNTED, happens=lambda at: _rows(at, "data", rows=[(9, "q")], part="part-2")),
    "same size and time, in place": Case(COUNTED, happens=_in_place),
    "same size and time, another file": Case(COUNTED, happens=_replaced),
    "deleted": Case(COUNTED, happens=lambda at: (at / "data" / "part-1.csv").unlink()),
    "rewritten": Case(COUNTED, happens=lambda at: _rows(at, "data", rows=[(1, "b"), (2, "b"), (3, "z")])),
    "longer": Case(COUNTED, happens=lambda at: _rows(at, "data", rows=[(number, "b") for number in range(9)])),
    "a line added": Case(COUNTED, happens=_edit("data/part-1.csv", "5,e\n", "5,e\n6,f\n")),
    "another folder in its place": Case(
        COUNTED, happens=lambda at: (shutil.rmtree(at / "data"), (at / "other").rename(at / "data"))
    ),
    "the other side of a join": Case(
        DATA + OTHER + "df.join(other, 'n').orderBy('n').collect()", happens=_edit("other/part-0.csv", "2,y", "2,z")
    ),
    "inferred": Case(
        "df = spark.read.csv(f'{at}/data', inferSchema=True)\ndf.groupBy().max('_c0').collect()",
        happens=_edit("data/part-0.csv", "3,c", "9,c"),
    ),
    "text": Case(
        "spark.read.text(f'{at}/data').where(\"value > '3'\").count()", happens=_edit("data/part-1.csv", "5,e", "1,e")
    ),
    "one file": Case(
        "spark.read.text(f'{at}/data/part-0.csv').groupBy().count().collect()",
        happens=_edit("data/part-0.csv", "1,a\n", "1,a\n1,a\n"),
    ),
    "a pattern": Case(
        "spark.read.text(f'{at}/data/part-*.csv').count()",
        happens=lambda at: _rows(at, "data", rows=[(1, "a")], part="part-9"),
    ),
    "body": Case(udf(), udf("n + 2")),
    "called": Case(udf("abs(n)"), udf("hash(n) * 0 + 1")),
    "global": Case(udf("n * factor", "factor = 2\n"), udf("n * factor", "factor = 3\n")),
    "a list of globals": Case(udf("n * factors[1]", "factors = [1, 2]\n"), udf("n * factors[1]", "factors = [1, 3]\n")),
    "a dictionary": Case(udf("d.get(n, 0)", "d = {1: 2}\n"), udf("d.get(n, 0)", "d = {1: 3}\n")),
    "true for one": Case(udf("n * factor", "factor = 1\n"), udf("n * factor", "factor = True\n")),
    "a float's last bit": Case(
        udf("int(n * factor * 1e17)", "factor = 0.1\n"), udf("int(n * factor * 1e17)", "factor = 0.10000000000000002\n")
    ),
    "closure": Case(
        udf("g(n)", "def made(k):\n    return lambda n: n * k\ng = made(2)\n"),
        udf("g(n)", "def made(k):\n    return lambda n: n * k\ng = made(4)\n"),
    ),
    "default": Case(udf("n + k", default=", k=1"), udf("n + k", default=", k=2")),
    "keyword default": Case(udf("n + k", default=", *, k=1"), udf("n + k", default=", *, k=2")),
    "nested": Case(udf("outer(n)", NESTED.format(number=1)), udf("outer(n)", NESTED.format(number=2))),
    "class attribute": Case(udf("a.of(n)", CLASS.format(rate=2, more=0)), udf("a.of(n)", CLASS.format(rate=3, more=0))),
    "method": Case(udf("a.of(n)", CLASS.format(rate=2, more=0)), udf("a.of(n)", CLASS.format(rate=2, more=1))),
    "instance": Case(
        udf("a.of(n)", CLASS.format(rate=2, more=0)), udf("a.of(n)", CLASS.format(rate=2, more=0) + "a.rate = 5\n")
    ),
    "module's function": Case(helper(), happens=_edit("helper_fm.py", "n * inner", "n + inner")),
    "module's constant": Case(
        helper("n * helper_fm.FACTOR"), happens=_edit("helper_fm.py", "FACTOR = 2", "FACTOR = 3")
    ),
    "module of the module": Case(helper(), happens=_edit("inner_fm.py", "2 * n", "3 * n")),
    "pandas": Case(PANDAS, PANDAS.replace("n * 2", "n * 3")),
    "in pandas": Case(IN_PANDAS, IN_PANDAS.replace("n + 1", "n + 2")),
    "return type": Case(udf(), udf().replace("'long'", "'string'")),
    "ANSI": Case(
        DATA + "df.select(F.expr('try_cast(s AS int)').alias('n')).distinct().collect()",
        settings={"spark.sql.ansi.enabled": "true"}, settings_after={"spark.sql.ansi.enabled": "false"},
    ),
    "time zone": Case(
        DATA + "df.selectExpr('hour(timestamp_seconds(n * 3600)) AS h').collect()",
        settings={"spark.sql.session.timeZone": "UTC"}, settings_after={"spark.sql.session.timeZone": "Asia/Tokyo"},
    ),
    "case": Case(
        DATA + "df.selectExpr('n AS a', 's AS A').where('n > 2').collect()",
        settings_after={"spark.sql.caseSensitive": "true"},
    ),
    "option": Case(COUNTED, COUNTED.replace("csv(f'{at}/data')", "csv(f'{at}/data', comment='4')")),
    "schema": Case(COUNTED, COUNTED.replace("n int, s", "n double, s")),
    "view": Case(DATA + VIEW, DATA + "df = df.where('n > 2')\n" + VIEW),
    "table": Case(
        "spark.table('fm_table_a').count()",
        first=TABLE.format(case="a") + "spark.sql('INSERT INTO fm_table_a VALUES (1)')",
    ),
    "condition": Case(DATA + "df.where('n > 1').collect()", DATA + "df.where('n > 2').collect()"),
    "order of columns": Case(DATA + "df.select('n', 's').collect()", DATA + "df.select('s', 'n').collect()"),
    "name of a column": Case(DATA + "df.selectExpr('n AS a').collect()", DATA + "df.selectExpr('n AS b').collect()"),
    "action": Case(DATA + "df.orderBy('n').take(1)", DATA + "df.orderBy('n').head(1)"),
    "argument": Case(DATA + "df.orderBy('n').take(1)", DATA + "df.orderBy('n').take(2)"),
    "seed": Case(DATA + "df.select(F.rand(1)).collect()", DATA + "df.select(F.rand(2)).collect()"),
    "quantile": Case(
        DATA + "df.approxQuantile('n', [0.5], 0.0)", DATA + "df.approxQuantile('n', [0.9], 0.0)"
    ),
    "base class": Case(udf("a.of(n)", DERIVED.format(rate=2)), udf("a.of(n)", DERIVED.format(rate=3))),
    "property": Case(udf("a.twice * n", PROPERTY.format(factor=2)), udf("a.twice * n", PROPERTY.format(factor=3))),
    "partial": Case(DATA + PARTIAL.format(k=2), DATA + PARTIAL.format(k=3)),
    "decorator": Case(DATA + DECORATED.format(more=1), DATA + DECORATED.format(more=2)),
    "data class": Case(udf("Rates().rate * n", RATES.format(rate=2)), udf("Rates().rate * n", RATES.format(rate=3))),
    "enumeration": Case(udf("Rate.TOP.value * n", RATE.format(top=2)), udf("Rate.TOP.value * n", RATE.format(top=3))),
    "lambda": Case(
        DATA + LAMBDA.format(more=1), DATA + LAMBDA.format(more=2)
    ),
    "registered": Case(DATA + REGISTERED.format(more=1), DATA + REGISTERED.format(more=2)),
    "grouped in pandas": Case(DATA + MEAN.format(factor=2), DATA + MEAN.format(factor=3)),
    "kind of join": Case(
        DATA + OTHER + "df.join(other, 'n').orderBy('n').collect()",
        DATA + OTHER + "df.join(other, 'n', 'left').orderBy('n').collect()",
    ),
    "window": Case(DATA + RUNNING.format(first="unbounded"), DATA + RUNNING.format(first="1")),
    "partition added": Case(PARTED, happens=lambda at: shutil.copytree(at / "p/day=1", at / "p/day=2")),
    "partition renamed": Case(PARTED, happens=lambda at: (at / "p/day=1").rename(at / "p/day=3")),
    "JSON": Case(
        "spark.read.schema('n int').json(f'{at}/j').groupBy().sum('n').collect()", happens=_edit("j/a.json", "1", "2")
    ),
}  # fmt: skip

NOTHING = {
    "the same": Case(COUNTED),
    "comment": Case(udf(), udf(comment="# more\n    ")),
    "lines": Case(udf(), "\n\n# above\n\n" + udf()),
    "other functions": Case(udf(), "def unused(x):\n    return x * 31\n" + udf()),
    "other globals": Case(udf("n * factor", "factor = 2\n"), udf("n * factor", "factor = 2\nelse_ = 7\n")),
    "a class in the cell": Case(udf("a.of(n)", CLASS.format(rate=2, more=0))),
    "a set of texts": Case(udf("n if 'b' in words else 0", "words = {'a', 'b', 'c', 'dd', 'eee'}\n")),
    "a module": Case(helper(), happens=_edit("helper_fm.py", "FACTOR = 2\n", "# said\n\n\nFACTOR = 2\n")),
    "pandas": Case(PANDAS, "import json\n" + PANDAS),
    "names of frames": Case(COUNTED, COUNTED.replace("df", "frame")),
    "one chain": Case(DATA + "big = df.where('n > 1')\nbig.count()", DATA + "df.where('n > 1').count()"),
    "a view again": Case(DATA + VIEW),
    "keywords": Case(DATA + "df.orderBy('n').take(2)", DATA + "df.orderBy('n').take(num=2)"),
    "a file beside": Case(COUNTED, happens=lambda at: (at / "beside.csv").write_text("1,2\n")),
    "read": Case(COUNTED, happens=lambda at: (at / "data" / "part-0.csv").read_text()),
    "a setting of plans": Case(COUNTED, settings_after={"spark.sql.adaptive.coalescePartitions.enabled": "false"}),
    "a default that is set": Case(COUNTED, settings_after={"spark.sql.codegen.wholeStage": "true"}),
    "inferred": Case("df = spark.read.csv(f'{at}/data', inferSchema=True)\ndf.groupBy().max('_c0').collect()"),
    "a frame": Case(DATA + "df.orderBy('n').toPandas()"),
    "a larger frame": Case("spark.range(12_000).selectExpr('id', 'repeat(CAST(id AS string), 20) AS s').toPandas()"),
    "a mixed order": Case(DATA + "df.groupBy('s').agg(F.collect_list('n').alias('l')).orderBy('s').collect()"),
    "a seed": Case(DATA + "df.withColumn('r', F.rand(7)).collect()"),
    "subquery": Case(
        DATA + "df.createOrReplaceTempView('q_fm')\n"
        "spark.sql('SELECT * FROM q_fm WHERE n = (SELECT max(n) FROM q_fm)').collect()"
    ),
    "a table": Case("spark.table('fm_table_b').count()", first=TABLE.format(case="b") + "None"),
}  # fmt: skip


def _cells(folder, cases, *, after):
    made = []
    for number, (name, case) in enumerate(cases.items()):
        source = case.after if after and case.after else case.before
        source = source.replace("_fm'", f"_fm{number}'") if "addPyFile" in source else source
        source = source.replace("helper_fm.", f"helper_fm{number}.").replace(
            "import helper_fm\n", f"import helper_fm{number}\n"
        )
        settings = {**case.settings, **(case.settings_after if after else {})}
        # Paths in the text of the functions' files are those of the case.
        at = folder / str(number)
        method = "toPandas" if "toPandas" in source else ""
        at_first = f"at = {str(at)!r}\n"
        first = at_first + case.first if case.first else ""
        made.append({"name": name, "first": first, "source": at_first + source, "settings": settings, "method": method})
    return made


def kept(cases):
    """Return the cases that collect a frame, as cells that make it one whose rows are kept, under the name `kept`."""
    whole = ".collect()"
    made = {}
    for name, case in cases.items():
        sources = [source for source in (case.before, case.after) if source]
        if all(source.endswith(whole) for source in sources):
            framed = [source.removesuffix(whole).rpartition("\n") for source in sources]
            before, *after = (f"{first}\nkept = ({frame}).repartition(2)" for first, _, frame in framed)
            made[name] = replace(case, before=before, after="".join(after))
    return made


def in_two_kernels(folder, cases, *, rows=False):
    """Run each case in a kernel, and when all have happened in another one, backwards; return what that answered."""
    for number in range(len(cases)):
        _prepare(folder / str(number))
    before, _ = kernel(folder / "store", _cells(folder, cases, after=False), rows=rows)
    for number, case in enumerate(cases.values()):
        if case.happens is not None:
            case.happens(folder / str(number))
    cells = list(reversed(_cells(folder, cases, after=True)))
    config = {"spark.app.name": "another", "spark.ui.port": "4077"}
    after, _ = kernel(folder / "store", cells, config=config, cwd=folder, rows=rows)
    return {name: {**one, "before": before[name]["answer"]} for name, one in after.items()}


@pytest.mark.long
@pytest.mark.matrix(2)
@pytest.mark.parametrize("rows", [False, True], ids=["answers", "rows"])
def test_what_has_changed_is_computed_in_a_new_kernel(tmp_path, rows) -> None:
    cases = kept(dict(list(CHANGES.items())[::3])) if rows else CHANGES  # their keys are made in the same way
    answers = in_two_kernels(tmp_path, cases, rows=rows)
    assert [name for name, one in answers.items() if one["is_other_s"]] == []
    assert {name: one["answer"] for name, one in answers.items()} == {
        name: one["plain"] for name, one in answers.items()
    }


NO_ROWS = {"a mixed order", "a seed", "a setting of plans"}
"""Rows of these are others each time that they are computed, or in other partitions; an answer is what Spark gave."""


@pytest.mark.long
@pytest.mark.matrix(2)
@pytest.mark.parametrize("rows", [False, True], ids=["answers", "rows"])
def test_what_has_not_changed_is_answered_in_a_new_kernel(tmp_path, rows) -> None:
    cases = {name: case for name, case in kept(NOTHING).items() if name not in NO_ROWS} if rows else NOTHING
    answers = in_two_kernels(tmp_path, cases, rows=rows)
    assert [name for name, one in answers.items() if not one["is_other_s"]] == []
    for name, one in answers.items():
        assert one["answer"] == one["before"] == one["plain"], name
        assert one["saved"] > 0, name


PLACES = {
    "time": DATA + "df.selectExpr('timestamp_seconds(n * 86400) AS at').collect()",
    "frame": DATA + "df.selectExpr('timestamp_seconds(n * 86400) AS at', 's').toPandas()",
    "count": DATA + "df.count()",
}


@pytest.mark.long
@pytest.mark.exhaustive
def test_another_zone_another_master_and_another_package_find_nothing(tmp_path) -> None:
    _prepare(tmp_path / "0")
    installed = tmp_path / "lib" / "site-packages"
    (installed / "fm_dep-1.0.dist-info").mkdir(parents=True)
    (installed / "fm_dep-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: fm_dep\nVersion: 1.0\n")
    function = "import math\n" + udf("math.floor(n)")
    cases = {**{name: Case(source) for name, source in PLACES.items()}, "function": Case(function)}
    cells = [
        {**cell, "source": cell["source"].replace(str(tmp_path / str(number)), str(tmp_path / "0"))}
        for number, cell in enumerate(_cells(tmp_path, cases, after=False))
    ]
    store = tmp_path / "store"

    def answered(**how):
        answers, _ = kernel(store, cells, **{"PYTHONPATH": str(installed), "TZ": "UTC", **how})
        assert all(one["answer"] == one["plain"] for one in answers.values())
        return sorted(name for name, one in answers.items() if one["is_other_s"])

    assert answered() == []
    assert answered() == ["count", "frame", "function", "time"]
    assert answered(TZ="Asia/Tokyo") == []
    assert answered(master="local[3]") == []
    (installed / "fm_dep-1.0.dist-info").rename(installed / "fm_dep-1.1.dist-info")
    assert answered() == ["count", "frame", "time"]


# -- in one process, as if it were two ---------------------------------------------------------------------


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setattr(durable_store, "WRITE_S", -1e9)
    monkeypatch.setattr(result_keys, "SETTLED_S", -3600)
    return durable_store.durable_store(tmp_path / "store")


@pytest.fixture
def again(answering, store, tmp_path):
    """Runs a cell with a store; what was answered before in this process is forgotten."""
    _prepare(tmp_path / "0")
    answering.namespace["at"] = str(tmp_path / "0")
    answering.actions = SessionActions(JobOptions(retain="session", durable=store.folder))

    def run(source, forget=True):
        if forget:
            retained_answers(answering.spark.sparkContext)._retained.clear()
        value = answering.cell(source)
        assert store.wait(30)
        return value

    return run


ACTIONS = (
    "df.count()",
    "df.isEmpty()",
    "df.collect()",
    "df.take(2)",
    "df.head()",
    "df.where('n > 99').first()",
    "df.tail(1)",
    "df.corr('n', 'd')",
    "df.approxQuantile(['n', 'd'], [0.1, 0.9], 0.0)",
    "df.selectExpr('array(n, null) AS a', 'map(n, s) AS m', 'struct(s AS x, n AS x) AS t').collect()",
    "df.selectExpr('CAST(d AS decimal(10,3)) AS c', 'CAST(s AS binary) AS b', 'date(timestamp_seconds(n)) AS o',"
    " 'timestamp_seconds(n) AS at', 'make_dt_interval(n) AS i', 'CAST(d AS float) AS f').collect()",
    "df.selectExpr('double(\"NaN\") AS nan', 'double(\"-0.0\") AS zero', 'null AS nothing').collect()",
    "df.toPandas().to_dict()",
)


@pytest.mark.matrix(4)
@pytest.mark.parametrize("action", ACTIONS)
def test_an_answer_is_read_as_it_was(answering, again, store, action) -> None:
    made = DATA + "df = df.selectExpr('n', 's', 'n / 3D AS d')\n"
    first = again(made + action)
    assert len(list((store.folder / "flinkmagic-answers").iterdir())) == 1
    assert answering.report.kept_at == 0
    second = again(made + action)
    assert answering.report.kept_at > 0
    assert not answering.report.is_from_other_kernel
    assert repr(second) == repr(first) == repr(answering.plain(made + action))
    assert answering.ran.tasks() != []  # of the plain run alone
    (kept,) = (one for one in retained(answering.spark) if one.kind == "answer")
    assert kept.place == "memory, durable"


def test_what_is_shown_is_stored_as_text(answering, again, capsys) -> None:
    for _ in range(2):
        again(DATA + "df.orderBy('n').show(2)")
        assert capsys.readouterr().out.startswith("+---+---+\n|  n|  s|\n")
    assert answering.report.kept_at > 0


@pytest.mark.matrix(7)
@pytest.mark.parametrize(
    "made",
    [
        "df = spark.createDataFrame([(1, 'a')], ['n', 's'])",
        "df = spark.sparkContext.parallelize([(1, 'a')]).toDF(['n', 's'])",
        DATA + "df._jdf.persist().count()\ndf.count()",  # cached and filled by what nobody has seen
        DATA + "df = df.withColumn('i', F.monotonically_increasing_id()).cache()\ndf.count()",
        DATA + "df = df.dropDuplicates(['n']).cache()\ndf.count()",
        DATA + "df = df.groupBy('s').count().limit(2).cache()\ndf.count()",
        DATA
        + "c = spark.sparkContext.broadcast(1)\ndf = df.select(F.udf(lambda n: n + c.value, 'long')('n').alias('n'))",
        DATA + "df = df.select(F.current_timestamp())",
        DATA + "import random\ndf = df.select(F.udf(lambda n: random.random(), 'double')('n'))",
        "from pyspark.ml.linalg import Vectors, VectorUDT\n"
        + DATA
        + "df = df.select(F.udf(lambda n: Vectors.dense(n), VectorUDT())('n'))",
    ],
)
def test_what_means_something_in_this_process_only_is_not_stored(answering, again, store, made) -> None:
    try:
        again(made + "\ndf.collect()")
    finally:
        answering.plain("spark.catalog.clearCache()")
    assert not list(store.folder.rglob("*"))


CACHED = DATA + "df = df.withColumn('m', F.col('n') * 2).cache()\nmore = df.where('n > 1').cache()\nmore.count()\n"


def test_what_reads_a_cache_is_answered_by_what_was_put_into_it(answering, again, store) -> None:
    asked = "more.agg(F.sum('m')).collect()"
    try:
        first = again(CACHED + asked)
        assert len(list((store.folder / "flinkmagic-answers").iterdir())) == 2
        answering.plain("spark.catalog.clearCache()")
        assert again(CACHED + asked) == first == [(28,)]
        assert answering.report.kept_at > 0
        _in_place(Path(answering.namespace["at"]))
        assert again(asked) == first
        assert answering.report.kept_at == 0
        answering.plain("spark.catalog.clearCache()")
        assert again(CACHED + asked) == [(66,)]
        assert answering.report.kept_at == 0
    finally:
        answering.plain("spark.catalog.clearCache()")


def test_a_damaged_entry_is_removed_and_computed_again(answering, again, store, capsys) -> None:
    first = again(COUNTED)
    (entry,) = (store.folder / "flinkmagic-answers").iterdir()
    entry.write_bytes(entry.read_bytes()[:-1] + b"?")
    assert again(COUNTED) == first
    assert answering.report.kept_at == 0
    told = capsys.readouterr().err
    assert (
        told == f"A stored result was damaged (its checksum is wrong) and is removed; it is computed again: {entry}\n"
    )
    assert again(COUNTED) == first
    assert answering.report.kept_at > 0


def test_an_entry_of_other_columns_is_removed_and_computed_again(answering, again, store, capsys) -> None:
    """Whoever can write here can write a checksum; what does not fit the query is no answer."""
    first = again(COUNTED)
    (entry,) = (store.folder / "flinkmagic-answers").iterdir()
    good = store.find(entry.name)
    for content in (
        b"",
        b"{}",
        b"[1]\n",
        good.content.replace(b"int64", b"int32"),
        good.content[:-40],
        b'{"rows": 1}\nx',
    ):
        store.store(durable_store.DurableEntry(entry.name, "collect()", 9.0, 1.0, content))
        assert again(COUNTED) == first
        assert answering.report.kept_at == 0
        assert "was damaged" in capsys.readouterr().err


def test_a_pickle_in_the_folder_is_not_executed(answering, again, store, tmp_path) -> None:
    import pickle

    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "executed"),)

    first = again(COUNTED)
    (entry,) = (store.folder / "flinkmagic-answers").iterdir()
    good = store.find(entry.name)
    for content in (pickle.dumps(Evil()), good.content.partition(b"\n")[0] + b"\n" + pickle.dumps(Evil())):
        entry.write_bytes(content)
        assert again(COUNTED) == first
        store.store(durable_store.DurableEntry(entry.name, "collect()", 9.0, 1.0, content))
        assert again(COUNTED) == first
    assert not (tmp_path / "executed").exists()


def test_what_is_released_is_computed_again(answering, again, store) -> None:
    again(COUNTED)
    release_retained(answering.spark, "answers")
    again(COUNTED, forget=False)
    assert answering.report.kept_at == 0
    assert list((store.folder / "flinkmagic-answers").iterdir()) != []


def test_a_folder_that_cannot_be_written_is_told_once(answering, again, store, tmp_path, capsys) -> None:
    (tmp_path / "store").write_text("a file")
    for action in ("df.count()", "df.collect()"):
        again(DATA + action)
    told = capsys.readouterr().err
    assert (
        told.startswith(f"Results are not stored in {tmp_path / 'store'} (NotADirectoryError: ")
        or "FileExistsError" in told
    )
    assert told.count("\n") == 1


def test_files_that_are_written_while_an_answer_is_computed_leave_none(answering, again, store, tmp_path) -> None:
    source = DATA + "import pathlib\nkeep = df.select('n')\n"
    answering.namespace["touch"] = lambda: _rows(tmp_path / "0", "data", rows=[(1, "z"), (2, "z"), (3, "q")])
    again(source + "(keep.count(), touch())[0]")
    assert len(list((store.folder / "flinkmagic-answers").iterdir())) == 1  # read before it was touched
    again(source + "df.count()")
    assert answering.report.kept_at == 0


def test_files_that_were_just_changed_leave_no_durable_answer(answering, again, store, monkeypatch) -> None:
    monkeypatch.setattr(result_keys, "SETTLED_S", 3600)
    again(COUNTED)
    assert not store.folder.exists()
    again(COUNTED, forget=False)
    assert answering.report.kept_at > 0  # in this process


INFERRED = "df = spark.read.csv(f'{at}/data', inferSchema=True)\ndf.schema"


@pytest.fixture
def anew(answering, again, store):
    """Runs a cell with a store; what was inferred before in this process is forgotten."""

    def run(source):
        retained_answers(answering.spark.sparkContext).schemas.clear()
        return again(source), answering.ran.tasks() != []

    return run


def test_an_inferred_schema_is_not_inferred_again(answering, anew, tmp_path) -> None:
    plain = answering.plain(INFERRED)
    assert anew(INFERRED) == (plain, True)
    assert anew(INFERRED) == (plain, False)
    assert answering.plain("df.collect()") == answering.plain(INFERRED.replace("df.schema", "df.collect()"))
    _in_place(tmp_path / "0", "x,z\n8,y\n9,x\n")
    other = anew(INFERRED)
    assert other == (answering.plain(INFERRED), True)
    assert other[0] != plain
    assert anew(INFERRED.replace("=True", "=True, sep='\\t'"))[1]


def test_a_stored_schema_names_no_class_to_import(answering, anew, store, capsys) -> None:
    plain, _ = anew(INFERRED)
    (entry,) = (store.folder / "flinkmagic-answers").iterdir()
    good = json.loads(store.find(entry.name).content)
    evil = {"type": "udt", "pyClass": "this.module_raises", "class": None, "sqlType": "string"}
    good["schema"]["fields"][0]["type"] = evil
    for content in (json.dumps(good).encode(), b"", b"[]", b'{"schema": {"type": "struct"}, "digest": ""}'):
        store.store(durable_store.DurableEntry(entry.name, "csv()", 9.0, 1.0, content))
        assert anew(INFERRED) == (plain, True)
    assert "this.module_raises" not in capsys.readouterr().err
