"""The costs of a job vertex: time, rows and bytes, added up over its tasks."""

from __future__ import annotations

from dataclasses import dataclass

from flinkmagic import amounts


@dataclass(frozen=True)
class VertexCost:
    """The costs of all tasks of one job vertex, or of a batch of a stream; an unknown value is None."""

    took_ms: float | None
    """From the first task's start to the last one's end; None of a stream's vertex, whose tasks do not end."""
    rows_in: int | None = None
    rows_out: int | None = None
    bytes_in: int | None = None
    bytes_out: int | None = None
    batch: int | None = None
    """The batch of a stream that the rows and bytes belong to; None where they are those of all tasks."""

    @property
    def took(self) -> str:
        """How long the tasks took, or the batch: ``"2.1 s"``, ``"batch 7"``."""
        return amounts.duration(self.took_ms) if self.batch is None else f"batch {self.batch}"

    def words(self) -> tuple[str, ...]:
        """Return time (or batch), rows and bytes in one line, then ever shorter versions of it."""
        took = self.took
        rows = _arrow(amounts.magnitude(self.rows_in), amounts.magnitude(self.rows_out))
        rows = f" · {rows} rows" if rows else ""
        data = _arrow(*(amounts.size(each) if each else "" for each in (self.bytes_in, self.bytes_out)))
        data = f" · {data}" if data else ""
        bare = rows.removesuffix(" rows")
        most = max((each for each in (self.bytes_in, self.bytes_out) if each), default=None)
        largest = f" · {amounts.size(most)}" if most else ""
        return tuple(dict.fromkeys((took + rows + data, took + bare + data, took + bare + largest, took + rows, took)))


def _arrow(before: str, after: str) -> str:
    return f"{before} → {after}" if before and after else before or after
