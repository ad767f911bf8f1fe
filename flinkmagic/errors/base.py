"""The two classes that all errors derive from."""

from __future__ import annotations


class FlinkMagicError(Exception):
    """Base of all errors of this package."""


class UserError(FlinkMagicError):
    """A mistake in what the user wrote; its text alone is shown, without a traceback."""

    def _render_traceback_(self) -> list[str]:
        """What IPython prints in place of a traceback (its hook for classes that render themselves).

        It goes to a terminal as it is, and may hold what a task's data put into an exception: control characters and
        those that change the direction of text are written out.
        """
        text = "".join(c if c == "\n" or c.isprintable() else f"⟨U+{ord(c):04X}⟩" for c in str(self).expandtabs(4))
        return [f"{type(self).__name__}: {text}"]
