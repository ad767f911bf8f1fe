"""A telephone company: customers and their monthly usage (CSV), support calls (JSON)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from tests.benchmarks.notebooks.data.tables import generator, pick, write_json, write_large_csv

CUSTOMERS, MONTHS, CALLS = 30_000, 9, 45_000


def make(folder: Path) -> None:
    """Write the files."""
    r = generator("telecom")
    contract = pick(r, ["Month-to-month", "One year", "Two year"], CUSTOMERS, [55, 21, 24])
    tenure = r.integers(1, 73, CUSTOMERS)
    charge = np.round(r.uniform(18, 118, CUSTOMERS), 2)
    risk = -2.6 + 1.7 * (contract == "Month-to-month") - 0.02 * tenure + 0.012 * charge
    customers = pd.DataFrame(
        {
            "customerID": [f"C{number:06d}" for number in range(CUSTOMERS)],
            "gender": pick(r, ["Female", "Male"], CUSTOMERS),
            "SeniorCitizen": r.choice([0, 1], CUSTOMERS, p=[0.84, 0.16]),
            "Partner": pick(r, ["Yes", "No"], CUSTOMERS),
            "tenure": tenure,
            "InternetService": pick(r, ["DSL", "Fiber optic", "No"], CUSTOMERS, [34, 44, 22]),
            "Contract": contract,
            "PaymentMethod": pick(
                r, ["Electronic check", "Mailed check", "Bank transfer", "Credit card"], CUSTOMERS, [34, 23, 22, 21]
            ),
            "MonthlyCharges": charge,
            "TotalCharges": np.where(tenure == 1, " ", np.char.mod("%.2f", charge * tenure)),
            "Churn": np.where(r.random(CUSTOMERS) < 1 / (1 + np.exp(-risk)), "Yes", "No"),
        }
    )
    write_large_csv(customers, folder / "telecom" / "customers.csv")
    n = CUSTOMERS * MONTHS
    usage = pd.DataFrame(
        {
            "customerID": np.repeat(np.array(customers.customerID, dtype=object), MONTHS),
            "month": np.tile([f"2024-{month:02d}" for month in range(1, MONTHS + 1)], CUSTOMERS),
            "minutes": r.gamma(2, 110, n).astype(int),
            "sms": r.poisson(25, n),
            "data_mb": np.round(r.gamma(1.5, 2500, n), 1),
            "dropped_calls": r.poisson(0.8, n),
        }
    )
    write_large_csv(usage, folder / "telecom" / "usage.csv")
    calls = pd.DataFrame(
        {
            "customerID": [f"C{number:06d}" for number in r.integers(0, CUSTOMERS, CALLS)],
            "topic": pick(r, ["billing", "outage", "contract", "device"], CALLS),
            "minutes": r.integers(1, 45, CALLS),
            "solved": r.random(CALLS) < 0.8,
        }
    )
    write_json(calls, folder / "telecom" / "support_calls.json")
