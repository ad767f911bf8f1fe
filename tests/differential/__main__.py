"""`python -m tests.differential [NAME ...]`: run the notebooks whose names contain one of these.

They run in a session of their own. Printed is a line of JSON for each: its name, what differs, how long it took.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from flinkmagic.local_spark import local_session
from tests.differential.cells_file import all_notebooks
from tests.differential.runner import WAYS, Runner
from tests.quick_driver import quicken

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def session(folder: str) -> SparkSession:
    """The running session, or one whose files lie in a folder."""
    spark = local_session(
        "differential",
        master="local[2]",
        config={
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.buffer.pageSize": "1m",
            "spark.python.daemon.module": "tests.quick_daemon",
            "spark.executorEnv.PYTHONPATH": str(Path(__file__).parents[2]),
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
            "spark.driver.extraJavaOptions": f"-Dderby.system.home={folder}/derby",
        },
    )
    spark.sparkContext.setLogLevel("OFF")
    quicken(spark)
    return spark


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--ways", nargs="+", choices=WAYS[1:], help="these, whatever a notebook is for")
    options = parser.parse_args(arguments)
    chosen = [one for one in all_notebooks() if not options.names or any(name in one.name for name in options.names)]
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        (home := Path(folder) / "ways").mkdir()
        with Runner(lambda: session(folder), home) as runner:
            for notebook in chosen:
                start = time.monotonic()
                differences = list(
                    runner.differences(notebook, options.ways or notebook.ways, is_each_run=options.ways is not None)
                )
                bad += bool(differences)
                told = {"name": notebook.name, "differences": differences}
                print(json.dumps({**told, "seconds": round(time.monotonic() - start, 2)}), flush=True)
        session(folder).stop()
    print(json.dumps({"notebooks": len(chosen), "different": bad, "actions": runner.actions}), flush=True)
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
