"""The tables of a data warehouse (Parquet), for questions that are asked once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from tests.benchmarks.notebooks.data.tables import days, generator, people, pick, times, write_parquet


def make(folder: Path) -> None:
    """Write the files."""
    r = generator("warehouse")
    home = folder / "warehouse"
    n = 900_000
    for name in ("web_sales", "store_sales", "catalog_sales"):
        table = {
            "order_id": np.arange(n),
            "customer_id": r.integers(1, 60_000, n),
            "item_id": (r.pareto(1.1, n) * 200).astype(int) % 6000,
            "sold": times("2023-01-01", r.integers(0, 365 * 86400, n)),
            "cents": r.gamma(2, 2100, n).astype(int),
            "units": r.choice([1, 1, 1, 2, 3], n),
        }
        write_parquet(pd.DataFrame(table), home / name, 3)
    n = 1_200_000
    tickets = {
        "ticket": np.arange(n),
        "agent": r.integers(1, 300, n),
        "opened": times("2023-01-01", r.integers(0, 365 * 86400, n)),
        "minutes": r.gamma(1.5, 60, n).astype(int),
        "priority": pick(r, ["low", "normal", "high", "urgent"], n, [3, 5, 2, 0.5]),
    }
    write_parquet(pd.DataFrame(tickets), home / "tickets", 2)
    payments = {
        "payment": np.arange(n),
        "account": r.integers(1, 90_000, n),
        "booked": days("2023-01-01", r.integers(0, 365, n)),
        "cents": r.integers(-80_000, 90_000, n),
        "kind": pick(r, ["card", "transfer", "debit", "cash"], n),
    }
    write_parquet(pd.DataFrame(payments), home / "payments", 2)
    visits = {
        "visitor": r.integers(1, 200_000, n),
        "page": r.integers(1, 5000, n),
        "at": times("2023-06-01", r.integers(0, 30 * 86400, n)),
        "ms": r.gamma(2, 900, n).astype(int),
    }
    write_parquet(pd.DataFrame(visits), home / "visits", 2)
    shipments = {
        "shipment": np.arange(n),
        "carrier": r.integers(1, 40, n),
        "sent": days("2023-01-01", r.integers(0, 365, n)),
        "days": r.poisson(3, n),
        "grams": r.gamma(2, 1200, n).astype(int),
        "zip": [f"{k:05d}" for k in r.integers(1000, 99999, n)],
    }
    write_parquet(pd.DataFrame(shipments), home / "shipments", 2)
    m = 150_000
    staff = {
        "employee": np.arange(m),
        "name": people(r, m),
        "manager": (np.arange(m) // 8),
        "department": r.integers(1, 60, m),
        "salary": r.integers(28_000, 140_000, m),
        "hired": days("2005-01-01", r.integers(0, 6500, m)),
    }
    write_parquet(pd.DataFrame(staff), home / "staff", 2)
    reviews = {
        "review": np.arange(m),
        "item": r.integers(1, 6000, m),
        "stars": r.choice([1, 2, 3, 4, 5], m, p=[0.08, 0.07, 0.15, 0.3, 0.4]),
        "text": pick(r, ["good value", "broken on arrival", "as described", "never again", "love it", "too small"], m),
    }
    write_parquet(pd.DataFrame(reviews), home / "reviews", 2)
    n = 1_500_000
    meters = {
        "meter": r.integers(1, 3000, n),
        "read": times("2023-01-01", r.integers(0, 365 * 86400, n)),
        "watt_hours": r.gamma(2, 250, n).astype(int),
        "phase": r.integers(1, 4, n),
    }
    write_parquet(pd.DataFrame(meters), home / "meters", 2)
