"""Lists who is told of loops; it is cheap to import, unlike the loops themselves."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flinkmagic.session.iterations.iteration import Iteration

watchers: list[Callable[[Iteration], AbstractContextManager[object]]] = []
"""Called with each loop. Its thread enters what they return while it runs."""
