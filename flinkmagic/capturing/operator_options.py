"""Records what the user asks of the operators that compute a DataFrame."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flinkmagic.capturing.source_code.source_location import SourceLocation


@dataclass(frozen=True, kw_only=True)
class OperatorOptions:
    """What was asked of one DataFrame's operators; None means not asked for. See `with_options`."""

    name: str | None = None
    uid: str | None = None
    slot_sharing_group: str | None = None
    co_location_group: str | None = None
    chaining: str | None = None
    max_parallelism: int | None = None
    location: SourceLocation | None = None

    def over(self, earlier: OperatorOptions | None) -> OperatorOptions:
        """Return these options, completed by the earlier ones."""
        if earlier is None:
            return self
        return OperatorOptions(
            **{
                field.name: getattr(earlier, field.name)
                if getattr(self, field.name) is None
                else getattr(self, field.name)
                for field in fields(self)
            }
        )
