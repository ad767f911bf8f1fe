"""Which rows of the table are stale: the rules, on facts alone."""

from __future__ import annotations

from collections.abc import Mapping

from flinkmagic.session.staleness.cell_records import CellRecord, CellRecords, ValueFact
from flinkmagic.session.staleness.stale_cells import Present, stale_cells


class Notebook:
    """Cells that read names and leave values, each told as a text."""

    def __init__(self, most: int = 1000) -> None:
        self.records = CellRecords(most)
        self.values: dict[str, str] = {}
        self.changed: dict[str, str] = {}
        self.settings: dict[str, str] = {}
        self.numbers = 0

    def fact(self, name: str) -> ValueFact | None:
        if name not in self.values:
            return None
        kind, _, key = self.values[name].rpartition(":")
        return ValueFact(kind or "value", key=key)

    def run(
        self, cell: str, reads: str = "", *, files: tuple[str, ...] = (), raised: bool = False, **left: str
    ) -> None:
        self.numbers += 1
        found = {name: self.records.found(name, self.fact(name)) for name in reads.split()}  # type: ignore[arg-type]
        self.values.update(left)
        defines = {name: fact for name in left if (fact := self.fact(name)) is not None}
        self.records.add(
            CellRecord(
                cell, self.numbers, "", reads=found, defines=defines, files=files, settings=dict(self.settings),
                raised=raised,
            )  # type: ignore[arg-type]
        )  # fmt: skip

    def stale(self) -> Mapping[str, tuple[str, ...]]:
        now = Present(self.fact, lambda files: self.changed.get(str(files), ""), self.settings)
        return {one.record.cell: one.reasons for one in stale_cells(self.records, now)}


def test_a_reader_is_stale_once_the_value_is_another_one() -> None:
    notebook = Notebook()
    notebook.run("a", x="1")
    notebook.run("b", "x", y="2")
    notebook.run("c", "y", z="3")
    notebook.run("a", x="1")
    assert notebook.stale() == {}, "run again to the same effect"
    notebook.run("a", x="7")
    assert notebook.stale() == {
        "b": ("cell 5, which defines `x`, was run again",),
        "c": ("cell 2, which defines `y`, is stale",),
    }
    notebook.run("b", "x", y="2")
    assert notebook.stale() == {}, "what it leaves is the same"


def test_files_settings_and_exceptions() -> None:
    notebook = Notebook()
    notebook.settings = {"spark.sql.ansi.enabled": "true"}
    notebook.run("a", files=("numbers",), x="1")
    notebook.run("b", "x", y="1")
    notebook.changed = {"numbers": "file numbers/1 changed"}
    assert notebook.stale() == {"a": ("file numbers/1 changed",), "b": ("cell 1, which defines `x`, is stale",)}
    notebook.changed = {}
    notebook.settings = {}
    assert set(notebook.stale().values()) == {("setting spark.sql.ansi.enabled changed",)}
    notebook.settings = {"spark.sql.ansi.enabled": "true"}
    notebook.run("c", raised=True)
    assert notebook.stale() == {}, "it has never had results"
    notebook.run("b", "x", raised=True)
    assert notebook.stale() == {"b": ("its last run raised an exception",)}


def test_a_name_that_is_taken_further_is_not_replaced() -> None:
    notebook = Notebook()
    notebook.run("load", df="all")
    notebook.run("show", "df")
    notebook.run("clean", "df", df="clean")
    notebook.run("narrow", "df", df="narrow")
    notebook.run("count", "df", n="4")
    assert notebook.stale() == {}
    notebook.run("load", df="all")
    assert notebook.stale() == {
        "clean": ("cell 6, which defines `df`, was run again",),
        "narrow": ("cell 6 has replaced `df`",),
        "count": ("cell 6 has replaced `df`",),
    }, "what it was taken further to is gone"
    notebook.run("clean", "df", df="clean")
    notebook.run("narrow", "df", df="narrow")
    assert notebook.stale() == {}
    notebook.run("other", df="other")
    assert notebook.stale()["show"] == ("cell 9 has replaced `df`",)


def test_functions_modules_and_what_no_cell_has_done() -> None:
    notebook = Notebook()
    notebook.run("a", f="function:1", m="module:1", x="1")
    notebook.run("b", "f", y="1")
    notebook.run("c", "m", y="1")
    notebook.run("d", "x", y="1")
    notebook.values.update(m="module:2", x="2")
    notebook.run("e", f="function:2")
    assert notebook.stale() == {
        "b": ("function f changed (cell 5)",),
        "c": ("module m was edited",),
        "d": ("what is no recorded cell has replaced `x`",),
    }
    del notebook.values["x"]
    assert "d" not in notebook.stale()


def test_stale_cells_follow_what_they_read_and_keep_their_order_else() -> None:
    notebook = Notebook()
    notebook.run("reader", x="0")
    notebook.run("maker", files=("data",), y="1")
    notebook.run("reader", "y", x="1")
    notebook.run("last", files=("data",))
    notebook.changed = {"data": "file data changed"}
    assert list(notebook.stale()) == ["maker", "reader", "last"]


def test_the_table_is_bounded() -> None:
    notebook = Notebook(most=3)
    for number in range(10):
        notebook.run(f"c{number}", files=(f"f{number}",), **{f"x{number}": "1"})
    assert [row.cell for row in notebook.records.rows()] == ["c7", "c8", "c9"]
    assert notebook.records.definer("x0") is None
    assert list(notebook.records._files) == ["f7", "f8", "f9"]
    assert list(notebook.records._definers) == ["x7", "x8", "x9"]
