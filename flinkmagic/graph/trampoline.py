"""Runs functions that call each other deeper than Python's stack: plans and graphs may be chains of many thousands."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeAlias, TypeVar

Made = TypeVar("Made")

Steps: TypeAlias = Generator["Steps[Any]", Any, Made]
"""A function that yields the calls it makes of others of its kind and is sent what they return; see `run`."""


def run(steps: Steps[Made]) -> Made:
    """Run a function of `Steps` to its end; its calls are stacked here."""
    stack: list[Steps[Any]] = [steps]
    returned: Any = None
    while stack:
        try:
            stack.append(stack[-1].send(returned))
            returned = None
        except StopIteration as end:
            stack.pop()
            returned = end.value
    made: Made = returned
    return made
