"""Drawing columns of random values, and writing tables as other people's exports look."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

SEED = 20240611
FIRST = (  # noqa: SIM905 - a list would be a page long
    "Anna Ben Carla David Elif Fred Greta Hugo Ines Jonas Karin Liam Mona Nils Olga Paul Quinn Rosa Sven Tara Ugo Vera "
    "Will Xenia Yara Zoe"
).split()
LAST = (  # noqa: SIM905
    "Adler Baum Costa Diaz Evans Fischer Garcia Hansen Ito Jensen Keller Lopez Meyer Novak Olsen Petrov Quist Rossi "
    "Silva Tanaka Ueda Voss Weber Xu Young Zhang"
).split()


def generator(name: str) -> np.random.Generator:
    """A generator of its own for each group of tables, so that adding one leaves the others as they are."""
    return np.random.default_rng([SEED] + [ord(letter) for letter in name])


def pick(random: np.random.Generator, values: Sequence[Any], n: int, weights: Sequence[float] | None = None) -> Any:
    """Some of the values, as an array of objects."""
    shares = None if weights is None else np.array(weights, float) / np.sum(weights)
    return np.array(values, dtype=object)[random.choice(len(values), n, p=shares)]


def people(random: np.random.Generator, n: int) -> Any:
    """First and last names."""
    first = np.array(FIRST, dtype=object)[random.integers(0, len(FIRST), n)]
    return first + " " + np.array(LAST, dtype=object)[random.integers(0, len(LAST), n)]


def days(start: str, offsets: Any) -> Any:
    """Dates as texts: so many days after the start."""
    return (np.datetime64(start, "D") + offsets.astype("int64").astype("timedelta64[D]")).astype(str)


def times(start: str, seconds: Any) -> pd.DatetimeIndex:
    """UTC timestamps so many seconds after the start, which Spark reads as TIMESTAMP."""
    moments = np.datetime64(start, "s") + seconds.astype("int64").astype("timedelta64[s]")
    return pd.to_datetime(moments).tz_localize("UTC").as_unit("us")


def write_parquet(table: pd.DataFrame | pa.Table, folder: Path, parts: int = 4) -> None:
    """A folder of files as Spark names them."""
    folder.mkdir(parents=True, exist_ok=True)
    arrow = table if isinstance(table, pa.Table) else pa.Table.from_pandas(table, preserve_index=False)
    step = -(-arrow.num_rows // parts)
    for part in range(parts):
        pq.write_table(arrow.slice(part * step, step), folder / f"part-{part:05d}.snappy.parquet")


def write_csv(table: pd.DataFrame, path: Path) -> None:
    """A CSV file with a header."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(path, index=False)


def write_large_csv(table: pd.DataFrame, path: Path) -> None:
    """The same, written in a tenth of the time; the header is in quotes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pacsv.write_csv(pa.Table.from_pandas(table, preserve_index=False), path, pacsv.WriteOptions(quoting_style="needed"))


def write_json(table: pd.DataFrame, path: Path) -> None:
    """A file of JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table.to_json(path, orient="records", lines=True, date_format="iso")


def write_lines(lines: Sequence[str], path: Path) -> None:
    """A text file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
