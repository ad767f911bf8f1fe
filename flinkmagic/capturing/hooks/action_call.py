"""Hand over an action, or a read of files, as a whole call, for the session to carry out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

if TYPE_CHECKING:
    from pyspark.sql import DataFrameReader

    from flinkmagic.capturing.program import Program
    from flinkmagic.capturing.source_code.source_location import SourceLocation


@dataclass(frozen=True)
class ActionCall:
    """A call of the user's that runs on the rows of a DataFrame: the outermost one, on the cell's own thread.

    Attributes
    ----------
    method : str
        The method's name.
    df : DataFrame
        What it was called on.
    args, kwargs : sequence, mapping
        Its arguments, without the DataFrame.
    original : callable
        PySpark's own function: ``original(df, *args, **kwargs)`` is the plain call.
    location : SourceLocation
        The user's line.
    text : str
        The call as it was written, shortened.
    program : callable
        Returns what the cell has done so far, without its writes.
    """

    method: str
    df: DataFrame
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    original: Callable[..., Any] = field(repr=False)
    location: SourceLocation
    text: str
    program: Callable[[], Program] = field(repr=False)

    def run_plainly(self) -> Any:
        """Make the call as it is."""
        return self.original(self.df, *self.args, **self.kwargs)


@dataclass(frozen=True)
class ReadCall:
    """A call of the user's that makes a DataFrame of files: the outermost one, on the cell's own thread.

    Attributes
    ----------
    method : str
        The method's name.
    reader : DataFrameReader
        What it was called on.
    args, kwargs : sequence, mapping
        Its arguments, without the reader.
    original : callable
        PySpark's own function: ``original(reader, *args, **kwargs)`` is the plain call.
    """

    method: str
    reader: DataFrameReader
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    original: Callable[..., Any] = field(repr=False)

    def run_plainly(self) -> DataFrame:
        """Make the call as it is."""
        made: DataFrame = self.original(self.reader, *self.args, **self.kwargs)
        return made
