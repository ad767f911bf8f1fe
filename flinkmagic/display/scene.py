"""A drawing as a tree of SVG elements: one source for the static pictures and for the widget.

Static pictures are the tree as text; the widget gets it as JSON and makes each element itself, so that no string is
ever parsed as markup in the browser. All text passes through `lines_visible` on its way out. Only the elements and
attributes named here exist: no script, no link, no event handler, no reference to anything outside.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from flinkmagic.display.printable import lines_visible, xml
from flinkmagic.errors.base import InvariantViolatedError

TAGS = frozenset({"svg", "g", "rect", "path", "text", "tspan", "title", "circle", "line"})
_ATTRIBUTES = """
    class d x y x1 y1 x2 y2 cx cy r rx width height viewBox fill stroke transform opacity role xmlns aria-label
    stroke-width stroke-dasharray stroke-linecap stroke-linejoin fill-rule font-family font-size font-weight
    font-style text-anchor letter-spacing data-id data-vertex data-state data-source data-target
    data-part data-across data-pitch
"""
ATTRIBUTES = frozenset(_ATTRIBUTES.split())


@dataclass
class Element:
    """One SVG element; text content is escaped when it is written."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Element | str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.tag not in TAGS or not ATTRIBUTES.issuperset(self.attributes):
            raise InvariantViolatedError(f"<{self.tag} {' '.join(self.attributes)}> is drawable")

    def add(self, *children: Element | str | None) -> Element:
        """Append children, leaving out None; return self."""
        self.children.extend(child for child in children if child is not None)
        return self

    def to_svg(self) -> str:
        """Return the element as SVG text."""
        parts: list[str] = []
        self._write(parts)
        return "".join(parts)

    def _write(self, parts: list[str]) -> None:
        attributes = "".join(f' {name}="{xml(lines_visible(value))}"' for name, value in self.attributes.items())
        if not self.children:
            parts.append(f"<{self.tag}{attributes}/>")
            return
        parts.append(f"<{self.tag}{attributes}>")
        for child in self.children:
            if isinstance(child, str):
                parts.append(xml(lines_visible(child)))
            else:
                child._write(parts)
        parts.append(f"</{self.tag}>")

    def to_json(self) -> list[Any]:
        """Return the element as ``[tag, attributes, children]``, for the widget."""
        children = [lines_visible(child) if isinstance(child, str) else child.to_json() for child in self.children]
        return [self.tag, {name: lines_visible(value) for name, value in self.attributes.items()}, children]


def number(value: float) -> str:
    """Return a coordinate with at most one decimal."""
    return f"{value:.1f}".removesuffix(".0")


def element(tag: str, *children: Element | str | None, **attributes: Any) -> Element:
    """Make an element: ``stroke_width=2`` becomes ``stroke-width="2"``, ``class_`` becomes ``class``."""
    named = {
        name.removesuffix("_").replace("_", "-"): number(value) if isinstance(value, int | float) else value
        for name, value in attributes.items()
        if value is not None
    }
    return Element(tag, named).add(*children)


def box(x: float, y: float, width: float, height: float, **attributes: Any) -> Element:
    """Make a rectangle."""
    return element("rect", x=x, y=y, width=width, height=height, **attributes)


def moved(x: float, y: float, *children: Element | None, **attributes: Any) -> Element:
    """Make a group whose origin is at (x, y)."""
    return element("g", *children, transform=f"translate({number(x)} {number(y)})", **attributes)


def tooltip(text: str) -> Element:
    """Make a <title>, which a browser shows when the pointer rests on the enclosing group."""
    return element("title", text)
