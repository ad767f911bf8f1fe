"""Runs the body of a `%%flinkgraph` cell as IPython runs a cell.

`InteractiveShell.run_cell` cannot be nested: an inner cell that fails would leave the outer one successful (seen on
IPython 8.39 and 9.18), and history and `Out` would count it twice.
"""

from __future__ import annotations

import ast
import inspect
import itertools
from dataclasses import dataclass
from types import CodeType
from typing import TYPE_CHECKING, Any

from IPython.core.displayhook import DisplayHook

from flinkmagic.magics.cell_recorder import running_again

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


@dataclass(frozen=True)
class CompiledBody:
    """A cell's body, compiled."""

    filename: str
    """The name under which the compile cache stores the source; frames of the cell's code have it."""
    source: str
    """The whole cell as it was typed, with a comment in place of the magic's line, so that its line numbers are the
    cell's.
    """
    statements: CodeType | None
    """All but a last expression."""
    last_expression: CodeType | None
    """The last statement if it is an expression; its value is the cell's."""
    is_silenced: bool = False
    """A semicolon ends the cell: it shows no value."""
    awaits_at: int | None = None
    """The line that awaits outside a function."""

    def run(self, namespace: dict[str, Any]) -> Any:
        """Execute the body in the user's namespace and return the last expression's value."""
        # IPython drops this frame and those above it from the traceback, as it does with its own.
        __tracebackhide__ = "__ipython_bottom__"
        if self.statements is not None:
            exec(self.statements, namespace)
        value = eval(self.last_expression, namespace) if self.last_expression is not None else None
        return None if self.is_silenced else value

    async def run_awaiting(self, namespace: dict[str, Any]) -> Any:
        """Execute a body that awaits at its top level, on the event loop that runs this coroutine."""
        __tracebackhide__ = "__ipython_bottom__"
        value = None
        for code in (self.statements, self.last_expression):
            if code is not None:
                value = eval(code, namespace)
                if code.co_flags & inspect.CO_COROUTINE:
                    value = await value
        return None if self.is_silenced or self.last_expression is None else value


def compile_body(shell: InteractiveShell, magic_line: str, body: str, number: int | None = None) -> CompiledBody:
    """Compile a cell's body under a name by which tracebacks and provenance can find it.

    Parameters
    ----------
    shell : InteractiveShell
        Its input transformers, AST transformers and compiler (with the session's ``__future__`` flags) are used.
    magic_line : str
        The line that called the magic; it keeps its place as a comment.
    number : int, optional
        The cell's number; by default that of the cell that is running.

    Raises
    ------
    SyntaxError
        As for any cell.
    """
    raw = f"# {magic_line}\n{body}"
    source = _transformed(shell, raw)
    filename = shell.compile.cache(source, cell_number(shell) if number is None else number, raw_code=raw)
    tree = shell.transform_ast(shell.compile.ast_parse(source, filename=filename))
    awaits_at = _first_await(tree)
    _show_assignment(shell, tree)
    last: CodeType | None = None
    flag = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT if shell.autoawait else 0
    with shell.compile.extra_flags(flag):
        if tree.body and isinstance(tree.body[-1], ast.Expr) and shell.ast_node_interactivity != "none":
            last = shell.compile(ast.Expression(tree.body.pop().value), filename, "eval")
        statements = shell.compile(tree, filename, "exec") if tree.body else None
    is_silenced = DisplayHook.semicolon_at_end_of_expression(body)
    return CompiledBody(filename, raw, statements, last, is_silenced, awaits_at)


def _transformed(shell: InteractiveShell, raw: str) -> str:
    """Return Python for a cell whose first line is a comment; another cell magic may begin below such lines."""
    lines = raw.splitlines(keepends=True)
    above = list(itertools.takewhile(lambda line: not line.strip() or line.startswith("#"), lines))
    rest = "".join(lines[len(above) :])
    transformed: str = shell.transform_cell(rest if rest.startswith("%%") else raw)
    return "".join(above) + transformed if rest.startswith("%%") else transformed


def _show_assignment(shell: InteractiveShell, tree: ast.Module) -> None:
    """If the shell shows what a last line assigns, add the name below that line, as IPython does."""
    if shell.ast_node_interactivity != "last_expr_or_assign" or not tree.body:
        return
    last = tree.body[-1]
    targets: list[ast.expr] = []
    if isinstance(last, ast.Assign):
        targets = last.targets
    elif isinstance(last, (ast.AugAssign, ast.AnnAssign)):
        targets = [last.target]
    if len(targets) == 1 and isinstance(targets[0], ast.Name):
        shown = ast.Expr(ast.Name(targets[0].id, ast.Load()))
        tree.body.append(ast.fix_missing_locations(ast.copy_location(shown, last)))


def cell_number(shell: InteractiveShell) -> int:
    """Return the number of the cell that is running, as its prompt shows it.

    `execution_count` is that number up to IPython 8 and the next one from 9 on, which increments it before the cell
    runs (seen on 8.39 and 9.18); the history holds the running cell in both.
    """
    again = running_again()
    return again.number if again is not None else len(shell.history_manager.input_hist_parsed) - 1


def name_of_cell(number: int) -> str:
    """Return the name of the graph of a cell that gives none, under which the magics know what its lines ran, too."""
    return f"cell_{number}"


def cell_labels(shell: InteractiveShell) -> dict[str, str]:
    """Return the labels of the cells that have run, by the file names that their frames carry.

    `CachingCompiler` keeps them for tracebacks and exposes them nowhere else (seen on IPython 8.39 and 9.18).
    """
    return {filename: f"cell {number}" for filename, number in shell.compile._filename_map.items()}


def is_blank(body: str) -> bool:
    """Return whether a body holds nothing but blank lines and comments."""
    return all(not line.strip() or line.lstrip().startswith("#") for line in body.splitlines())


def _first_await(tree: ast.Module) -> int | None:
    """Return the first line that awaits outside a function."""
    found: list[int] = []
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            continue
        if isinstance(node, (ast.Await, ast.AsyncFor, ast.AsyncWith)):
            found.append(node.lineno)
        elif isinstance(node, ast.comprehension) and node.is_async:
            found.append(node.target.lineno)
        waiting.extend(ast.iter_child_nodes(node))
    return min(found, default=None)
