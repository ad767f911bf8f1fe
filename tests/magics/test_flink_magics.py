"""The magics in a real kernel, on a real Spark."""

from __future__ import annotations

import json
import re
import threading
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

TWO_SINKS = """\
%%flinkgraph {name} --parallelism 2 {options}
numbers = spark.range(0, 1000, 1, 2).withColumn("last", F.col("id") % 10)
totals = numbers.groupBy("last").agg(F.sum("id").alias("total"))
totals.write.mode("overwrite").json("{out}/totals")
totals.where("total > 49700").write.mode("overwrite").parquet("{out}/high")
"""


def rows(folder: Path) -> dict[int, int]:
    found = [json.loads(line) for part in folder.glob("part-*.json") for line in part.read_text().splitlines()]
    return {row["last"]: row["total"] for row in found}


TOTALS = {last: sum(range(last, 1000, 10)) for last in range(10)}


def test_a_cell_is_compiled_and_shown_and_nothing_is_written(kernel, folder) -> None:
    cell = kernel.run(TWO_SINKS.format(name="deferred", out="deferred", options=""))
    assert cell.status == "ok", cell.error
    (shown,) = cell.displays
    assert not (folder / "deferred").exists()
    for title in ("Stream graph", "Job graph", "Execution graph"):
        assert title in shown["text/html"]
    ElementTree.fromstring(shown["image/svg+xml"])
    assert "groupBy(&quot;last&quot;)" in shown["image/svg+xml"] or 'groupBy("last")' in shown["image/svg+xml"]
    assert "line 3" in shown["image/svg+xml"]


def test_the_graph_is_a_variable(kernel) -> None:
    kernel.run(TWO_SINKS.format(name="held", out="held", options=""))
    told = kernel.run("print(type(held).__name__, len(held.job_graph.vertices), held.execution_graph.n_vertices)\nheld")
    # One map stage for the aggregate, one that keeps its rows, one final stage for each sink.
    assert told.stdout.strip() == "CompiledGraph 4 8"
    assert {"image/svg+xml", "text/html", "text/plain"} <= set(told.value)
    shared = "totals is shared by 2 sinks (totals, high) and computed once: it holds a shuffle"
    assert shared in kernel.run("print(held.summary())").stdout


def test_flinkrun_writes_and_ends_in_the_final_picture(kernel, folder) -> None:
    kernel.run(TWO_SINKS.format(name="ran", out="ran", options=""))
    cell = kernel.run("%flinkrun ran")
    assert cell.status == "ok", cell.error
    assert rows(folder / "ran" / "totals") == TOTALS
    (shown,) = cell.displays
    assert "FINISHED" in shown["text/plain"]
    assert re.search(r">[\d.]+ m?s · [^<]+", shown["image/svg+xml"])
    assert "longest: " in shown["text/html"]
    # While the job runs the live view stands over a picture: a widget would reopen as an error from a saved notebook.
    assert "flinkmagic-place-" in cell.updates[0]["text/html"]
    assert "while the job ran" in cell.updates[0]["text/html"]
    assert "flinkmagic-place-" not in shown["text/html"]
    assert all("application/vnd.jupyter.widget-view+json" not in update for update in cell.updates)


@pytest.mark.long
def test_flinkrun_only_runs_what_is_named_and_the_rest_stays_to_be_written(kernel, folder) -> None:
    kernel.run(TWO_SINKS.format(name="partly", out="partly", options=""))
    cell = kernel.run("%flinkrun partly --only totals")
    assert cell.status == "ok", cell.error
    assert rows(folder / "partly" / "totals") == TOTALS
    assert not (folder / "partly" / "high").exists()
    (shown,) = cell.displays
    assert "1 of 2 sinks: totals" in shown["text/plain"]
    assert "- not run: high: parquet" in shown["text/plain"]
    assert "The last run left out high. Run it: %flinkrun partly" in shown["text/html"]
    assert re.search(r"^partly +1 \(1 of 2 sinks\) +FINISHED", kernel.run("%flinkjobs partly").stdout, re.MULTILINE)
    missing = kernel.run("spark.read.parquet('partly/high')")
    assert "partly/high has yet to be written by partly" in missing.stderr
    refused = kernel.run("%flinkrun partly --only highs")
    assert "There is no sink named 'highs'. There are: totals, high. Did you mean high?" in refused.error
    cell = kernel.run("%flinkrun partly --full")
    assert cell.status == "ok", cell.error
    assert "reused" not in cell.displays[0]["text/plain"]
    assert (folder / "partly" / "high" / "_SUCCESS").exists()


@pytest.mark.long
def test_progress_can_be_a_line(kernel) -> None:
    kernel.run(TWO_SINKS.format(name="lined", out="lined", options=""))
    kernel.run("%config FlinkMagics.progress = 'line'")
    try:
        cell = kernel.run("%flinkrun lined")
    finally:
        kernel.run("%config FlinkMagics.progress = 'widget'")
    assert any(re.search(r"\d/8 tasks", update["text/plain"]) for update in cell.updates)
    assert "FINISHED" in cell.displays[0]["text/plain"]


def test_a_detached_job_gives_the_prompt_back_and_can_be_cancelled(kernel) -> None:
    kernel.run(
        "%%flinkgraph slow\n"
        "sleepy = F.udf(lambda value: __import__('time').sleep(60) or value, 'long')\n"
        "spark.range(0, 2, 1, 2).select(sleepy('id').alias('id')).write.json('slow_out')\n"
    )
    assert kernel.run("%flinkrun slow --detach").status == "ok"
    assert "RUNNING" in kernel.run("%flinkjobs slow").stdout
    again = kernel.run("%flinkrun slow")
    assert again.error_name == "JobRunningError"
    assert kernel.run("%flinkcancel slow").stdout.strip() == "slow is CANCELED."
    assert kernel.run("%flinkcancel slow").stdout.strip() == "slow is CANCELED already."


def test_an_interrupt_cancels_the_job_and_leaves_the_session(kernel, folder) -> None:
    kernel.run(
        "%%flinkgraph endless\n"
        "def sleepy(value):\n"
        "    import time, pathlib\n"
        f"    pathlib.Path({str(folder)!r}, 'began').touch()\n"
        "    time.sleep(60)\n"
        "    return value\n"
        "spark.range(0, 1, 1, 1).select(F.udf(sleepy, 'long')('id').alias('id')).write.json('endless_out')\n"
    )
    # Another job of the session goes on.
    kernel.run(
        "%%flinkgraph beside\n"
        "def nap(value):\n"
        "    import time, pathlib\n"
        f"    while not pathlib.Path({str(folder)!r}, 'go_on').exists():\n"
        "        time.sleep(0.02)\n"
        "    return value\n"
        "spark.range(0, 1, 1, 1).select(F.udf(nap, 'long')('id').alias('id')).write.json('beside_out')\n"
    )
    kernel.run("%flinkrun beside --detach")

    def interrupt() -> None:
        while not (folder / "began").exists():
            time.sleep(0.02)
        kernel.manager.interrupt_kernel()

    threading.Thread(target=interrupt, daemon=True).start()
    assert kernel.run("%flinkrun endless").error_name == "KeyboardInterrupt"
    assert kernel.run("print(endless.jobs[-1].status, spark.range(3).count())").stdout.strip() == "CANCELED 3"
    states = kernel.run("print([str(state) for state in endless.jobs[-1].info().status_timestamps])").stdout
    assert states.index("RUNNING") < states.index("CANCELLING") < states.index("CANCELED")
    assert kernel.run("print(beside.jobs[-1].status)").stdout.strip() == "RUNNING"
    (folder / "go_on").touch()
    assert kernel.run("print(beside.jobs[-1].wait())").stdout.strip() == "FINISHED"


def test_jobs_are_listed_with_their_log_and_errors(kernel) -> None:
    kernel.run(TWO_SINKS.format(name="listed", out="listed", options="--run"))
    kernel.run("%%flinkgraph unlisted\nx = spark.range(3)\n")
    lines = [line.split() for line in kernel.run("%flinkjobs").stdout.splitlines()]
    assert lines[0] == ["graph", "run", "status", "time", "tasks"]
    assert ["listed", "1", "FINISHED"] in [line[:3] for line in lines]
    assert ["unlisted", "-", "not"] in [line[:3] for line in lines]
    assert "the job is FINISHED" in kernel.run("%flinkjobs listed --log").stdout
    told = kernel.run("%flinkjobs listed").stdout
    assert "✓ totals: json, overwrite" in told
    assert "unlisted" not in told
    header, _, *vertices = told[told.index("\nvertex ") + 1 :].strip().splitlines()
    assert header.split() == ["vertex", "tasks", "time", "rows", "in", "rows", "out", "bytes", "in", "bytes", "out"]
    assert len(vertices) == 4
    assert kernel.run("%flinkjobs listed --errors").stdout.strip() == "listed: no errors."
    assert kernel.run("%flinkjobs unlisted --errors").error_name == "NeverRunError"
    assert kernel.run("%flinkjobs listed --findings").stdout.startswith("listed: of ")
    found = json.loads(kernel.run("%flinkjobs listed --findings --json").stdout)
    assert (found["name"], found["critical_path"]["path_s"] > 0) == ("listed", True)
    assert isinstance(found["findings"], list)
    assert kernel.run("%flinkjobs unlisted --findings").error_name == "NeverRunError"


def test_the_live_view_comes_back(kernel) -> None:
    kernel.run(TWO_SINKS.format(name="shown", out="shown", options=""))
    cell = kernel.run("%flinkshow shown")
    assert "flinkmagic-place-" in cell.displays[0]["text/html"]
    assert set(cell.displays[0]) == {"image/svg+xml", "text/html", "text/plain"}


@pytest.mark.parametrize("kind", ["stream", "job", "execution", "regions"])
def test_one_graph_is_shown_or_saved(kernel, folder, kind: str) -> None:
    kernel.run(TWO_SINKS.format(name="pictured", out="pictured", options=""))
    titles = {
        "stream": "Stream graph",
        "job": "Job graph",
        "execution": "Execution graph",
        "regions": "Regions",
    }
    shown = kernel.run(f"%flinkgraph pictured --view {kind}").displays[0]
    assert titles[kind] in shown["image/svg+xml"]
    for suffix in ("svg", "dot", "txt"):
        told = kernel.run(f"%flinkgraph pictured --view {kind} --save {kind}.{suffix}")
        assert told.stdout.strip() == f"Written to {kind}.{suffix}"
    ElementTree.parse(folder / f"{kind}.svg")
    assert (folder / f"{kind}.dot").read_text().startswith("digraph")
    assert kernel.run(f"%flinkgraph pictured --view {kind} --save {kind}.png").error_name == "InvalidValueError"


def test_a_function_of_another_cell_is_named_by_that_cell(kernel) -> None:
    kernel.run("def clean(frame):\n    return frame.where('id > 1')\nprint(len(In) - 1)")
    number = kernel.run("print(len(In) - 2)").stdout.strip()
    kernel.run("%%flinkgraph borrowed\ncleaned = clean(spark.range(4))\n")
    told = kernel.run(
        "print({str(call.location) for call in borrowed.program.lineage.calls if call.method == 'where'})"
    ).stdout
    assert f"cell {number}, line 2 (called from cell {int(number) + 2}, line 2)" in told


def test_a_graph_is_tried_on_another_cluster(kernel) -> None:
    kernel.run(TWO_SINKS.format(name="tried", out="tried", options=""))
    before = kernel.run("%flinksim tried --task-managers 2 --slots 3").displays[0]
    assert "6 slots used to" in before["text/plain"]
    assert "as it was" not in before["text/plain"]
    kernel.run("%flinkrun tried")
    after = kernel.run("%flinksim tried --task-managers 1 --slots 1").displays[0]
    assert "tried, as it was" in after["text/plain"]
    # Seconds since the run began, not since the epoch.
    seconds = [float(found) for found in re.findall(r"([\d.]+) ?s\b", after["text/plain"])]
    assert 0 < max(seconds) < 600
    assert "tried, simulated on 1 slot" in after["text/plain"]
    assert re.search(r"calibration: as it was, on 2 slots: [\d.]+ m?s, measured [\d.]+ m?s$", after["text/plain"])
    ElementTree.fromstring(after["image/svg+xml"])
    longer = kernel.run("%flinksim tried --task-seconds 30 --faults 2 --seed 4 --restart fixed-delay:9:1s")
    assert "makespan" in longer.displays[0]["text/plain"]
    assert "as it was" not in longer.displays[0]["text/plain"]
    assert kernel.run("%flinksim tried --restart maybe").status == "error"
    assert kernel.run("%flinksim tried --fail Nothing:2@1s").status == "error"


def test_the_log_of_another_application_is_shown(kernel, folder) -> None:
    log = Path(__file__).parents[1] / "history" / "logs" / "spark-3.5.zstd"
    (shown,) = kernel.run(f"%flinkhistory {log} --jobs 1").displays
    assert "5 jobs of 24 tasks" in shown["text/plain"]
    assert "rule: skewed-partition" in shown["text/plain"]
    # The job graph, the stream graph and the timeline of the longest job.
    assert shown["text/html"].count("<img ") == 3
    assert "<script" not in shown["text/html"]
    assert kernel.run(f"%flinkhistory {log} --save history.html").stdout == "Written to history.html\n"
    assert (folder / "history.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    refused = kernel.run("%flinkhistory nowhere")
    assert refused.error_name == "UnreadableLogError"


def test_help(kernel) -> None:
    told = kernel.run("print(get_ipython().find_cell_magic('flinkgraph').__doc__)").stdout
    for option in (
        "--parallelism N", "--slots N", "--share {auto,always,never}", "--restart STRATEGY",
        "--retain {none,job,session}", "--retain-bytes BYTES", "--run",
    ):  # fmt: skip
        assert f"[{option}]" in " ".join(told.split())
    assert "how many partitions shuffles make" in told


def test_run_is_one_gesture(kernel, folder) -> None:
    cell = kernel.run(TWO_SINKS.format(name="gesture", out="gesture", options="--run"))
    assert cell.status == "ok", cell.error
    assert rows(folder / "gesture" / "totals") == TOTALS
    assert kernel.run("print(gesture.jobs[-1].status)").stdout.strip() == "FINISHED"


def test_run_can_be_the_default(kernel, folder) -> None:
    kernel.run("%config FlinkMagics.run = True")
    try:
        assert kernel.run(TWO_SINKS.format(name="configured", out="configured", options="")).status == "ok"
    finally:
        kernel.run("%config FlinkMagics.run = False")
    assert rows(folder / "configured" / "totals") == TOTALS


FAILS_TWICE = """\
%%flinkgraph {name} {options}
def fails_twice(batches):
    from pathlib import Path
    from pyspark import TaskContext
    marks = Path("{folder}")
    if TaskContext.get().partitionId() == 1 and len(list(marks.iterdir())) < 2:
        (marks / str(len(list(marks.iterdir())))).touch()
        raise OSError("the disk is full")
    yield from batches

source = spark.range(0, 100, 1, 2)
source.mapInArrow(fails_twice, source.schema).groupBy("id").count().write.json("{folder}_out")
"""


@pytest.mark.long
def test_failed_tasks_are_restarted_as_asked_for(kernel, folder) -> None:
    (folder / "marks").mkdir()
    restart = "--restart fixed-delay:2:10ms --parallelism 2"
    kernel.run(FAILS_TWICE.format(name="restarted", folder=folder / "marks", options=restart))
    cell = kernel.run("%flinkrun restarted")
    assert cell.status == "ok", cell.error
    written = kernel.run(f"print(sorted(row.id for row in spark.read.json('{folder}/marks_out').collect()))")
    assert json.loads(written.stdout) == list(range(100))
    log = kernel.run("%flinkjobs restarted --log").stdout
    assert len(re.findall(r"restart \d+ tasks? in 10 ms", log)) >= 2, (
        log
    )  # a task that Spark ends with its stage is one more
    shown = kernel.run(
        "print([(t.subtask, t.attempt) for t in restarted.jobs[-1].tasks() if t.state.name == 'FAILED'])"
    )
    assert shown.stdout.strip() == "[(1, 0), (1, 1)]"
    assert kernel.run("print(restarted.jobs[-1].info().number_of_restarts)").stdout.strip() == "2"


@pytest.mark.long
def test_a_restart_strategy_can_be_the_default(kernel, folder) -> None:
    (folder / "few").mkdir()
    kernel.run("%config FlinkMagics.restart = 'fixed-delay:1:0s'")
    try:
        kernel.run(FAILS_TWICE.format(name="given_up", folder=folder / "few", options="--parallelism 2"))
    finally:
        kernel.run("%config FlinkMagics.restart = 'none'")
    cell = kernel.run("%flinkrun given_up")
    assert cell.error_name == "JobFailedError"
    assert "the disk is full" in cell.error
    assert len(list((folder / "few").iterdir())) == 2


def test_what_sinks_share_is_an_option_with_a_default(kernel) -> None:
    def sharing(options: str = "") -> str:
        assert kernel.run(TWO_SINKS.format(name="sharing", out="sharing", options=options)).status == "ok"
        return kernel.run("print(len(sharing.job_graph.vertices), len(sharing.shared))").stdout.strip()

    assert sharing() == "4 1"
    assert sharing("--share never") == "4 0", "the aggregate twice, for each sink in two stages"
    kernel.run("%config FlinkMagics.share = 'never'")
    try:
        assert sharing() == "4 0"
        assert sharing("--share always") == "4 1"
    finally:
        kernel.run("%config FlinkMagics.share = 'auto'")
    refused = kernel.run(TWO_SINKS.format(name="sharing", out="sharing", options="--share sometimes"))
    assert refused.status == "error"
    assert "invalid choice: 'sometimes'" in refused.stderr


def test_names_stand_for_what_was_computed_until_the_cell_runs_again(kernel) -> None:
    cell = TWO_SINKS.format(name="named", out="named", options="")
    kernel.run(cell)
    assert kernel.run("print(totals.is_cached)").stdout.strip() == "False"
    assert kernel.run("%flinkrun named").status == "ok"
    told = kernel.run("print(totals.is_cached, numbers.is_cached, totals.count(), len(totals.toPandas()))")
    assert told.stdout.strip() == "True False 10 10"
    later = kernel.run("%%flinkgraph later\nlow = totals.where('total <= 49700')")
    assert later.status == "ok"
    assert "In-memory table totals" in kernel.run("print(later.to_dot())").stdout
    kernel.run(cell)
    assert kernel.run("print(totals.is_cached)").stdout.strip() == "False"
    kernel.run("%flinkrun named")
    kernel.run("named.jobs[-1].release()")
    assert kernel.run("print(totals.is_cached)").stdout.strip() == "False"


def test_a_restart_strategy_that_does_not_exist_is_one_line(kernel) -> None:
    cell = kernel.run("%%flinkgraph typo --restart sometimes\nx = spark.range(3)\n")
    assert cell.status == "error" or cell.stderr
    assert "--restart: must be none, fixed-delay:ATTEMPTS:DELAY" in cell.error + cell.stderr


def test_config_lists_the_options(kernel) -> None:
    told = kernel.run("%config FlinkMagics").stdout
    for option in ("run", "parallelism", "slots", "restart"):
        assert f"FlinkMagics.{option}=" in told


def test_a_graph_runs_again_from_the_data_of_then(kernel, folder) -> None:
    (folder / "lines").mkdir()
    (folder / "lines" / "a.txt").write_text("one\ntwo\n")
    kernel.run(
        "%%flinkgraph again --parallelism 2\n"
        "counted = spark.read.text('lines').groupBy('value').count()\n"
        "counted.write.mode('append').json('again')\n"
    )
    for _ in range(2):
        assert kernel.run("%flinkrun again").status == "ok"
    assert kernel.run("print(spark.read.json('again').count(), len(again.jobs))").stdout.split() == ["4", "2"]


def test_variables_and_the_last_expression(kernel) -> None:
    cell = kernel.run("%%flinkgraph values\nkept = spark.range(3)\nanswer = 6 * 7\nanswer")
    assert cell.value["text/plain"] == "42"
    assert kernel.run("print(answer, kept.columns)").stdout.strip() == "42 ['id']"


def test_eager_actions_run_immediately(kernel) -> None:
    cell = kernel.run(
        "%%flinkgraph eager\nthree = spark.range(3)\nthree.show()\n"
        "print(three.count(), [r.id for r in three.collect()])\n"
    )
    assert cell.status == "ok", cell.error
    assert "|  2|" in cell.stdout
    assert "3 [0, 1, 2]" in cell.stdout


def test_a_cell_without_a_write_keeps_its_results(kernel) -> None:
    cell = kernel.run(
        "%%flinkgraph keeping --run\nsource = spark.range(10)\neven = source.where('id % 2 = 0').distinct()\n"
    )
    assert cell.status == "ok", cell.error
    told = kernel.run(
        "print(sorted(r.id for r in keeping.jobs[-1].result('even').collect()), [s.name for s in keeping.sinks])"
    )
    assert told.stdout.strip() == "[0, 2, 4, 6, 8] ['even']"


def test_dataframes_made_elsewhere(kernel) -> None:
    kernel.run("left = spark.range(4)\nright = spark.range(6).groupBy((F.col('id') % 2).alias('odd')).count()")
    cell = kernel.run("%flinkgraph left right --name pair")
    assert "image/svg+xml" in cell.value
    assert kernel.run("print([s.name for s in pair.sinks])").stdout.strip() == "['left', 'right']"


def test_a_cell_that_raises_shows_its_own_line_and_registers_nothing(kernel, folder) -> None:
    cell = kernel.run("%%flinkgraph broken\nspark.range(3).write.json('broken')\n\nraise KeyError('mine')\n")
    assert cell.status == "error"
    assert cell.error_name == "KeyError"
    assert "line 4" in cell.error
    assert "raise KeyError('mine')" in cell.error
    assert "flinkmagic" not in cell.error.replace("%%flinkgraph", "")
    assert not (folder / "broken").exists()
    assert kernel.run("broken").error_name == "NameError"
    # pyspark is as it was: the same write happens immediately.
    assert kernel.run("spark.range(3).write.json('broken')").status == "ok"
    assert (folder / "broken" / "_SUCCESS").exists()


def test_a_syntax_error_is_the_cell_s(kernel) -> None:
    cell = kernel.run("%%flinkgraph wrong\nx = 1\ny = = 2\n")
    assert cell.error_name == "SyntaxError"
    assert "line 3" in cell.error
    assert "flinkmagic" not in cell.error
    assert "run_cell_magic" not in cell.error


def test_a_cell_may_await_on_the_loop_of_the_kernel(kernel) -> None:
    kernel.run("import asyncio\nstarted = asyncio.ensure_future(asyncio.sleep(0.1, 7))")
    cell = kernel.run("%%flinkgraph awaiting\nn = await started\nsome = spark.range(n)\nn")
    assert cell.status == "ok", cell.error
    assert cell.value["text/plain"] == "7"
    assert kernel.run("print([s.name for s in awaiting.sinks])").stdout.strip() == "['some']"


def test_an_analysis_error_comes_at_its_line(kernel) -> None:
    cell = kernel.run("%%flinkgraph missing\nx = spark.range(3)\nx.select('nothing')\n")
    assert cell.error_name == "AnalysisException"
    assert "x.select('nothing')" in cell.error
    assert "----> 3" in cell.error


def test_a_path_that_exists_is_spark_s_own_error_at_the_right_line(kernel, folder) -> None:
    kernel.run("spark.range(1).write.json('taken')")
    cell = kernel.run("%%flinkgraph taken_graph\n\nspark.range(3).write.json('taken')\n")
    assert cell.error_name == "AnalysisException"
    assert "PATH_ALREADY_EXISTS" in cell.error
    assert "----> 3" in cell.error


def test_reading_a_pending_target_is_refused_and_both_lines_are_named(kernel, folder) -> None:
    cell = kernel.run(
        "%%flinkgraph early\nspark.range(3).write.json('early_out')\n"
        "spark.read.schema('id long').json('early_out').count()\n"
    )
    assert cell.error_name == "PendingWriteError"
    assert "line 2" in cell.error
    assert "line 3" in cell.error
    assert "Traceback" not in cell.error
    assert not (folder / "early_out").exists()


def test_with_run_a_pending_target_is_deployed_first(kernel, folder) -> None:
    cell = kernel.run(
        "%%flinkgraph early_run --run\n"
        "spark.range(3).write.json('early_run_out')\n"
        "print(spark.read.json('early_run_out').count())\n"
    )
    assert cell.status == "ok", cell.error
    assert cell.stdout.startswith("3\n")


def test_what_sql_writes_is_deferred_and_what_has_run_is_told(kernel) -> None:
    kernel.run("spark.sql('CREATE TABLE IF NOT EXISTS told (id BIGINT) USING parquet')")
    deferred = kernel.run("%%flinkgraph by_sql\nspark.sql('INSERT INTO told VALUES (1)').show()")
    assert deferred.status == "ok", deferred.error
    assert deferred.stdout == "++\n||\n++\n++\n\n"
    assert "Nothing has been written yet" in deferred.displays[-1]["text/plain"]
    assert kernel.run("spark.table('told').count()").value["text/plain"] == "0"
    line = "spark.sql('BEGIN INSERT INTO told VALUES (2); END')"
    ran = kernel.run(f"%%flinkgraph by_sql\n{line}\nspark.sql('INSERT INTO told VALUES (3)');")
    assert ran.status == "ok", ran.error
    assert "line 2: sql('BEGIN INSERT INTO told VALUES (2); END') has run" in ran.stdout
    assert "1 write has run on the way, 1 is still to run. Run it: %flinkrun by_sql" in ran.displays[-1]["text/plain"]
    alone = kernel.run(f"%%flinkgraph alone\n{line};")
    assert alone.status == "ok", alone.error
    assert alone.stdout.endswith("nothing to compile: 1 write has run on the way, nothing is deferred\n")
    assert kernel.run("spark.table('told').count()").value["text/plain"] == "2"
    kernel.run("%flinkrun by_sql")
    assert kernel.run("spark.table('told').count()").value["text/plain"] == "3"
    kernel.run("spark.sql('DROP TABLE told')")


def test_overwriting_what_is_read_is_refused_and_the_rows_stay(kernel) -> None:
    kernel.run("spark.range(5).write.parquet('own')")
    cell = kernel.run(
        "%%flinkgraph own_graph --run\n"
        "spark.read.parquet('own').where('id > 2').write.mode('overwrite').parquet('own')\n"
    )
    assert cell.status == "error"
    assert kernel.run("print(spark.read.parquet('own').count())").stdout.strip() == "5"


def test_a_failing_udf_fails_the_cell_with_its_own_lines(kernel, folder) -> None:
    cell = kernel.run(
        "%%flinkgraph fails --run\n"
        "def check(value):\n"
        "    if value == 7:\n"
        "        raise ValueError('bad row 7')\n"
        "    return value\n"
        "checked = spark.range(10).select(F.udf(check, 'long')('id').alias('id'))\n"
        "checked.write.json('fails_out')\n"
    )
    assert cell.error_name == "JobFailedError", cell.error
    assert "ValueError: bad row 7" in cell.error
    assert "raise ValueError('bad row 7')" in cell.error
    assert "org.apache.spark" not in cell.error
    assert "SQLSTATE" not in cell.error
    assert ", line 4, in check" in cell.error
    assert "ipykernel" not in cell.error
    told = kernel.run("%flinkjobs fails --errors").stdout
    assert ", line 4, in check" in told
    assert told.count("raise ValueError('bad row 7')") == 1
    assert "ipykernel" not in told
    assert "SQLSTATE" not in told
    full = kernel.run("%flinkjobs fails --errors --full").stdout
    assert "org.apache.spark.api.python.PythonException" in full
    assert "flinkmagic/" not in full
    told = kernel.run("print({task.error for task in fails.jobs[-1].snapshot().tasks if task.error})").stdout
    assert told.strip() == "{'ValueError: bad row 7'}"
    assert "FAILED" in cell.displays[-1]["text/plain"]
    assert not (folder / "fails_out" / "_SUCCESS").exists()


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("%%flinkgraph g --parallelism 0\nspark.range(3)", "whole number of at least 1, not 0"),
        ("%%flinkgraph g --parallelism four\nspark.range(3)", "whole number of at least 1, not 'four'"),
        ("%%flinkgraph g --slots none\nspark.range(3)", "whole number of at least 1, not 'none'"),
        ("%%flinkgraph g --frobnicate\nspark.range(3)", "unrecognized arguments: --frobnicate"),
        (
            "%%flinkgraph 4you\nspark.range(3)",
            "a graph's name (it becomes a variable) must be a Python identifier",
        ),
        ("%%flinkgraph class\nspark.range(3)", "such as delays, not 'class'"),
        ("%flinkrun nobody", "There is no graph named 'nobody'"),
        ("%flinkgraph nobody", "There is no variable named 'nobody'"),
        ("%flinkgraph F", "not module"),
    ],
)
def test_bad_input_gets_one_clear_line(kernel, code: str, says: str) -> None:
    cell = kernel.run(code)
    told = cell.error + cell.stderr
    assert says in told
    assert "Traceback" not in told
    assert cell.status == "error"
    assert len([line for line in told.strip().splitlines() if line.strip()]) == 1


@pytest.mark.long
def test_a_local_session_is_started_where_there_is_none(bare_kernel) -> None:
    assert bare_kernel.run("%load_ext flinkmagic").status == "ok"
    cell = bare_kernel.run("%%flinkgraph first\nnumbers = spark.range(3)\n")
    assert cell.status == "ok", cell.error
    assert "No SparkSession was running: started a local one, `spark`" in cell.stderr
    assert bare_kernel.run("print(spark.range(3).count())").stdout.strip() == "3"


@pytest.mark.long
def test_all_that_the_session_has_defined_is_one_graph(bare_kernel) -> None:
    bare_kernel.run("%load_ext flinkmagic\nfrom pyspark.sql import functions as F")
    none = bare_kernel.run("%flinkgraph")
    assert "No cell has defined a graph yet" in none.error
    bare_kernel.run("%%flinkgraph prep\nlate = spark.range(0, 100, 1, 2).groupBy((F.col('id') % 7).alias('k')).count()")
    used = bare_kernel.run("%%flinkgraph used\nlate.where('k > 2').write.json('a')\nlate.orderBy('k').write.json('b')")
    assert "uses late of prep, cell " in used.displays[0]["text/plain"]
    whole = bare_kernel.run("%flinkgraph")
    assert whole.status == "ok", whole.error
    assert whole.value["image/svg+xml"].count("range(0, 100, 1, 2)") >= 1
    text = whole.value["text/plain"]
    assert "used uses late of prep, cell" in text
    assert "%flinkgraph --name NAME" in text
    # It is shown, and no variable holds it; nothing has run.
    assert bare_kernel.run("print('session' in globals())").stdout.strip() == "False"
    assert "session" not in bare_kernel.run("%flinkjobs").stdout
    named = bare_kernel.run("%flinkgraph --name everything\nprint([s.name for s in everything.sinks])")
    assert named.stdout.strip() == "['a', 'b']"
    # A graph that spans cells is no part of the next one.
    again = bare_kernel.run("%flinkgraph --name twice\nprint([s.name for s in twice.sinks])")
    assert again.stdout.strip() == "['a', 'b']"
    assert bare_kernel.run("%flinkrun everything").status == "ok"
    assert bare_kernel.run("print(spark.read.json('b').count())").stdout.strip() == "7"


def test_a_cell_that_runs_again_replaces_its_graph_under_any_name(kernel) -> None:
    kernel.run("%%flinkgraph old_name\nx = spark.range(3)", cell="the-cell")
    kernel.run("%%flinkgraph new_name\nx = spark.range(4)", cell="the-cell")
    listed = kernel.run("%flinkjobs").stdout
    assert "new_name" in listed
    assert "old_name" not in listed


def test_a_job_whose_cell_ran_again_can_still_be_cancelled(kernel) -> None:
    source = (
        "%%flinkgraph lasting\n"
        "sleepy = F.udf(lambda value: __import__('time').sleep(60) or value, 'long')\n"
        "spark.range(0, 2, 1, 2).select(sleepy('id').alias('id')).write.mode('append').json('lasting_out')\n"
    )
    kernel.run(source)
    kernel.run("%flinkrun lasting --detach")
    kernel.run(source)
    assert ["lasting", "old", "RUNNING"] in [line.split()[:3] for line in kernel.run("%flinkjobs").stdout.splitlines()]
    assert kernel.run("%flinkrun lasting").error_name == "JobRunningError"
    assert kernel.run("%flinkcancel lasting").stdout.strip() == "lasting is CANCELED."
    assert ["lasting", "1", "CANCELED"] in [line.split()[:3] for line in kernel.run("%flinkjobs").stdout.splitlines()]


@pytest.mark.long
def test_what_cells_have_in_common_stands_once_in_the_session_s_graph(bare_kernel) -> None:
    bare_kernel.run("%load_ext flinkmagic\nfrom pyspark.sql import functions as F")
    bare_kernel.run("%%flinkgraph one\nsmall = spark.range(0, 100, 1, 2).where('id > 3')\nsmall.write.json('one')")
    bare_kernel.run("%%flinkgraph two\nsmall.selectExpr('id + 1 AS next').write.json('two')")
    assert bare_kernel.run("%flinkgraph --name everything").status == "ok"
    told = bare_kernel.run(
        "reads = [n for n in everything.stream_graph.nodes.values() if not n.in_edges]\n"
        "print(len(reads), [(n.metadata or {}).get('call') for n in reads], everything.warnings)\n"
        "print(sorted({(n.metadata or {}).get('cell', '') for n in everything.stream_graph.nodes.values()}))\n"
        "print(everything.summary())"
    ).stdout
    assert told.startswith("1 ['range(0, 100, 1, 2)']"), told
    assert "small is shared by 2 sinks (one, two) and computed once" in told


def test_config_lists_every_default(kernel) -> None:
    told = kernel.run("%config FlinkMagics").stdout
    for name, default in (
        ("run", "False"), ("parallelism", "None"), ("slots", "None"), ("share", "'auto'"), ("restart", "'none'"),
        ("storage_level", "'MEMORY_AND_DISK_DESER'"), ("retain", "'job'"),
        ("retain_bytes", "None"), ("checkpoint_dir", "None"), ("progress", "'widget'"),
    ):  # fmt: skip
        assert re.search(rf"FlinkMagics\.{name}=<\w+>", told), name
        assert kernel.run(f"print(repr(get_ipython().magics_manager.registry['FlinkMagics'].{name}))").stdout == (
            default + "\n"
        )
