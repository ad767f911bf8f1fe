"""The two classes that all errors derive from."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    # In `typing` from Python 3.11 on. Only type checkers need it, and they bring it along.
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Any:
        return lambda decorated: decorated


@dataclass_transform(eq_default=False, field_specifiers=(field,))
class FlinkMagicError(Exception):
    """Base of all errors of this package: dataclasses, whose fields complete the text of the class.

    A subclass becomes a dataclass by itself. With a decorator on each, one that was forgotten would go unnoticed: the
    class would ignore its own fields. An error is equal to itself only, as Python's own are; if its fields were
    compared, it would have no hash.
    """

    template: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        dataclass(eq=False)(cls)

    def __str__(self) -> str:
        return self.template.format_map(vars(self))


class UserError(FlinkMagicError):
    """A mistake in what the user wrote; its text alone is shown, without a traceback."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython prints instead of a traceback (its hook for classes that render themselves).

        It goes to a terminal unchanged, and may hold what a task's data put into an exception: control characters and
        characters that change the direction of text are written out.
        """
        told = "\n".join([str(self), *getattr(self, "__notes__", ())])
        return [f"{type(self).__name__}: {lines_written_out(told.expandtabs(4))}"]


def lines_written_out(text: str) -> str:
    """Return a text in which characters that cannot be printed, other than line ends, are written ``⟨U+202E⟩``."""
    return "".join(char if char == "\n" or char.isprintable() else f"⟨U+{ord(char):04X}⟩" for char in text)


class InvariantViolatedError(FlinkMagicError):
    """Something that must always be true of our own state is not: a mistake of ours."""

    rule: str

    template = "It does not hold that {rule}. This is a bug of flinkmagic: please report it."


def is_from_signal(error: BaseException) -> bool:
    """Return whether a handler of the user's for a signal has raised an error: whatever was running had no part in it.

    Python runs handlers between any two instructions of the main thread, so also while that waits for us.
    """
    handlers = [signal.getsignal(number) for number in signal.valid_signals()]
    codes = {getattr(handler, "__code__", None) for handler in handlers}
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in codes:
            return True
        trace = trace.tb_next
    return False


def first_line(cause: BaseException) -> str:
    """Return the class of an error, and the first line of its text."""
    reason = str(cause).strip().splitlines()
    return f"{type(cause).__name__}: {reason[0]}" if reason else type(cause).__name__


def add_note(error: BaseException, note: str) -> None:
    """Add a line to the text of an error (PEP 678; IPython shows it on Python 3.10, too)."""
    error.__notes__ = [*getattr(error, "__notes__", ()), note]  # type: ignore[attr-defined]
