"""A city's taxi trips (Parquet) and its zones (CSV)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from tests.benchmarks.notebooks.data.tables import generator, pick, times, write_csv, write_parquet

TRIPS, ZONES = 1_200_000, 265


def make(folder: Path) -> None:
    """Write the files."""
    r = generator("trips")
    boroughs = ["Manhattan", "Queens", "Brooklyn", "Bronx", "Staten Island", "EWR"]
    zones = pd.DataFrame(
        {
            "LocationID": np.arange(1, ZONES + 1),
            "Borough": pick(r, boroughs, ZONES, [26, 26, 23, 16, 8, 1]),
            "Zone": [f"Zone {number:03d}" for number in range(1, ZONES + 1)],
            "service_zone": pick(r, ["Yellow Zone", "Boro Zone", "Airports"], ZONES, [25, 70, 3]),
        }
    )
    write_csv(zones, folder / "trips" / "taxi_zone_lookup.csv")
    hours = r.choice(
        24,
        TRIPS,
        p=(weight := np.array([3, 2, 1, 1, 1, 1, 2, 4, 5, 5, 5, 5, 6, 6, 6, 6, 6, 7, 8, 7, 6, 6, 5, 4])) / weight.sum(),
    )
    begun = np.sort(r.integers(0, 90, TRIPS)) * 86400 + hours * 3600 + r.integers(0, 3600, TRIPS)
    distance = np.round(np.where(r.random(TRIPS) < 0.004, 0, r.gamma(1.4, 2.1, TRIPS)), 2)
    minutes = np.clip(distance * r.normal(4.6, 1.1, TRIPS) + r.gamma(2, 2, TRIPS), 0.3, None)
    minutes = np.where(r.random(TRIPS) < 0.002, 1439, minutes)
    fare = np.round(3 + 2.6 * distance + 0.45 * minutes, 1)
    fare = np.where(r.random(TRIPS) < 0.006, -fare, fare)
    payment = r.choice([1, 2, 3, 4], TRIPS, p=[0.74, 0.22, 0.03, 0.01])
    tip = np.round(np.where(payment == 1, np.abs(fare) * r.choice([0, 0.1, 0.15, 0.2, 0.25, 0.3], TRIPS), 0), 2)
    tolls = np.where(r.random(TRIPS) < 0.05, 6.55, 0)
    trips = pd.DataFrame(
        {
            "VendorID": r.choice([1, 2], TRIPS, p=[0.3, 0.7]).astype("int32"),
            "tpep_pickup_datetime": times("2024-01-01", begun),
            "tpep_dropoff_datetime": times("2024-01-01", begun + (minutes * 60).astype(int)),
            "passenger_count": np.where(r.random(TRIPS) < 0.03, np.nan, r.choice([1, 1, 1, 1, 2, 2, 3, 4, 0], TRIPS)),
            "trip_distance": distance,
            "RatecodeID": r.choice([1, 2, 3, 5], TRIPS, p=[0.93, 0.04, 0.01, 0.02]).astype("int32"),
            "PULocationID": (r.pareto(1.2, TRIPS) * 40).astype("int32") % ZONES + 1,
            "DOLocationID": (r.pareto(1.0, TRIPS) * 50).astype("int32") % ZONES + 1,
            "payment_type": payment.astype("int32"),
            "fare_amount": fare,
            "extra": r.choice([0, 1.0, 2.5], TRIPS),
            "tip_amount": tip,
            "tolls_amount": tolls,
            "total_amount": np.round(fare + tip + tolls + 1.3, 2),
        }
    )
    write_parquet(trips, folder / "trips" / "yellow_tripdata")
