"""Who is told of loops: light to import, unlike the loops themselves."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flinkmagic.session.iterations.iteration import Iteration

watchers: list[Callable[[Iteration], AbstractContextManager[object]]] = []
"""Called with each loop; what they return is entered while it runs, by its thread."""
