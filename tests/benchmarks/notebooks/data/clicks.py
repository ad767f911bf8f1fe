"""What visitors of a shop click: events with nested fields (JSON, a file a day), users with their test group (CSV)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd

from tests.benchmarks.notebooks.data.tables import days, generator, pick, write_csv, write_lines

DAYS, EVENTS_A_DAY, USERS = 7, 24_000, 12_000
KINDS = ["page_view", "search", "product_view", "add_to_cart", "checkout", "purchase"]


def make(folder: Path) -> None:
    """Write the files."""
    r = generator("clicks")
    groups = pick(r, ["control", "treatment"], USERS)
    users = pd.DataFrame(
        {
            "user_id": np.arange(1, USERS + 1),
            "country": pick(r, ["DE", "FR", "US", "GB", "ES"], USERS, [4, 3, 6, 3, 2]),
            "signup": days("2022-01-01", r.integers(0, 800, USERS)),
            "group": groups,
        }
    )
    write_csv(users, folder / "clicks" / "users.csv")
    for day in range(DAYS):
        n = EVENTS_A_DAY
        who = (r.pareto(1.2, n) * 1500).astype(int) % USERS
        # A visitor comes at a few hours of the day, so that there are sessions.
        seconds = ((who * 7919 + r.integers(0, 3, n) * 21600) % 82000) + r.integers(0, 2400, n)
        moments = pd.to_datetime(np.datetime64("2024-05-06", "s") + day * 86400 + seconds).strftime(
            "%Y-%m-%dT%H:%M:%SZ"
        )
        lift = np.where(groups[who] == "treatment", 1.02, 1.0)
        kinds = np.searchsorted(np.array([0.45, 0.6, 0.82, 0.92, 0.96]), r.random(n) * lift).clip(0, 5)
        devices = pick(r, ["mobile", "desktop", "tablet"], n, [60, 33, 7])
        browsers = pick(r, ["Chrome", "Safari", "Firefox", "Edge"], n, [60, 22, 10, 8])
        sources = pick(r, [None, "google", "newsletter", "ads", "partner"], n, [40, 30, 10, 15, 5])
        products, prices, sizes = r.integers(1, 800, (n, 3)), np.round(r.gamma(2, 18, (n, 3)), 2), r.integers(1, 4, n)
        lines = []
        for i in range(n):
            event = {
                "event_id": f"{day}-{i}",
                "ts": moments[i],
                "user": {"id": int(who[i]) + 1, "device": devices[i], "browser": browsers[i]},
                "type": KINDS[kinds[i]],
                "page": f"/p/{int(products[i, 0])}",
            }
            if sources[i]:
                event["campaign"] = {"source": sources[i]}
            if kinds[i] >= 3:
                event["items"] = [
                    {"sku": f"S{int(products[i, k]):04d}", "price": float(prices[i, k]), "qty": int(sizes[i])}
                    for k in range(sizes[i])
                ]
            lines.append(json.dumps(event))
        write_lines(lines, folder / "clicks" / "events" / f"2024-05-{day + 6:02d}.json")
