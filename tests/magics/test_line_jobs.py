"""The jobs of the session mode's lines are listed as such, and end by the name of their cell."""

from __future__ import annotations

import threading
import time
import weakref
from pathlib import Path
from typing import Any

import pytest

from flinkmagic import session
from flinkmagic.capturing.source_code.source_location import SourceLocation
from flinkmagic.errors.actions import ActionCancelledError
from flinkmagic.magics.line_jobs import MOST_JOBS, LineJobs
from flinkmagic.scheduling.dispatcher import JobDetails
from flinkmagic.scheduling.job_status import JobStatus

GROUPED = "g = spark.range(66).selectExpr('id', 'id % 11 AS k').groupBy('k').count()"

SLOW = """
def nap(id):
    import pathlib, time
    pathlib.Path(begun).touch()
    time.sleep(60)
    return id
slow = spark.range(0, 2, 1, 2).select(F.udf(nap, "long")("id").alias("k")).groupBy("k").count()
"""


@pytest.fixture
def on(notebook: Any, tmp_path: Path) -> Any:
    """A notebook with the mode on, and `at`, its folder; a task of `slow` makes the file `begun`."""
    notebook.names.update(at=str(tmp_path), begun=str(tmp_path / "begun"))
    notebook.run("%flinkgraph on")
    yield notebook
    notebook.run("%flinkgraph off")


def rows(text: str) -> list[list[str]]:
    """The columns of a table."""
    return [[column.strip() for column in line.split("  ") if column.strip()] for line in text.splitlines()]


def test_jobs_are_listed_by_cell_and_line(on) -> None:
    number = on.shell.execution_count
    cell = on.run(f"{GROUPED}\ng.write.json(f'{{at}}/out')\ng.count()")
    assert cell.value == 11
    listed = rows(on.run("%flinkjobs").stdout)
    own = [row for row in listed if row[1].startswith(f"cell {number}, ")]
    assert [row[:3] for row in own] == [
        [f"cell_{number}", f"cell {number}, line 2", "FINISHED"],
        ["count", f"cell {number}, line 3", "FINISHED"],
    ]
    assert all(row in rows(on.run(f"%flinkjobs cell_{number}").stdout) for row in own)


@pytest.mark.matrix(2)
@pytest.mark.parametrize(("line", "name"), [("slow.collect()", "collect"), ("slow.write.json(f'{at}/out')", "")])
def test_what_runs_of_a_cell_is_cancelled_by_its_name(on, tmp_path, capsys, line, name) -> None:
    on.run(SLOW)
    number = on.shell.execution_count
    job = f"{name or f'cell_{number}'}, cell {number}, line 1, is CANCELED"

    def cancel() -> None:
        while not over.wait(0.05):
            if (tmp_path / "begun").exists():
                on.shell.run_line_magic("flinkcancel", f"cell_{number}")
                return

    over = threading.Event()
    thread = threading.Thread(target=cancel)
    thread.start()
    started = time.monotonic()
    cell = on.run(line)
    over.set()
    thread.join()
    assert isinstance(cell.error, ActionCancelledError)
    assert time.monotonic() - started < 60, "its tasks were ended"
    # The magic prints from its own thread, when the cell may have ended.
    assert f"{job}." in cell.stdout + capsys.readouterr().out
    assert on.run(f"%flinkcancel cell_{number}").stdout.strip() == f"{job} already."
    assert on.run("spark.range(3).count()").value == 3


@pytest.mark.long
@pytest.mark.parametrize(
    "action", ["naps.collect()", "spark.range(2).groupBy('id').count().select(nap_of('id')).collect()"]
)
def test_what_spark_runs_for_an_action_itself_is_cancelled_too(on, tmp_path, capsys, action) -> None:
    on.run(SLOW + "nap_of = F.udf(nap, 'long')\nnaps = spark.range(0, 2, 1, 2).select(nap_of('id'))")
    number = on.shell.execution_count

    def cancel() -> None:
        while not over.wait(0.05):
            if (tmp_path / "begun").exists():
                on.shell.run_line_magic("flinkcancel", f"cell_{number}")
                return

    over = threading.Event()
    thread = threading.Thread(target=cancel)
    thread.start()
    cell = on.run(action)
    over.set()
    thread.join()
    assert isinstance(cell.error, ActionCancelledError)
    assert f"collect, cell {number}, line 1, is CANCELED.\n" in cell.stdout + capsys.readouterr().out


def test_a_cell_without_a_job_is_unknown(on) -> None:
    number = on.shell.execution_count
    on.run("spark.range(3).collect()")
    assert f"cell_{number}" in str(on.run(f"%flinkcancel cell_{number}").error)


class Run:
    """A job that is over as soon as one says so."""

    def __init__(self, number: int) -> None:
        self.name, self.number, self.status = "count", number, JobStatus.RUNNING

    def details(self) -> JobDetails:
        return JobDetails("the same", self.name, self.status, float(self.number), 1.0, 1, 1)


def test_what_is_known_is_bounded_and_holds_no_job(monkeypatch) -> None:
    runs = [Run(number) for number in range(MOST_JOBS + 51)]
    monkeypatch.setattr(session, "submitted_jobs", lambda: [run.details() for run in runs])
    known = LineJobs()
    where = SourceLocation("cell 1", "file", 4, "df.count()")
    for run in runs:
        known.add(run, 1, where)  # type: ignore[arg-type]
        if run.number:
            run.status = JobStatus.FINISHED
    in_cell = known.submitted("cell_1")
    assert len(in_cell) == MOST_JOBS + 1
    assert in_cell[0].start_ms == 0.0, "what runs stays known"
    assert known.place(runs[-1].details()) == "cell 1, line 4"
    held = weakref.ref(run)
    runs.clear()
    del run
    assert held() is None
