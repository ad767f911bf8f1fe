"""The card of a cell in a live notebook."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import traitlets

from flinkmagic.display import printable
from flinkmagic.display.card import CardLine
from flinkmagic.display.placed_widget import PlacedWidget, static


class CardWidget(PlacedWidget):
    """A card as a widget: lines with progress and Cancel, which open to the view of their job.

    Parameters
    ----------
    on_open, on_cancel : callable
        Called with the id of a line that is to be opened, or whose job is to be cancelled.
    """

    _esm = static("dom.js", "card.js", "places.js")
    _css = static("view.css", "card.css")

    _rows: traitlets.List[dict[str, Any]] = traitlets.List().tag(sync=True)

    def __init__(self, on_open: Callable[[int], object], on_cancel: Callable[[int], object]) -> None:
        self._calls = {"open": on_open, "cancel": on_cancel}
        super().__init__()
        self.on_msg(self._clicked)

    def show(self, lines: Sequence[CardLine], can_open: Sequence[bool], places: Sequence[str]) -> None:
        """Show lines; of each say whether it can be opened, and in which place its view is if it was."""
        self._rows = [
            {
                "id": number,
                "state": line.status,
                "glyph": line.glyph,
                "call": printable.visible(line.call),
                "facts": line.facts,
                "done": line.done / max(line.to_do, 1) if line.status == "RUNNING" else None,
                "can_open": opens,
                "place": place,
            }
            for number, (line, opens, place) in enumerate(zip(lines, can_open, places, strict=True))
        ]

    def _clicked(self, _widget: object, content: Mapping[str, Any], _buffers: object) -> None:
        call, row = self._calls.get(str(content.get("type"))), content.get("row")
        if call is not None and isinstance(row, int):
            call(row)
