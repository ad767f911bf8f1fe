"""A captured cell's body runs as IPython would run it."""

from __future__ import annotations

import asyncio
import traceback

import pytest
from IPython.core.interactiveshell import InteractiveShell

from flinkmagic.magics.cell import compile_body, is_blank


@pytest.fixture(scope="module")
def shell() -> InteractiveShell:
    return InteractiveShell.instance()


def test_variables_land_in_the_namespace_and_the_last_expression_is_the_value(shell) -> None:
    namespace: dict = {}
    body = compile_body(shell, "%%flinkgraph g", "a = 20\nb = a + 1\na + b")
    assert body.run(namespace) == 41
    assert (namespace["a"], namespace["b"]) == (20, 21)


def test_a_cell_that_ends_in_a_statement_has_no_value(shell) -> None:
    assert compile_body(shell, "%%flinkgraph g", "a = 1\n").run({}) is None


@pytest.mark.parametrize(
    ("source", "value"), [("6 * 7;", None), ("6 * 7  ;  # quiet", None), ("a = ';'\n6 * 7", 42), ("6 * 7 # ;", 42)]
)
def test_a_semicolon_at_the_end_silences_the_value(shell, source: str, value: object) -> None:
    assert compile_body(shell, "%%flinkgraph g", source).run({}) == value


def test_line_numbers_are_the_cell_s(shell) -> None:
    body = compile_body(shell, "%%flinkgraph g --run", "x = 1\n\nraise KeyError('here')\n")
    with pytest.raises(KeyError) as caught:
        body.run({})
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    # The magic's own line is the first of the cell.
    assert (last.filename, last.lineno, last.line) == (body.filename, 4, "raise KeyError('here')")


def test_ipython_syntax_works(shell) -> None:
    namespace: dict = {"get_ipython": lambda: shell}
    body = compile_body(shell, "%%flinkgraph g", "found = !echo one\nfound[0]")
    assert body.run(namespace) == "one"


def test_a_syntax_error_names_the_cell_s_line(shell) -> None:
    with pytest.raises(SyntaxError) as caught:
        compile_body(shell, "%%flinkgraph g", "a = 1\nb = = 2\n")
    assert caught.value.lineno == 3


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("x = 1\nawait thing()", 3),
        ("async for x in xs():\n    pass", 2),
        ("if True:\n    async with lock:\n        pass", 3),
        ("[await x for x in xs]", 2),
        ("[x async for x in xs]", 2),
        ("async def f():\n    await g()\n", None),
    ],
)
def test_the_line_that_awaits_at_the_top_level_is_known(shell, source: str, line: int | None) -> None:
    assert compile_body(shell, "%%flinkgraph g", source).awaits_at == line


def test_a_body_that_awaits_runs_on_the_loop_that_runs_it(shell) -> None:
    async def later(value):
        await asyncio.sleep(0)
        return value

    namespace: dict = {"later": later}
    body = compile_body(shell, "%%flinkgraph g", "a = await later(20)\nasync def f(): pass\na + await later(1)")
    assert asyncio.run(body.run_awaiting(namespace)) == 21
    assert namespace["a"] == 20


def test_a_value_is_shown_as_the_shell_is_set_to(shell, monkeypatch) -> None:
    assert compile_body(shell, "%%flinkgraph g", "a = 42").run({}) is None
    monkeypatch.setattr(shell, "ast_node_interactivity", "last_expr_or_assign")
    assert compile_body(shell, "%%flinkgraph g", "a = 42").run({}) == 42
    monkeypatch.setattr(shell, "ast_node_interactivity", "none")
    assert compile_body(shell, "%%flinkgraph g", "6 * 7").run({}) is None


def test_a_coroutine_function_may_await(shell) -> None:
    namespace: dict = {}
    compile_body(shell, "%%flinkgraph g", "async def f():\n    await g()\n").run(namespace)
    assert "f" in namespace


@pytest.mark.parametrize(
    ("body", "blank"),
    [("", True), ("\n  \n# only words\n", True), ("# words\nx = 1", False), ("pass", False)],
)
def test_blank(body: str, blank: bool) -> None:
    assert is_blank(body) is blank
