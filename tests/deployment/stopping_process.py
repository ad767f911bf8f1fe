"""Cells that stop their session and start another; prints what each left as JSON. For `test_stopped_session`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell

import flinkmagic

CELL = """\
%%flinkgraph stopping OPTIONS
spark.range(3).write.parquet(folder + "/a")
before = spark.range(3)
LINE
spark = session()
spark.range(5).write.parquet(folder + "/b")
rows = [spark.read.parquet(folder + "/" + name).count() for name in "ab"]
seen = spark.sparkContext.accumulator(0)
spark.sparkContext.parallelize([1, 2]).foreach(lambda n: seen.add(n))
told = [*rows, spark.range(4).groupBy().sum("id").first()[0], seen.value]
"""
NEXT = """\
%%flinkgraph next --run
spark.range(7).write.parquet(folder + "/c")
"""
STOPPED = """\
%%flinkgraph stopped --run
late = spark.range(2).groupBy().count()
spark.sparkContext._jsc.stop()
"""


def session():
    made = flinkmagic.local_session(
        "stopping", "local[2]", {"spark.ui.enabled": "false", "spark.driver.memory": "600m"}
    )
    made.sparkContext.setLogLevel("OFF")
    return made


def run(folder: Path, line: str, options: str) -> list[object]:
    shell = InteractiveShell.instance()
    shell.run_line_magic("reload_ext", "flinkmagic")
    shell.user_ns.pop("told", None)
    shell.user_ns.update(session=session, spark=session(), folder=str(folder))
    errors = []
    for source in (CELL.replace("LINE", line).replace("OPTIONS", options), NEXT):
        errors.append(type(shell.run_cell(source).error_in_exec).__name__)
        if options == "":
            break
    if options:
        errors.append(type(shell.run_cell(STOPPED).error_in_exec).__name__)
        shell.user_ns["spark"].stop()
        assert session().range(9).count() == 9  # nothing has started a context of its own
    files = sorted(path.name for path in folder.iterdir())
    return [errors, shell.user_ns.get("told"), files]


def main(home: Path) -> None:
    told = {}
    for line, options in (("spark.stop()", "--run"), ("with spark.sparkContext: pass", "--run"), ("spark.stop()", "")):
        (folder := home / str(len(told))).mkdir()
        told[f"{line} {options}"] = run(folder, line, options)
    print()
    print(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
