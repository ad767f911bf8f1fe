"""Loans: one wide CSV file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from tests.benchmarks.notebooks.data.tables import days, generator, pick, write_large_csv

STATES = ["CA", "TX", "NY", "FL", "IL", "NJ", "PA", "OH", "GA", "VA", "NC", "MI", "AZ", "MA", "MD", "WA", "CO", "MN"]
PURPOSES = (  # noqa: SIM905 - a list would be a page long
    "debt_consolidation credit_card home_improvement other major_purchase medical car small_business vacation moving"
).split()


def make(folder: Path) -> None:
    """Write the files."""
    r = generator("loans")
    n = 400_000
    grade = pick(r, list("ABCDEFG"), n, [20, 28, 25, 14, 8, 3, 2])
    g = np.array(["ABCDEFG".index(x) for x in grade])
    inc = np.round(np.exp(r.normal(11, 0.5, n)), 0)
    amt = np.clip(np.round(r.gamma(3, 5000, n) / 25) * 25, 1000, 40000)
    rate = np.round(5.5 + 2.6 * g + r.normal(0, 0.8, n), 2)
    term = r.choice([36, 60], n, p=[0.7, 0.3])
    fico = np.clip(np.round(760 - 14 * g + r.normal(0, 22, n)), 580, 850)
    pdft = 1 / (1 + np.exp(-(-3.2 + 0.35 * g + (term == 60) * 0.3)))
    df = pd.DataFrame(
        {
            "loan_id": np.arange(100000, 100000 + n),
            "issue_date": days("2015-01-01", r.integers(0, 2190, n)),
            "loan_amnt": amt.astype(int),
            "funded_amnt": amt.astype(int),
            "term_months": term,
            "int_rate": rate,
            "installment": np.round(amt * (rate / 1200) / (1 - (1 + rate / 1200) ** -term), 2),
            "grade": grade,
            "sub_grade": [f"{a}{b}" for a, b in zip(grade, r.integers(1, 6, n), strict=True)],
            "emp_length": pick(
                r,
                ["< 1 year", "1 year", "2 years", "3 years", "5 years", "10+ years", "n/a"],
                n,
                [8, 7, 9, 8, 20, 40, 8],
            ),
            "home_ownership": pick(r, ["MORTGAGE", "RENT", "OWN", "ANY"], n, [49, 39, 11.5, 0.5]),
            "annual_inc": np.where(r.random(n) < 0.01, np.nan, inc),
            "verification_status": pick(r, ["Verified", "Source Verified", "Not Verified"], n),
            "loan_status": np.where(
                r.random(n) < pdft, "Charged Off", pick(r, ["Fully Paid", "Current", "Late"], n, [60, 36, 4])
            ),
            "purpose": pick(
                r,
                PURPOSES,
                n,
                [55, 22, 7, 6, 3, 2, 2, 1, 1, 1],
            ),
            "addr_state": pick(
                r,
                STATES,
                n,
                [15, 9, 8, 7, 4, 4, 3, 3, 3, 3, 3, 3, 2, 2, 2, 2, 2, 2],
            ),
            "dti": np.where(r.random(n) < 0.02, np.nan, np.round(np.clip(r.normal(18, 8, n), 0, 60), 2)),
            "delinq_2yrs": r.poisson(0.3, n),
            "fico": fico.astype(int),
            "inq_last_6mths": r.poisson(0.6, n),
            "open_acc": r.poisson(11, n),
            "pub_rec": r.poisson(0.2, n),
            "revol_bal": np.round(np.exp(r.normal(9, 1, n))).astype(int),
            "revol_util": np.where(r.random(n) < 0.03, np.nan, np.round(np.clip(r.normal(50, 24, n), 0, 120), 1)),
            "total_acc": r.poisson(24, n),
            "mths_since_delinq": np.where(r.random(n) < 0.5, np.nan, r.integers(0, 120, n)),
            "application_type": pick(r, ["Individual", "Joint App"], n, [93, 7]),
            "desc": pick(r, [None, None, None, "refinance", "pay off cards", "new roof", "wedding"], n),
        }
    )
    write_large_csv(df, folder / "loans" / "loans.csv")
