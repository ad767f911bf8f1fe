"""Streams: what the machine costs a batch."""

from __future__ import annotations

import argparse
from typing import Any

from tests.benchmarks import _batches, _watched


def main(arguments: list[str]) -> dict[str, Any]:
    """Figures: those of `_watched.measure` and of `_batches.measure`."""
    import flinkmagic

    parser = argparse.ArgumentParser(prog="streaming", description=__doc__)
    parser.add_argument("--pairs", type=int, default=21)
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args(arguments)
    config = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}
    spark = flinkmagic.local_session("streaming", "local[2]", config)
    spark.sparkContext.setLogLevel("ERROR")
    try:
        return {**_watched.measure(spark, options.pairs), **_batches.measure(spark, options.pairs, options.rows)}
    finally:
        spark.stop()
