"""Wrong arguments, and names that do not exist: of magics, of functions and on the command line."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field
from difflib import get_close_matches

from flinkmagic.errors.base import FlinkMagicError, UserError

_WHERE_THERE_IS_NONE = {
    "graph": " No cell has defined one yet (%%flinkgraph NAME).",
    "result": " The job's sinks are writes; it keeps no results.",
    "retained result": " Nothing is retained.",
}


class UnknownNameError(UserError):
    """A name that nothing of the expected kind has."""

    kind: str
    """What was asked for: a graph, a view, a variable."""
    name: str
    known: Collection[str]
    is_listed: bool = field(default=True, kw_only=True)
    """Whether the message lists them; variables are too many."""

    def __str__(self) -> str:
        choices = f" There are: {', '.join(self.known)}." if self.known else _WHERE_THERE_IS_NONE.get(self.kind, "")
        near = get_close_matches(self.name, self.known, 1)
        meant = f" Did you mean {near[0]}?" if near else ""
        return f"There is no {self.kind} named {self.name!r}.{choices if self.is_listed else ''}{meant}"


class AmbiguousSinkError(UserError):
    """A name that several sinks of a graph have."""

    name: str
    graph: str
    sinks: Sequence[tuple[str, str]]
    """The word that names each alone, and what it writes where."""

    def __str__(self) -> str:
        lines = [f"  {word}: {what}" for word, what in self.sinks]
        first = self.sinks[0][0]
        return "\n".join(
            [f"{self.name!r} fits {len(lines)} sinks of {self.graph}. Name one of them, such as {first}:", *lines]
        )


class InvalidValueError(UserError):
    """A value that an option or an argument, or a word in it, cannot have."""

    value: object
    """Or its class, if the message is not to show it."""
    expected: str
    """What it should be."""
    name: str | None = None
    """What has the value: the option's or argument's name."""

    def __str__(self) -> str:
        given = self.value.__name__ if isinstance(self.value, type) else repr(self.value)
        return (
            f"{given} is not {self.expected}."
            if self.name is None
            else f"{self.name} must be {self.expected}, not {given}."
        )


class NoSuchRunError(UserError):
    """The number of a run that a graph does not have."""

    name: str
    number: int
    numbers: Sequence[int]
    """Of the runs that it has."""

    def __str__(self) -> str:
        known = f"its runs are {', '.join(map(str, self.numbers))}" if self.numbers else "it has not run"
        return f"{self.name} has no run {self.number}: {known} (%flinkjobs {self.name})."


class NothingToCompareError(UserError):
    """A comparison of the runs of a graph that has fewer than two."""

    name: str
    runs: int

    def __str__(self) -> str:
        done = "has run only once" if self.runs else "has not run"
        return f"{self.name} {done}: two runs can be compared. Run it: %flinkrun {self.name}"


class ReservedNameError(UserError):
    """A graph or a DataFrame under a name that is a word of `%flinkgraph`."""

    name: str

    template = (
        "{name!r} is a word of the magic: %flinkgraph {name} turns the session mode {name}. Choose another name; "
        "a DataFrame of this name can have a second one: frame = {name}"
    )


class NotAProgramError(UserError):
    """Something that is neither a captured program nor DataFrames was given to `compile`."""

    value: object

    def __str__(self) -> str:
        return (
            "compile() takes a captured program or a list of them, a DataFrame, a list of DataFrames or a dict of "
            f"them by name, not {type(self.value).__name__}."
        )


class NoGraphError(UserError):
    """All of a session's graphs were asked for, and there is none."""

    template = "No cell has defined a graph yet. Define one: %%flinkgraph NAME"


class UnnamedCheckpointError(UserError):
    """A cell without a name asks for checkpoints: it would be named by its number, which is another one elsewhere."""

    template = (
        "A cell with --checkpoint-dir needs a name: another kernel finds the job by the folder and the name, and "
        "counts cells in another way. Write: %%flinkgraph NAME --checkpoint-dir DIR"
    )


class MissingExtraError(UserError):
    """A command that needs packages of an extra that is not installed."""

    extra: str
    missing: list[str]

    def __str__(self) -> str:
        return f"Not installed: {', '.join(self.missing)}. Run: pip install 'flinkmagic[{self.extra}]'"


class DemoFailedError(UserError):
    """A cell of the demo's notebook raised."""

    notebook: object
    text: str

    template = (
        "A cell of the demo failed. Open {notebook}, which is saved up to that cell; kernel.log beside it has what "
        "Spark logged.\n{text}"
    )


class LayoutEngineNotFoundError(UserError):
    """Neither `dot` nor the pip-installed Graphviz is installed, so no picture can be laid out."""

    template = (
        "Pictures of graphs need Graphviz, and neither its command 'dot' nor the package 'pygraphviz' was found. "
        "Install one: apt install graphviz, brew install graphviz, or pip install pygraphviz"
    )


class LayoutFailedError(FlinkMagicError):
    """Graphviz could not lay a graph out."""

    reason: str

    template = "Graphviz could not lay out the graph: {reason}. Please file a bug with the graph's to_dot()"


class JobFailedError(UserError):
    """A job that a magic ran ended FAILED."""

    name: str
    causes: list[str]

    def __str__(self) -> str:
        remedy = "Correct the line, or what it reads, and run its cell again."
        return "\n".join([f"The job {self.name!r} failed.", *self.causes, remedy])


class FormatWithoutViewError(UserError):
    """The format of a picture was given, and not which one."""

    views: Sequence[str]

    def __str__(self) -> str:
        return f"--format needs --view. Add --view with one of: {', '.join(self.views)}."


class NoTopologyFileError(UserError):
    """Nothing to compile."""

    template = "There is no topology in what was given. Name a JSON file, or a folder that holds some."


class SeveralTopologiesError(UserError):
    """More topologies than can be printed."""

    number: int

    template = "{number} topologies cannot be printed together. Add --out DIR."


class UnreadableFileError(UserError):
    """A topology file that the system does not let us read."""

    path: object
    reason: str | None

    template = "{path} cannot be read: {reason}. Name a topology file."


class JobRunningError(UserError):
    """A graph that was asked to run while it runs."""

    name: str

    template = "{name!r} is running. Wait until it is over, or cancel it: %flinkcancel {name}"


class StaleRunStoppedError(UserError):
    """A cell that was executed again because it was stale, and raised."""

    ran: Sequence[str]
    """The cells that were executed before it."""
    failed: str
    """The cell that raised."""
    left: Sequence[str]
    """Those that are still stale."""
    awaits: bool = field(default=False, kw_only=True)
    """It was not executed, because it awaits at its top level."""

    def __str__(self) -> str:
        done = f"Executed before it: {', '.join(self.ran)}." if self.ran else "No cell was executed before it."
        rest = f" Left: {', '.join(self.left)}." if self.left else " No other one is left."
        why, remedy = "raised the exception above", "Fix the cell and run it"
        if self.awaits:
            why, remedy = "awaits at its top level, which no cell can do inside another one", "Run the cell"
        return f"{self.failed} {why}. {done}{rest} {remedy}, then: %flinkrun --stale --yes"


class NeverRunError(UserError):
    """A question about the runs of a graph that has none."""

    name: str

    template = "{name!r} has not been run yet. Run it: %flinkrun {name}"
