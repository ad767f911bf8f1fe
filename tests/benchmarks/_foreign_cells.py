"""Cells that others have written: those of Apache Spark's own package, and of the packages installed beside it.

A `Notebook` is a row of cells that belong together. They are made by rule:

- A script: its imports and definitions are the first cell; what it does under ``if __name__ == "__main__"``, and the
  bodies of functions that it calls there with arguments of the parameters' own names, are cut where the authors' marks
  (``# $example on$``, ``off``) stand. A running session is not stopped and not made twice.
- A docstring with examples: a cell ends where prose begins.
"""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.metadata
import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

_MARK = re.compile(r"#\s*\$example (on|off)")
_PATH = re.compile(r"examples/src/main/resources/[\w./*]+")


@dataclass(frozen=True)
class Notebook:
    """Cells that run one after the other in one namespace.

    Attributes
    ----------
    name : str
        Where they stand.
    cells : tuple of str
        Their text.
    arguments : tuple of str
        What `sys.argv` holds behind the script's name.
    module : str, optional
        The module whose names a docstring's examples may use.
    lacks : str
        Why it cannot run; empty where it can.
    """

    name: str
    cells: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    module: str | None = None
    lacks: str = ""


@dataclass
class Script:
    """One file of examples, cut into cells."""

    path: Path
    lines: list[str] = field(init=False)

    def __post_init__(self) -> None:
        text = self.path.read_text(encoding="utf-8")
        self.lines = text.splitlines()
        self.tree = ast.parse(text)

    def cells(self) -> list[str]:
        main = [node for node in self.tree.body if _is_main(node)]
        functions = {node.name: node for node in self.tree.body if isinstance(node, ast.FunctionDef)}
        called: set[str] = set()
        body = [statement for node in main for statement in node.body]  # type: ignore[attr-defined]
        cut: list[str] = []
        run: list[ast.stmt] = []
        for statement in body:
            function = functions.get(_called_with_own_names(statement, functions) or "")
            if function is None:
                run.append(statement)
                continue
            called.add(function.name)
            cut += self._pieces(run)
            run = []
            cut += self._pieces(function.body)
        cut += self._pieces(run)
        definitions = [node for node in self.tree.body if node not in main and getattr(node, "name", "") not in called]
        head = "\n".join(self._text([node]) for node in definitions)
        return [cell for cell in (head, *cut) if cell.strip()]

    def _pieces(self, statements: Sequence[ast.stmt]) -> list[str]:
        """The statements' text, cut at the authors' marks; statements that end a session are left out."""
        pieces: list[list[ast.stmt]] = [[]]
        end = 0
        for statement in statements:
            start = _first_line(statement)
            if end and any(_MARK.search(line) for line in self.lines[end : start - 1]):
                pieces.append([])
            end = statement.end_lineno or start
            if not _ends_session(statement):
                pieces[-1].append(statement)
        return [self._text(piece) for piece in pieces if piece]

    def _text(self, statements: Sequence[ast.stmt]) -> str:
        start, end = _first_line(statements[0]), statements[-1].end_lineno
        text = textwrap.dedent("\n".join(self.lines[start - 1 : end]))
        return re.sub(r"\bSparkContext\((?!\))[^()]*\)", "SparkContext.getOrCreate()", _without_stops(text))


def _first_line(node: ast.stmt) -> int:
    return min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])


def _is_main(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).replace('"', "'") == "__name__ == '__main__'"


def _called_with_own_names(statement: ast.stmt, functions: dict[str, ast.FunctionDef]) -> str | None:
    """The function that a statement calls with variables named as its parameters; its body can stand there."""
    if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)):
        return None
    call = statement.value
    function = functions.get(call.func.id) if isinstance(call.func, ast.Name) else None
    if function is None or call.keywords:
        return None
    names = [one.arg for one in function.args.args]
    if [ast.unparse(one) for one in call.args] != names or _leaves_early(function):
        return None
    return function.name


def _leaves_early(function: ast.FunctionDef) -> bool:
    inner = {
        id(node)
        for one in ast.walk(function)
        if isinstance(one, (ast.FunctionDef, ast.Lambda)) and one is not function
        for node in ast.walk(one)
    }
    return any(
        isinstance(node, (ast.Return, ast.Yield, ast.Global)) and id(node) not in inner for node in ast.walk(function)
    )


def _ends_session(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and ast.unparse(statement) in ("spark.stop()", "sc.stop()")


def _without_stops(text: str) -> str:
    return re.sub(r"^[ \t]*(spark|sc)\.stop\(\)[ \t]*$", "", text, flags=re.MULTILINE)


ARGUMENTS = {
    "als.py": ("20", "30", "4", "2", "2"),
    "kmeans.py": ("data/mllib/kmeans_data.txt", "2", "0.1"),
    "mllib/kmeans.py": ("data/mllib/kmeans_data.txt", "2"),
    "mllib/logistic_regression.py": ("data/mllib/sample_svm_data.txt", "3"),
    "mllib/word2vec.py": ("data/mllib/sample_lda_data.txt",),
    "logistic_regression.py": ("data/mllib/sample_svm_data.txt", "3"),
    "sort.py": ("data/mllib/kmeans_data_one_column.txt",),
    "wordcount.py": ("data/mllib/kmeans_data.txt",),
    "pagerank.py": ("data/mllib/pagerank_data.txt", "3"),
    "transitive_closure.py": ("2",),
    "pi.py": ("2",),
    "sql/jdbc.py": ("jdbc:derby:memory:foreign;create=true",),
}
"""What the examples' own usage asks for, by file."""


def spark_examples() -> Iterator[Notebook]:
    """Apache Spark's own examples, as the package ships them."""
    import pyspark

    home = Path(pyspark.__file__).parent / "examples/src/main/python"
    shipped = Path(pyspark.__file__).parent / "examples/src/main/resources"
    for path in sorted(home.rglob("*.py")):
        name = path.relative_to(home).as_posix()
        if path.name == "__init__.py":
            continue
        script = Script(path)
        cells = script.cells()
        missing = sorted({one for cell in cells for one in _PATH.findall(cell) if not shipped.is_dir()})
        runnable = [cell for cell in cells if not _PATH.search(cell) or shipped.is_dir()]
        lacks = ""
        if "socketTextStream" in "".join(cells) or 'format("socket")' in "".join(cells):
            lacks = "reads from a server on a socket, and never ends"
        elif "awaitTermination()" in "".join(cells):
            lacks = "waits for a stream that never ends"
        elif "kafka" in name:
            lacks = "reads from Kafka"
        elif "sys.exit(-1)" in "".join(cells) and name not in ARGUMENTS:
            lacks = "needs an argument that the package has no file for"
        elif not runnable:
            lacks = "its files are not shipped"
        yield Notebook(f"examples/{name}", tuple(runnable), ARGUMENTS.get(name, ()), lacks=lacks)
        if missing and runnable and not lacks:
            lost = tuple(cell for cell in cells if cell not in runnable)
            yield Notebook(f"examples/{name}", lost, lacks=f"not shipped: {', '.join(missing)}")


SPARK_MODULES = (
    "pyspark.sql.dataframe",
    "pyspark.sql.functions.builtin",
    "pyspark.sql.column",
    "pyspark.sql.readwriter",
    "pyspark.sql.group",
    "pyspark.sql.catalog",
    "pyspark.sql.session",
    "pyspark.sql.window",
    "pyspark.sql.udf",
    "pyspark.sql.udtf",
    "pyspark.sql.conf",
    "pyspark.sql.observation",
    "pyspark.sql.tvf",
    "pyspark.sql.table_arg",
    "pyspark.sql.pandas.functions",
    "pyspark.sql.pandas.group_ops",
    "pyspark.sql.streaming.readwriter",
    "pyspark.sql.streaming.query",
    "pyspark.core.rdd",
    "pyspark.core.context",
    "pyspark.core.broadcast",
    "pyspark.ml.feature",
    "pyspark.ml.classification",
    "pyspark.ml.regression",
    "pyspark.ml.clustering",
    "pyspark.ml.recommendation",
    "pyspark.ml.fpm",
    "pyspark.ml.tuning",
    "pyspark.ml.stat",
    "pyspark.ml.evaluation",
    "pyspark.ml.functions",
)
"""Modules of PySpark whose docstrings hold examples of what a notebook does."""


def docstrings(modules: Iterable[str]) -> Iterator[Notebook]:
    """The examples in the docstrings of some modules; those that their authors skip are left out."""
    for name in modules:
        module = importlib.import_module(name)
        for found in _tests(module):
            cells = tuple(_groups(found))
            if cells:
                yield Notebook(found.name, cells, module=name)


def _tests(module: ModuleType) -> list[doctest.DocTest]:
    found = [test for test in doctest.DocTestFinder().find(module, module.__name__) if test.examples]
    return sorted(found, key=lambda test: (test.lineno or 0, test.name))


def _groups(found: doctest.DocTest) -> Iterator[str]:
    """The text of each run of examples that no prose interrupts."""
    text = (found.docstring or "").splitlines()
    group: list[str] = []
    end = 0
    for example in found.examples:
        if group and any(line.strip() for line in text[end : example.lineno]):
            yield "".join(group)
            group = []
        if not example.options.get(doctest.SKIP):
            group.append(example.source)
        end = example.lineno + example.source.count("\n") + example.want.count("\n")
    if group:
        yield "".join(group)


def packages_beside() -> list[importlib.metadata.Distribution]:
    """The installed packages, other than Spark's own and this one, that say they work with Spark."""
    found = {}
    for distribution in importlib.metadata.distributions():
        name = str(distribution.metadata["Name"] or "").lower()
        says = " ".join([name, str(distribution.metadata["Summary"]), *(distribution.requires or ())]).lower()
        if "spark" in says and name not in ("pyspark", "flinkmagic"):
            found[name] = distribution
    return [found[name] for name in sorted(found)]


_BLOCK = re.compile(r"^```\s*(?:python|py)\s*\n(.*?)^```", re.MULTILINE | re.DOTALL)


def beside() -> Iterator[Notebook]:
    """The examples of the packages beside: the code of their descriptions, their notebooks, their docstrings."""
    for distribution in packages_beside():
        name = str(distribution.metadata["Name"]).lower()
        text = str(distribution.metadata.get_payload() or distribution.metadata.get("Description") or "")
        blocks = tuple(_typed(textwrap.dedent(block)) for block in _BLOCK.findall(text))
        if blocks:
            yield Notebook(f"{name}/description", blocks, module="pyspark.sql")
        for path in distribution.files or ():
            if path.suffix == ".ipynb":
                yield Notebook(f"{name}/{path}", _code_cells(Path(str(path.locate()))), module="pyspark.sql")
            elif path.suffix == ".py" and ">>> " in path.read_text(encoding="utf-8"):
                module = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
                try:
                    yield from docstrings([module])
                except ImportError as error:
                    yield Notebook(f"{name}/{path}", (), lacks=f"cannot be imported: {error}")


def _typed(block: str) -> str:
    """What a reader types of a block of code: what stands behind prompts, where there are any."""
    if ">>> " not in block:
        return block
    return "".join(example.source for example in doctest.DocTestParser().get_examples(block))


def _code_cells(path: Path) -> tuple[str, ...]:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return tuple("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code" and cell["source"])
