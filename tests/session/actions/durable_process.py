"""A kernel of its own with a durable store: runs cells, and says what they answered. Started by `test_durable_answers`.

It reads from its standard input, as JSON: the store's folder, the master, whether rows are asked for and not answers,
and for each cell its name, its settings, and its lines.
"""

from __future__ import annotations

import json
import sys

from flinkmagic.local_spark import local_session
from flinkmagic.options import JobOptions
from flinkmagic.reuse import durable_rows, durable_store, retained_answers
from tests.session.actions.conftest import Session


def begun(spark, store, cell):
    """Return a session with a cell's settings, in which its first lines have run."""
    for name, value in cell["settings"].items():
        spark.conf.set(name, value)
    session = Session(spark, options=JobOptions(retain="session", durable=store.folder))
    session.knows_schemas = True
    session.namespace["__name__"] = "__main__"
    if cell["first"]:
        session.plain(cell["first"])
    return session


def run(spark, store, cell):
    """Run a cell that defines `answer`; return what it and plain Spark answer, and whose answer it is."""
    session = begun(spark, store, cell)
    answer, text = session.cell(cell["source"]), ""
    report = session.report
    if cell["method"] == "toPandas":
        text = f"{dict(answer.dtypes)} {answer.to_dict()}"
    told = {
        "answer": text or repr(answer),
        "is_other_s": report.is_from_other_kernel,
        "saved": report.saved_seconds,
    }
    plain = session.plain(cell["source"])
    told["plain"] = f"{dict(plain.dtypes)} {plain.to_dict()}" if cell["method"] == "toPandas" else repr(plain)
    for name in cell["settings"]:
        spark.conf.unset(name)
    return told


def run_kept(spark, store, cell):
    """Run a cell that defines `kept`, whose rows are kept after three actions; return the same, of its rows."""
    session = begun(spark, store, cell)
    answers = [session.cell(cell["source"] + "\nkept.collect()")]
    found = [one for job in session.report.graph.jobs for one in job.found_durable()] if session.report.graph else []
    session.cell("kept.distinct().collect()")
    answers.append(session.cell("kept.collect()"))
    answers.append(session.plain(cell["source"] + "\nkept.collect()"))
    first, again, plain = (repr(sorted(map(repr, rows))) for rows in answers)
    for name in cell["settings"]:
        spark.conf.unset(name)
    return {
        "answer": first if first == again else f"{first}, then {again}",
        "plain": plain,
        "is_other_s": bool(found),
        "saved": session.report.saved_seconds,
    }


def main():
    given = json.load(sys.stdin)
    durable_store.WRITE_S = durable_rows.WRITE_S = -1e9  # whatever it costs
    durable_rows.QUIET_S = 0.05
    if given.get("rows"):
        retained_answers.LARGEST = 0
    store = durable_store.durable_store(given["folder"])
    spark = local_session(
        master=given["master"],
        config={"spark.ui.enabled": "false", "spark.driver.memory": "700m", **given.get("config", {})},
    )
    spark.sparkContext.setLogLevel("OFF")
    ran = run_kept if given.get("rows") else run
    answers = {}
    for cell in given["cells"]:
        answers[cell["name"]] = ran(spark, store, cell)
        assert store.wait(60)
    print(json.dumps(answers), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
