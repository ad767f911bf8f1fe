"""An e-commerce shop: customers (CSV), products (JSON), orders and their items (Parquet)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from tests.benchmarks.notebooks.data.tables import (
    days,
    generator,
    people,
    pick,
    times,
    write_csv,
    write_json,
    write_parquet,
)


def make(folder: Path) -> None:
    """Write the files."""
    r = generator("ecom")
    nc, npr, no, ni = 80_000, 4_000, 450_000, 1_200_000
    cust_country = pick(r, ["DE", "FR", "US", "GB", "ES", "IT", "NL", "SE"], nc, [22, 15, 25, 12, 9, 8, 6, 3])
    nm = people(r, nc)
    customers = pd.DataFrame(
        {
            "customer_id": np.arange(1, nc + 1),
            "name": nm,
            "email": [
                f"{a.lower().replace(' ', '.')}{i}@{'example.com' if i % 3 else 'mail.example.org'}"
                for i, a in enumerate(nm)
            ],
            "signup_date": days("2019-01-01", r.integers(0, 1800, nc)),
            "country": cust_country,
            "segment": pick(r, ["consumer", "small business", "corporate", ""], nc, [70, 18, 10, 2]),
        }
    )
    write_csv(customers, folder / "ecom" / "customers.csv")
    cats = ["electronics", "home", "garden", "toys", "fashion", "sports", "books", "beauty", "grocery", "office"]
    cat = pick(r, cats, npr)
    price = np.round(np.exp(r.normal(3.2, 0.9, npr)), 2)
    products = pd.DataFrame(
        {
            "product_id": np.arange(1, npr + 1),
            "sku": [f"{c[:3].upper()}-{i:05d}" for i, c in enumerate(cat)],
            "title": [f"{c} item {i}" for i, c in enumerate(cat)],
            "category": cat,
            "list_price": price,
            "cost": np.round(price * r.uniform(0.4, 0.8, npr), 2),
            "weight_g": r.integers(50, 9000, npr),
        }
    )
    write_json(products, folder / "ecom" / "products.json")
    secs = np.sort(r.integers(0, 730 * 86400, no))
    cust = np.minimum((r.pareto(1.3, no) * 4000).astype(int) % nc + 1, nc)
    orders = pd.DataFrame(
        {
            "order_id": np.arange(1, no + 1),
            "customer_id": cust,
            "order_ts": times("2022-01-01", secs),
            "status": pick(r, ["completed", "shipped", "cancelled", "returned", "pending"], no, [70, 12, 8, 6, 4]),
            "channel": pick(r, ["web", "app", "store", "phone"], no, [50, 35, 12, 3]),
            "coupon": pick(r, [None, "WELCOME10", "SPRING15", "VIP20", "freeship"], no, [75, 10, 7, 4, 4]),
        }
    )
    write_parquet(orders, folder / "ecom" / "orders", 4)
    pid = np.minimum((r.pareto(1.1, ni) * 200).astype(int) % npr + 1, npr)
    items = pd.DataFrame(
        {
            "order_id": r.integers(1, no + 1, ni),
            "product_id": pid,
            "quantity": r.choice([1, 1, 1, 1, 2, 2, 3, 5], ni).astype("int32"),
            "unit_price": price[pid - 1],
            "discount_pct": r.choice([0, 0, 0, 0, 5, 10, 15, 25], ni).astype("int32"),
        }
    )
    write_parquet(items, folder / "ecom" / "order_items", 4)
