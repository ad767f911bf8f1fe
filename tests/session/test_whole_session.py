"""Graphs that span cells: one that goes on from another's DataFrames, and one of several programs."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

import flinkmagic
from flinkmagic.capturing.program import Program
from flinkmagic.capturing.source_code.source_location import CellSource
from flinkmagic.errors.capturing import OverwritesInputError
from flinkmagic.errors.usage import InvalidValueError, NotAProgramError
from flinkmagic.scheduling.job_status import JobStatus
from tests.gates import held_until
from tests.status_store import StatusStore


class Notebook:
    """Cells that are captured one after the other in one namespace."""

    def __init__(self, spark: Any, folder: Any) -> None:
        self.spark = spark
        self.namespace: dict[str, Any] = {"spark": spark, "F": F, "out": str(folder)}
        self.programs: list[Program] = []
        self.cells = 0

    def run(self, name: str, source: str) -> Program:
        self.cells += 1
        source = textwrap.dedent(source)
        filename = f"/tmp/ipykernel_1/{self.cells}.py"
        cell = CellSource(f"cell {self.cells}", filename, source)
        with flinkmagic.capture(
            self.spark, name=name, location=cell, namespace=self.namespace, earlier=self.programs
        ) as program:
            exec(compile(source, filename, "exec"), self.namespace)
        self.programs.append(program)
        return program


@pytest.fixture
def notebook(spark: Any, tmp_path: Any) -> Notebook:
    return Notebook(spark, tmp_path)


@pytest.fixture
def two_cells(notebook: Notebook) -> Notebook:
    """`late` is made in the first cell and written twice by the second."""
    notebook.run(
        "prep",
        """\
        numbers = spark.range(0, 1000, 1, 2).withColumn("last", F.col("id") % 10)
        late = numbers.groupBy("last").agg(F.sum("id").alias("total"))
        """,
    )
    notebook.run(
        "use",
        """\
        late.where("total > 49700").write.json(f"{out}/high")
        late.orderBy("total").write.json(f"{out}/sorted")
        """,
    )
    return notebook


def cells_of(graph: flinkmagic.CompiledGraph) -> dict[str, str]:
    """The cell of each operator, by the user's call."""
    found = {}
    for node in graph.stream_graph.nodes.values():
        facts = node.metadata or {}
        if facts.get("call"):
            found[facts["call"].partition("(")[0]] = facts.get("cell")
    return found


def test_a_cell_that_extends_another_says_so_and_labels_both(two_cells: Notebook) -> None:
    graph = flinkmagic.compile(two_cells.programs[1])
    assert "uses late of prep, cell 1" in graph.summary()
    assert "uses late of prep, cell 1" in graph.mime_bundle()["text/plain"]
    cells = cells_of(graph)
    assert cells["range"] == cells["groupBy"] == "cell 1"
    assert cells["where"] == cells["orderBy"] == "cell 2"
    picture = graph.to_svg(view="stream")
    assert "cell 1, line 2" in picture
    assert "cell 2, line 2" in picture
    assert [sink.name for sink in graph.sinks] == ["high", "sorted"]


def test_all_programs_are_one_graph_in_which_the_shared_dataframe_stands_once(two_cells: Notebook, spark: Any) -> None:
    two_cells.run("apart", "aside = spark.range(5).where('id > 1')")
    jobs = StatusStore(spark).jobs()
    whole = flinkmagic.compile(two_cells.programs, name="whole")
    assert StatusStore(spark).jobs() == jobs
    # `late` is a result of `prep` alone; here other sinks go on from it.
    assert [sink.name for sink in whole.sinks] == ["high", "sorted", "aside"]
    sources = [node for node in whole.stream_graph.nodes.values() if not node.in_edges]
    assert sorted((node.metadata["cell"], node.metadata["line"]) for node in sources) == [("cell 1", 1), ("cell 3", 1)]
    # Links from the operators of cell 1 to those of cell 2, in the stream graph and between job vertices.
    crossing = {
        (edge.source.metadata["cell"], edge.target.metadata["cell"])
        for edge in whole.stream_graph.edges
        if edge.source.metadata["cell"] != edge.target.metadata["cell"]
    }
    assert crossing == {("cell 1", "cell 2")}
    shared = [len(dataset.consumers) for vertex in whole.job_graph.vertices.values() for dataset in vertex.produced]
    assert max(shared) >= 2
    assert "use uses late of prep, cell 1" in whole.summary()
    assert json.loads(whole.to_json())["name"] == "whole"


def test_the_whole_runs_as_one_job(two_cells: Notebook, spark: Any) -> None:
    whole = flinkmagic.compile(two_cells.programs, name="whole")
    assert whole.run().status is JobStatus.FINISHED
    folder = two_cells.namespace["out"]
    expected = {last: sum(range(last, 1000, 10)) for last in range(10)}
    assert {row["last"]: row.total for row in spark.read.json(f"{folder}/sorted").collect()} == expected
    assert spark.read.json(f"{folder}/high").count() == sum(total > 49700 for total in expected.values())


def test_a_cell_that_ran_again_is_there_once_and_what_is_outdated_is_said(two_cells: Notebook) -> None:
    two_cells.run(
        "prep",
        """\
        numbers = spark.range(0, 100, 1, 2).withColumn("last", F.col("id") % 3)
        late = numbers.groupBy("last").agg(F.sum("id").alias("total"))
        """,
    )
    _, use, prep = two_cells.programs
    whole = flinkmagic.compile([use, prep], name="whole")
    assert [sink.name for sink in whole.sinks] == ["high", "sorted", "late"]
    assert "use uses late of prep, cell 1, as it was before that cell ran again" in whole.summary()


def test_a_whole_that_would_overwrite_its_input_is_shown_and_refused_to_run(notebook: Notebook, spark: Any) -> None:
    spark.range(8).write.parquet(f"{notebook.namespace['out']}/in")
    notebook.run("reads", "spark.read.parquet(f'{out}/in').where('id > 3').write.json(f'{out}/copy')")
    notebook.run("writes", "spark.range(5).write.mode('overwrite').parquet(f'{out}/in')")
    whole = flinkmagic.compile(notebook.programs, name="whole")
    assert "<svg" in whole.to_svg()
    with pytest.raises(OverwritesInputError):
        whole.run()
    assert whole.jobs == []
    assert spark.read.parquet(f"{notebook.namespace['out']}/in").count() == 8


def test_programs_and_dataframes_are_not_mixed(two_cells: Notebook, spark: Any) -> None:
    with pytest.raises(NotAProgramError, match="or a list of them"):
        flinkmagic.compile([two_cells.programs[0], spark.range(3)])


@pytest.mark.parametrize(
    ("options", "level"),
    [({}, (True, True, True)), ({"storage_level": "DISK_ONLY"}, (True, False, False)),
     ({"storage_level": "MEMORY_ONLY"}, (False, True, False))],
)  # fmt: skip
def test_shared_rows_are_kept_where_the_user_says(
    two_cells: Notebook, spark: Any, nothing_cached: None, options: dict[str, str], level: tuple[bool, bool, bool]
) -> None:
    go = Path(two_cells.namespace["out"], "go")
    two_cells.namespace["held"] = F.udf(held_until(go), "long")  # until the kept rows are seen
    held = two_cells.run(
        "held",
        """\
        late.select(held("total")).write.json(f"{out}/held")
        late.orderBy("total").write.json(f"{out}/sorted")
        """,
    )
    kept_before = {info.id() for info in spark.sparkContext._jsc.sc().getRDDStorageInfo()}
    graph = flinkmagic.compile(held, name=f"kept_{len(options)}", retain="none", **options)
    assert [shared.variable for shared in graph.shared] == ["late"]
    job = graph.run(wait=False)
    seen = set()
    while not job.wait(0.02).is_terminal:
        for info in spark.sparkContext._jsc.sc().getRDDStorageInfo():
            if info.id() not in kept_before:
                where = info.storageLevel()
                seen.add((where.useDisk(), where.useMemory(), where.deserialized()))
                go.touch()
    assert job.status is JobStatus.FINISHED
    assert seen == {level}


def test_a_storage_level_must_be_one(two_cells: Notebook) -> None:
    with pytest.raises(InvalidValueError, match=r"one of DISK_ONLY, .*, not 'TAPE'"):
        flinkmagic.compile(two_cells.programs[1], storage_level="TAPE")
