"""Wrong arguments, and names that there are not: of magics, of functions and on the command line."""

from __future__ import annotations

from difflib import get_close_matches

from flinkmagic.errors.base import FlinkMagicError, UserError


def _meant(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, 1)
    return f" Did you mean {near[0]}?" if near else ""


class InvalidNameError(UserError):
    """A graph's name that cannot be a variable."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"{name!r} cannot name a graph: the name becomes a variable, so it must be a Python identifier "
            "and no keyword, such as `delays`."
        )


class InvalidValueError(UserError):
    """A value that an option, an argument or a word of it cannot have.

    Parameters
    ----------
    value : object
        The value.
    expected : str
        What it should be.
    name : str, optional
        Of what: the option's or argument's name.
    """

    def __init__(self, value: object, expected: str, name: str | None = None) -> None:
        self.value, self.expected, self.name = value, expected, name
        super().__init__(
            f"{value!r} is not {expected}." if name is None else f"{name} must be {expected}, not {value!r}."
        )


class NotAProgramError(UserError):
    """Something that is neither a captured program nor DataFrames was given to `compile`."""

    def __init__(self, value: object) -> None:
        self.value = value
        super().__init__(
            "compile() takes what capture() gave or a list of such, a DataFrame, a list of DataFrames or a dict of "
            f"them by name, not {type(value).__name__}."
        )


class UnknownRetainedError(UserError):
    """A result that is not retained."""

    def __init__(self, name: str, known: list[str]) -> None:
        self.name, self.known = name, known
        choices = f"There are: {', '.join(known)}." if known else "Nothing is retained."
        super().__init__(f"Nothing is retained under the name {name!r}. {choices}")


class UnknownGraphError(UserError):
    """A name under which no compiled graph is known."""

    def __init__(self, name: str, known: list[str]) -> None:
        self.name, self.known = name, known
        choices = f"Known: {', '.join(known)}." if known else "No cell has defined one yet (%%flinkgraph NAME)."
        super().__init__(f"There is no graph named {name!r}. {choices}{_meant(name, known)}")


class NoGraphError(UserError):
    """All of a session's graphs were asked for, and there is none."""

    def __init__(self) -> None:
        super().__init__("No cell has defined a graph yet. Define one: %%flinkgraph NAME")


class UnknownResultError(UserError):
    """A result that a job does not have."""

    def __init__(self, name: str, known: list[str]) -> None:
        self.name, self.known = name, known
        choices = f"Its results: {', '.join(known)}." if known else "Its sinks are writes; it keeps no results."
        super().__init__(f"The job has no result named {name!r}. {choices}")


class MissingExtraError(UserError):
    """A command that needs packages of an extra that is not installed."""

    def __init__(self, extra: str, missing: list[str]) -> None:
        self.extra, self.missing = extra, missing
        super().__init__(f"Not installed: {', '.join(missing)}. Run: pip install 'flinkmagic[{extra}]'")


class DemoFailedError(UserError):
    """A cell of the demo's notebook raised."""

    def __init__(self, notebook: object, text: str) -> None:
        self.notebook = notebook
        super().__init__(f"A cell of the demo failed; the notebook as far as it came: {notebook}\n{text}")


class LayoutEngineNotFoundError(UserError):
    """Neither `dot` nor the pip-installed Graphviz is there, so no picture can be laid out."""

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


class UnknownVariableError(UserError):
    """A name that is not bound in the user's namespace."""

    def __init__(self, name: str, known: list[str] | None = None) -> None:
        self.name = name
        super().__init__(f"There is no variable named {name!r}.{_meant(name, known or [])}")


class UsageError(UserError):
    """A command whose words do not fit together."""

    def __init__(self, problem: str, remedy: str) -> None:
        self.problem, self.remedy = problem, remedy
        super().__init__(f"{problem}. {remedy}")


class JobRunningError(UserError):
    """A graph that was asked to run while it runs."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"{name!r} is running. Wait until it is over, or cancel it: %flinkcancel {name}")


class NeverRunError(UserError):
    """A question about the runs of a graph that has none."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"{name!r} has not been run yet. Run it: %flinkrun {name}")


class UnknownViewError(UserError):
    """A graph that is asked for under a name that none has."""

    def __init__(self, kind: str, known: tuple[str, ...]) -> None:
        self.kind, self.known = kind, known
        super().__init__(f"There is no view {kind!r}. The views: {', '.join(known)}.")


class UnknownFormatError(UserError):
    """A file whose suffix names no format."""

    def __init__(self, path: str, known: tuple[str, ...]) -> None:
        self.path, self.known = path, known
        super().__init__(f"{path!r} ends in no format that a graph can be written in: {', '.join(known)}.")
