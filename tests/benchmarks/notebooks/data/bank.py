"""A bank's transactions (CSV) with what is wrong in such exports; accounts, merchants, countries."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from tests.benchmarks.notebooks.data.tables import (
    days,
    generator,
    people,
    pick,
    write_csv,
    write_json,
    write_large_csv,
    write_parquet,
)


def make(folder: Path) -> None:
    """Write the files."""
    r = generator("bank")
    n, na = 700_000, 80_000
    cc = ["DE", "FR", "US", "GB", "ES", "IT", "NL", "SE", "PL", "AT", "CH", "BE", "DK", "NO", "FI", "PT"]
    currencies = "EUR EUR USD GBP EUR EUR EUR SEK PLN EUR CHF EUR DKK NOK EUR EUR".split()  # noqa: SIM905
    countries = (  # noqa: SIM905 - a list would be a page long
        "Germany,France,United States,United Kingdom,Spain,Italy,Netherlands,Sweden,Poland,Austria,Switzerland,Belgium,"
        "Denmark,Norway,Finland,Portugal"
    ).split(",")
    write_csv(
        pd.DataFrame(
            {
                "code": cc,
                "country": countries,
                "currency": currencies,
            }
        ),
        folder / "bank" / "countries.csv",
    )
    acc = pd.DataFrame(
        {
            "account_id": [f"AC{i:07d}" for i in range(na)],
            "owner": people(r, na),
            "opened": days("2010-01-01", r.integers(0, 4500, na)),
            "kind": pick(r, ["checking", "savings", "credit"], na, [6, 3, 1]),
            "closed": pick(r, [None, "2023-06-30"], na, [97, 3]),
        }
    )
    write_json(acc, folder / "bank" / "accounts.json")
    mer = pd.DataFrame(
        {
            "merchant_id": np.arange(1, 8001),
            "merchant": [f"Merchant {i}" for i in range(1, 8001)],
            "mcc": r.integers(1000, 9999, 8000).astype("int32"),
        }
    )
    write_parquet(mer, folder / "bank" / "merchants", 1)
    amt = np.round(np.exp(r.normal(3.3, 1.2, n)), 2)
    x = r.random(n)
    amt_s = np.where(
        x < 0.004, "N/A", np.where(x < 0.008, "", np.char.mod("%.2f", np.where(x < 0.02, -amt, amt)))
    ).astype(object)
    tid = np.arange(1, n + 1)
    dup = r.random(n) < 0.005
    tid = np.where(dup, np.maximum(tid - 1, 1), tid)
    a = r.integers(0, int(na * 1.003), n)
    date = days("2023-01-01", r.integers(0, 365, n)).astype(object)
    x = r.random(n)
    date = np.where(x < 0.003, "", np.where(x < 0.005, "2029-01-01", np.where(x < 0.007, "31.12.2023", date)))
    cur_c = r.integers(0, len(cc), n)
    x = r.random(n)
    country = np.array(cc, dtype=object)[cur_c]
    country = np.where(
        x < 0.005, "XX", np.where(x < 0.015, np.char.lower(country.astype(str)), np.where(x < 0.02, "", country))
    )
    cur = np.array(currencies, dtype=object)[cur_c]
    cur = np.where(r.random(n) < 0.01, "EURO", cur)
    tx = pd.DataFrame(
        {
            "tx_id": tid,
            "account_id": [f"AC{i:07d}" for i in a],
            "merchant_id": r.integers(1, 8050, n),
            "tx_date": date,
            "tx_time": [f"{h:02d}:{m:02d}" for h, m in zip(r.integers(0, 24, n), r.integers(0, 60, n), strict=True)],
            "amount": amt_s,
            "currency": cur,
            "country": country,
            "type": pick(
                r, ["purchase", "Purchase", "refund", "withdrawal", "transfer", "??"], n, [60, 4, 6, 15, 14.5, 0.5]
            ),
            "email": [f"user{i}@example.com" if i % 97 else f"user{i}(at)example" for i in a],
            "balance_after": np.round(r.normal(2500, 1800, n), 2),
        }
    )
    write_large_csv(tx, folder / "bank" / "transactions.csv")
