"""Records which rows of another DataFrame a DataFrame has: those selected of a split, or sent to a side output."""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True)
class Selected:
    """Some of the rows of a DataFrame."""

    names: tuple[str, ...] = ()
    """Of a split: the names that were selected."""
    tag: str | None = None
    """The side output that they go to. Without names and a tag they are the main output."""

    @classmethod
    def from_text(cls, text: str) -> Selected:
        """Return what `to_text` has made a text of."""
        names, tag = json.loads(text)
        return cls(tuple(names), tag)

    def to_text(self) -> str:
        """Return it as a text, for the columns of a plan to carry."""
        return json.dumps([self.names, self.tag])


@dataclass(frozen=True)
class Selection:
    """A DataFrame that has some of the rows of another, its parent; see `Program.selections`."""

    parent: int
    """The parent's frame number."""
    selected: Selected
