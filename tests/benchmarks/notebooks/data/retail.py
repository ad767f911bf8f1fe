"""A retailer's star schema: sales (Parquet), stores, items, calendar (CSV), returns (JSON)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from tests.benchmarks.notebooks.data.tables import days, generator, pick, write_csv, write_json, write_parquet


def make(folder: Path) -> None:
    """Write the files."""
    r = generator("retail")
    n = 2_500_000
    ns, nit = 240, 8000
    stores = pd.DataFrame(
        {
            "store_id": np.arange(1, ns + 1),
            "store_name": [f"Store {i:03d}" for i in range(1, ns + 1)],
            "region": pick(r, ["North", "South", "East", "West"], ns),
            "city": pick(r, ["Berlin", "Hamburg", "Munich", "Cologne", "Leipzig", "Essen"], ns),
            "sqm": r.integers(200, 4000, ns),
            "opened": days("2005-01-01", r.integers(0, 6000, ns)),
        }
    )
    write_csv(stores, folder / "retail" / "stores.csv")
    price = np.round(np.exp(r.normal(2.4, 0.8, nit)), 2)
    items = pd.DataFrame(
        {
            "item_id": np.arange(1, nit + 1),
            "item": [f"Item {i}" for i in range(1, nit + 1)],
            "category": pick(
                r,
                ["Food", "Drinks", "Household", "Cosmetics", "Clothing", "Electronics", "Toys"],
                nit,
                [30, 15, 15, 10, 12, 10, 8],
            ),
            "brand": [f"Brand{b}" for b in r.integers(1, 120, nit)],
            "unit_cost": np.round(price * r.uniform(0.5, 0.85, nit), 2),
        }
    )
    write_csv(items, folder / "retail" / "items.csv")
    dates = pd.date_range("2023-01-01", "2024-12-31")
    write_csv(
        pd.DataFrame(
            {
                "d": dates.strftime("%Y-%m-%d"),
                "year": dates.year,
                "quarter": dates.quarter,
                "month": dates.month,
                "dow": dates.dayofweek,
                "is_holiday": r.choice([0, 1], len(dates), p=[0.97, 0.03]),
            }
        ),
        folder / "retail" / "calendar.csv",
    )
    it = np.minimum((r.pareto(1.1, n) * 300).astype(int) % nit, nit - 1)
    q = r.choice([1, 1, 1, 2, 3, 4], n).astype("int32")
    sd = np.sort(r.integers(0, len(dates), n))
    sales = pd.DataFrame(
        {
            "sale_id": np.arange(1, n + 1),
            "store_id": r.integers(1, ns + 1, n),
            "item_id": it + 1,
            "sale_date": np.array(dates.date)[sd],
            "qty": q,
            "amount": np.round(price[it] * q * r.choice([1, 1, 1, 0.9, 0.8], n), 2),
            "member_id": np.where(r.random(n) < 0.4, np.nan, r.integers(1, 90_000, n)),
        }
    )
    t = pa.Table.from_pandas(sales, preserve_index=False)
    t = t.set_column(5, "amount", pa.array(sales.amount).cast(pa.decimal128(10, 2), safe=False))
    t = t.set_column(6, "member_id", pa.array(sales.member_id, from_pandas=True).cast(pa.int64()))
    write_parquet(t, folder / "retail" / "sales", 4)
    k = 120_000
    rs = np.sort(r.choice(n, k, replace=False)) + 1
    write_json(
        pd.DataFrame(
            {
                "return_id": np.arange(k),
                "sale_id": rs,
                "reason": pick(r, ["damaged", "wrong size", "changed mind", "late"], k),
                "days_after": r.integers(1, 30, k),
            }
        ),
        folder / "retail" / "returns.json",
    )
