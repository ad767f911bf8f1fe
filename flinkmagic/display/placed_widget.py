"""A widget that is shown in the place of a picture, which is what a saved notebook keeps."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from flinkmagic.display import printable


def static(*names: str) -> str:
    """Return files of ``static/`` as one."""
    folder = Path(__file__).with_name("static")
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in names)


class PlacedWidget(anywidget.AnyWidget):
    """A widget that covers the bundle of an output as long as it is open (``static/places.js``)."""

    _place = traitlets.Unicode().tag(sync=True)

    def __init__(self, **traits: Any) -> None:
        super().__init__(_place=f"flinkmagic-place-{uuid.uuid4().hex}", **traits)

    @property
    def place(self) -> str:
        """The class of the elements in which the widget is shown."""
        return str(self._place)

    def open(self) -> None:
        """Open the channel to the front end, so that clicks reach the kernel while it is busy; ipywidgets calls this.

        JupyterLab sends clicks to a subshell, a thread of the kernel that is free. ipykernel 7.4 forwards them to the
        shell that wrote to the widget last: for a view that is updated all the time that is the busy one, and Cancel
        would arrive when there is nothing left to cancel. So the channel is told to leave the choice to the front end.
        Forgetting who wrote after each message is too late for a click that arrives while one is sent: 1 in 100.
        """
        super().open()
        if hasattr(self.comm, "_reply_subshell_for"):
            self.comm._reply_subshell_for = lambda _data, front_ends_choice: front_ends_choice

    def in_place_of(self, bundle: Mapping[str, Any]) -> dict[str, Any]:
        """Return `bundle` with its HTML marked as the place where this widget is shown as long as it is open.

        A notebook is saved without the states of its widgets: an output that holds a widget reopens as an error once
        the kernel is gone. One that holds this bundle reopens with the bundle's picture. Front ends that make a
        widget's model only for an output that holds the widget (JupyterLab and Notebook make it immediately) keep
        showing the picture.
        """
        html = bundle.get("text/html") or f"<pre>{printable.xml(bundle['text/plain'])}</pre>"
        return {**bundle, "text/html": f'<div class="{self._place}">{html}</div>'}
