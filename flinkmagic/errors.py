"""Every error that flinkmagic raises on purpose: class, parameters and text in one place.

A text says what happened, where, and what to do next. A class that a user's mistake can raise derives from
`UserError`: the magics print its text alone, without a traceback of ours.
"""

from __future__ import annotations


class FlinkMagicError(Exception):
    """Base of all errors of this package."""


class UserError(FlinkMagicError):
    """A mistake in what the user wrote; its text alone is shown, without a traceback."""

    def _render_traceback_(self) -> list[str]:
        """What IPython prints in place of a traceback (its hook for classes that render themselves)."""
        return [f"{type(self).__name__}: {self}"]


class JavaNotFoundError(UserError):
    """No Java runtime that Spark can run on."""

    def __init__(self, oldest: int, seen: list[str]) -> None:
        self.oldest, self.seen = oldest, seen
        looked = f" Looked at: {', '.join(seen)}." if seen else ""
        super().__init__(
            f"Spark needs Java {oldest} or newer, and none was found.{looked} "
            "Install one, or run: pip install 'flinkmagic[java]'"
        )


class TopLevelAwaitError(UserError):
    """A captured cell that awaits outside of a function."""

    def __init__(self, line: int) -> None:
        self.line = line
        super().__init__(
            f"Line {line} awaits at the top level of a %%flinkgraph cell, which runs as synchronous code. "
            "Await in a cell of its own and use the result here."
        )


class EmptyCellError(UserError):
    """A `%%flinkgraph` cell without a statement."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"The cell of %%flinkgraph {name} is empty. Define DataFrames, or write some, below the magic's line."
        )


class NoResultError(UserError):
    """A program that neither writes nor binds a DataFrame to a name."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"{name!r} has nothing to compute: no DataFrame is written and none is bound to a name. "
            "Write one (df.write.parquet(...)), or give one a name (late = flights.where(...))."
        )


class InvalidNameError(UserError):
    """A graph's name that cannot be a variable."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"{name!r} cannot name a graph: the name becomes a variable, so it must be a Python identifier "
            "and no keyword, such as `delays`."
        )


class InvalidParallelismError(UserError):
    """A parallelism that is no whole number of at least 1."""

    def __init__(self, value: object) -> None:
        self.value = value
        super().__init__(f"The parallelism must be a whole number of at least 1, not {value!r}.")


class UnsupportedModeError(UserError):
    """A runtime mode that `compile` does not offer."""

    def __init__(self, mode: object) -> None:
        self.mode = mode
        super().__init__(f"mode={mode!r} is not offered; DataFrame programs are compiled with mode='batch'.")


class NotAProgramError(UserError):
    """Something that is neither a captured program nor DataFrames was given to `compile`."""

    def __init__(self, value: object) -> None:
        self.value = value
        super().__init__(
            "compile() takes what capture() gave, a DataFrame, a list of DataFrames or a dict of them by name, "
            f"not {type(value).__name__}."
        )


class UnknownGraphError(UserError):
    """A name under which no compiled graph is known."""

    def __init__(self, name: str, known: list[str]) -> None:
        self.name, self.known = name, known
        choices = (
            f"Known: {', '.join(known)}." if known else "No cell has defined one yet (%%flinkgraph NAME)."
        )
        super().__init__(f"There is no graph named {name!r}. {choices}")


class UnknownResultError(UserError):
    """A result that a job does not have."""

    def __init__(self, name: str, known: list[str]) -> None:
        self.name, self.known = name, known
        choices = (
            f"Its results: {', '.join(known)}." if known else "Its sinks are writes; it keeps no results."
        )
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
