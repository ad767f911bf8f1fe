"""The deliveries of a company's branches: each month another table, in the form that the branch exports."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from tests.benchmarks.notebooks.data.tables import (
    days,
    generator,
    pick,
    times,
    write_json,
    write_large_csv,
    write_parquet,
)

ROWS = 260_000


def make(folder: Path) -> None:
    """Write the files."""
    r = generator("branches")
    home = folder / "branches"
    for number, city in enumerate(["berlin", "lyon", "porto", "ghent"]):
        invoices = pd.DataFrame(
            {
                "invoice": np.arange(ROWS) + number * 10**7,
                "customer": r.integers(1, 30_000, ROWS),
                "date": days("2024-01-01", r.integers(0, 180, ROWS)),
                "net": np.round(np.exp(r.normal(4, 1, ROWS)), 2),
                "vat": r.choice([7, 19], ROWS),
                "clerk": pick(r, [f"clerk{k}" for k in range(40)], ROWS),
                "remark": pick(r, ["", "", "paid late", "reminder sent", "disputed"], ROWS),
            }
        )
        write_large_csv(invoices, home / f"invoices_{city}.csv")
    for city in ("oslo", "turin", "graz"):
        moves = pd.DataFrame(
            {
                "sku": [f"A{k:05d}" for k in r.integers(0, 9000, ROWS // 3)],
                "warehouse": pick(r, ["north", "south", "harbour"], ROWS // 3),
                "moved": days("2024-01-01", r.integers(0, 180, ROWS // 3)),
                "quantity": r.integers(-50, 60, ROWS // 3),
            }
        )
        write_json(moves, home / f"stock_{city}.json")
    for city in ("malmo", "zagreb", "cork", "basel", "tartu"):
        n = ROWS * 3
        shifts = pd.DataFrame(
            {
                "employee": r.integers(1, 4000, n),
                "begun": times("2024-01-01", r.integers(0, 180 * 86400, n)),
                "minutes": r.integers(30, 600, n),
                "machine": r.integers(1, 200, n).astype("int32"),
                "output": r.gamma(2, 40, n).astype("int32"),
                "shift": pick(r, ["early", "late", "night"], n),
            }
        )
        write_parquet(shifts, home / f"shifts_{city}", 2)
