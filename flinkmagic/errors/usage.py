"""Wrong arguments, and names that do not exist: of magics, of functions and on the command line."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import get_close_matches

from flinkmagic.errors.base import FlinkMagicError, UserError

_WHERE_THERE_IS_NONE = {
    "graph": " No cell has defined one yet (%%flinkgraph NAME).",
    "result": " The job's sinks are writes; it keeps no results.",
    "retained result": " Nothing is retained.",
}


class UnknownNameError(UserError):
    """A name that nothing of the expected kind has.

    Parameters
    ----------
    kind : str
        What was asked for: a graph, a view, a variable.
    name : str
        The name.
    known : collection of str
        The existing names.
    is_listed : bool
        Whether the message lists them; variables are too many.
    """

    def __init__(self, kind: str, name: str, known: Collection[str], *, is_listed: bool = True) -> None:
        self.kind, self.name, self.known = kind, name, list(known)
        choices = f" There are: {', '.join(known)}." if known else _WHERE_THERE_IS_NONE.get(kind, "")
        near = get_close_matches(name, self.known, 1)
        meant = f" Did you mean {near[0]}?" if near else ""
        super().__init__(f"There is no {kind} named {name!r}.{choices if is_listed else ''}{meant}")


class AmbiguousSinkError(UserError):
    """A name that several sinks of a graph have.

    Parameters
    ----------
    name : str
        The name.
    graph : str
        The graph's.
    sinks : sequence of (str, str)
        The word that names each alone, and what it writes where.
    """

    def __init__(self, name: str, graph: str, sinks: Sequence[tuple[str, str]]) -> None:
        self.name, self.graph, self.sinks = name, graph, list(sinks)
        lines = [f"  {word}: {what}" for word, what in sinks]
        first = sinks[0][0]
        super().__init__(
            "\n".join([f"{name!r} fits {len(lines)} sinks of {graph}. Name one of them, such as {first}:", *lines])
        )


class InvalidValueError(UserError):
    """A value that an option or an argument, or a word in it, cannot have.

    Parameters
    ----------
    value : object
        The value.
    expected : str
        What it should be.
    name : str, optional
        What has the value: the option's or argument's name.
    """

    def __init__(self, value: object, expected: str, name: str | None = None) -> None:
        self.value, self.expected, self.name = value, expected, name
        super().__init__(
            f"{value!r} is not {expected}." if name is None else f"{name} must be {expected}, not {value!r}."
        )


class ReservedNameError(UserError):
    """A graph or a DataFrame under a name that is a word of `%flinkgraph`.

    Parameters
    ----------
    name : str
        The name.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"{name!r} is a word of the magic: %flinkgraph {name} turns the session mode {name}. Choose another name; "
            f"a DataFrame of this name can have a second one: frame = {name}"
        )


class NotAProgramError(UserError):
    """Something that is neither a captured program nor DataFrames was given to `compile`."""

    def __init__(self, value: object) -> None:
        self.value = value
        super().__init__(
            "compile() takes a captured program or a list of them, a DataFrame, a list of DataFrames or a dict of "
            f"them by name, not {type(value).__name__}."
        )


class NoGraphError(UserError):
    """All of a session's graphs were asked for, and there is none."""

    def __init__(self) -> None:
        super().__init__("No cell has defined a graph yet. Define one: %%flinkgraph NAME")


class UnnamedCheckpointError(UserError):
    """A cell without a name asks for checkpoints: it would be named by its number, which is another one elsewhere."""

    def __init__(self) -> None:
        super().__init__(
            "A cell with --checkpoint-dir needs a name: another kernel finds the job by the folder and the name, and "
            "counts cells in another way. Write: %%flinkgraph NAME --checkpoint-dir DIR"
        )


class MissingExtraError(UserError):
    """A command that needs packages of an extra that is not installed."""

    def __init__(self, extra: str, missing: list[str]) -> None:
        self.extra, self.missing = extra, missing
        super().__init__(f"Not installed: {', '.join(missing)}. Run: pip install 'flinkmagic[{extra}]'")


class DemoFailedError(UserError):
    """A cell of the demo's notebook raised."""

    def __init__(self, notebook: object, text: str) -> None:
        self.notebook = notebook
        super().__init__(f"A cell of the demo failed; the notebook up to that cell: {notebook}\n{text}")


class LayoutEngineNotFoundError(UserError):
    """Neither `dot` nor the pip-installed Graphviz is installed, so no picture can be laid out."""

    def __init__(self) -> None:
        super().__init__(
            "Pictures of graphs need Graphviz, and neither its command 'dot' nor the package 'pygraphviz' was found. "
            "Install one: apt install graphviz, brew install graphviz, or pip install pygraphviz"
        )


class LayoutFailedError(FlinkMagicError):
    """Graphviz could not lay a graph out."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"Graphviz could not lay out the graph: {reason}. Please file a bug with the graph's to_dot()")


class JobFailedError(UserError):
    """A job that a magic ran ended FAILED."""

    def __init__(self, name: str, causes: list[str]) -> None:
        self.name, self.causes = name, causes
        super().__init__("\n".join([f"The job {name!r} failed.", *causes]))


class CommandLineError(UserError):
    """A command whose words do not fit together."""

    def __init__(self, problem: str, remedy: str) -> None:
        self.problem, self.remedy = problem, remedy
        super().__init__(f"{problem}. {remedy}")


class JobRunningError(UserError):
    """A graph that was asked to run while it runs."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"{name!r} is running. Wait until it is over, or cancel it: %flinkcancel {name}")


class StaleRunStoppedError(UserError):
    """A cell that was executed again because it was stale, and raised.

    Parameters
    ----------
    ran : sequence of str
        The cells that were executed before it.
    failed : str
        The cell.
    left : sequence of str
        Those that are still stale.
    awaits : bool
        It was not executed, because it awaits at its top level.
    """

    def __init__(self, ran: Sequence[str], failed: str, left: Sequence[str], *, awaits: bool = False) -> None:
        self.ran, self.failed, self.left = list(ran), failed, list(left)
        done = f"Executed before it: {', '.join(ran)}." if ran else "No cell was executed before it."
        rest = f" Left: {', '.join(left)}." if left else " No other one is left."
        why, remedy = "raised the exception above", "Fix the cell and run it"
        if awaits:
            why, remedy = "awaits at its top level, which no cell can do inside another one", "Run the cell"
        super().__init__(f"{failed} {why}. {done}{rest} {remedy}, then: %flinkrun --stale --yes")


class NeverRunError(UserError):
    """A question about the runs of a graph that has none."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"{name!r} has not been run yet. Run it: %flinkrun {name}")
