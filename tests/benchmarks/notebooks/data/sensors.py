"""Sensors of a building: readings (CSV, one file a week) and the devices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from tests.benchmarks.notebooks.data.tables import days, generator, pick, write_csv, write_large_csv

WEEKS, DEVICES, STEP_S = 3, 150, 900


def make(folder: Path) -> None:
    """Write the files."""
    r = generator("sensors")
    devices = pd.DataFrame(
        {
            "device_id": [f"dev-{number:03d}" for number in range(DEVICES)],
            "room": [f"room {number % 40:02d}" for number in range(DEVICES)],
            "floor": np.arange(DEVICES) % 5,
            "model": pick(r, ["TH-100", "TH-200", "CO2-10"], DEVICES),
            "installed": days("2021-01-01", r.integers(0, 700, DEVICES)),
        }
    )
    write_csv(devices, folder / "sensors" / "devices.csv")
    offsets = r.normal(0, 1.5, DEVICES)
    for week in range(WEEKS):
        steps = 7 * 86400 // STEP_S
        n = steps * DEVICES
        device = np.tile(np.arange(DEVICES), steps)
        seconds = np.repeat(np.arange(steps) * STEP_S, DEVICES) + r.integers(0, 60, n)
        moment = pd.to_datetime(np.datetime64("2024-03-04", "s") + week * 7 * 86400 + seconds)
        temperature = 21 + offsets[device] + 3 * np.sin(seconds / 86400 * 2 * np.pi) + r.normal(0, 0.4, n)
        temperature = np.where(r.random(n) < 0.002, temperature + 15, temperature)
        readings = pd.DataFrame(
            {
                "device_id": np.array(devices.device_id, dtype=object)[device],
                "ts": moment.strftime("%Y-%m-%d %H:%M:%S"),
                "temperature": np.where(r.random(n) < 0.01, np.nan, np.round(temperature, 2)),
                "humidity": np.round(np.clip(45 + r.normal(0, 6, n), 5, 99), 1),
                "co2": (400 + r.gamma(3, 90, n)).astype(int),
                "battery": np.clip(100 - week * 8 - device % 7 - r.integers(0, 3, n), 0, 100),
                "status": pick(r, ["OK", "OK", "OK", "WARN", "ERR"], n, [60, 20, 15, 4, 1]),
            }
        )
        kept = readings[r.random(n) > 0.01]
        write_large_csv(kept, folder / "sensors" / "readings" / f"week_{week + 10}.csv")
