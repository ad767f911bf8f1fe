"""Answers that the session mode stores for later kernels, as a notebook shows them."""

from __future__ import annotations

import re
import stat

import pytest

from flinkmagic.session import durable_store, release_retained


@pytest.fixture
def off(notebook):
    """A notebook whose settings are as they were afterwards."""
    yield notebook
    notebook.run("%flinkgraph off\n%config FlinkMagics.durable = None\n%config FlinkMagics.durable_bytes = None")


def config(notebook, name):
    return getattr(notebook.shell.magics_manager.registry["FlinkMagics"], name)


def test_the_mode_is_told_where_to_store(off, tmp_path) -> None:
    told = off.run("%flinkgraph on --durable answers --durable-bytes 3m").stdout
    assert told.splitlines()[-1] == f"Small answers and kept rows are stored in {tmp_path}/answers."
    assert stat.S_IMODE((tmp_path / "answers").stat().st_mode) == 0o700
    assert (config(off, "durable"), config(off, "durable_bytes")) == (f"{tmp_path}/answers", 3 * 2**20)
    off.run("spark.range(0, 900, 1, 2).groupBy(F.expr('id % 7')).count().orderBy('count').collect()")
    store = durable_store(tmp_path / "answers")
    assert store.wait(60)
    assert store.most_bytes == 3 * 2**20
    stored = [path for path in (tmp_path / "answers").rglob("*") if path.is_file()]
    assert len(stored) == 1
    listed = off.run("%flinkjobs --retained").stdout.splitlines()
    assert re.split("  +", listed[0]) == [
        "result", "kind", "name", "size", "where", "age", "last used", "saved", "graph", "for",
    ]  # fmt: skip
    (line,) = (line for line in listed if "memory, durable" in line)
    assert re.search(r" answer +collect\(\) .* –  +answers ", line)
    off.run("spark.range(0, 900, 1, 2).groupBy(F.expr('id % 7')).count().orderBy('count').collect()")
    (line,) = (line for line in off.run("%flinkjobs --retained").stdout.splitlines() if "memory, durable" in line)
    assert re.search(r" \d[\d.]* m?s +answers ", line)
    release_retained(off.names["spark"], "answers")
    assert [path for path in (tmp_path / "answers").rglob("*") if path.is_file()] == []


def test_a_setting_is_a_folder_that_stays(off, tmp_path) -> None:
    off.run("%config FlinkMagics.durable = 'answers'\n%cd -q /")
    assert config(off, "durable") == f"{tmp_path}/answers"
    told = off.run("%flinkgraph on").stdout.splitlines()[-1]
    assert told == f"Small answers and kept rows are stored in {tmp_path}/answers."
    off.run('%flinkgraph on --durable ""')
    assert config(off, "durable") is None


def test_a_folder_that_cannot_be_one_is_refused(off, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    error = off.run("%flinkgraph on --durable file").error
    assert str(error).startswith(f"Results cannot be stored in {tmp_path}/file (FileExistsError: ")
    assert config(off, "durable") is None


BEGIN = """%load_ext flinkmagic
import flinkmagic
from pyspark.sql import functions as F
spark = flinkmagic.local_session('durable', 'local[2]', {'spark.ui.enabled': 'false', 'spark.driver.memory': '800m'})
"""
CELL = """df = spark.read.csv('numbers', inferSchema=True)
by_key = df.groupBy((F.col('_c0') % 5).alias('k')).agg(F.sum('_c0').alias('s')).orderBy('k')
rows = by_key.collect()
by_key.show()
print(rows)
"""
OTHERS = """print(by_key.groupBy(F.col('s') % {0}).count().collect())
by_key.where('k < {0}').write.mode('overwrite').json('written')
print(sorted(spark.read.json('written').collect()))
"""


@pytest.mark.long
def test_run_all_in_another_kernel_computes_what_is_not_there(start_kernel, tmp_path) -> None:
    first = start_kernel()
    # So many take longer to compute than stored rows take to be read.
    assert first.run(BEGIN + "spark.range(0, 3_000_000, 1, 2).write.csv('numbers')").status == "ok"
    first.run("import time; time.sleep(2.5)\n%flinkgraph on --durable stored")
    computed = first.run(CELL)
    assert "another kernel" not in str(computed.displays)
    for number in (2, 3):  # actions for which rows are kept
        assert first.run(OTHERS.format(number)).status == "ok"
    stored = first.run("from flinkmagic.session import durable_store\ndurable_store('stored').wait(120)")
    assert stored.value["text/plain"] == "True"
    first.manager.shutdown_kernel()
    first = start_kernel()
    first.run(BEGIN + "%flinkgraph on --durable stored")
    answered = first.run(CELL)
    assert answered.status == "ok", answered.error
    assert answered.stdout == computed.stdout
    lines = answered.displays[0]["text/plain"].splitlines()
    time = r"[\d.]+ m?s"
    assert re.fullmatch(
        rf"collect\(\) · line 3 · {time} · answered from \d\d:\d\d, another kernel, saved {time}", lines[0]
    )
    assert re.fullmatch(
        rf"show\(\) · line 4 · {time} · answered from \d\d:\d\d, another kernel, saved {time}", lines[1]
    )
    found = first.run(OTHERS.format(4))
    sums = [(key, sum(range(key, 3_000_000, 5))) for key in range(4)]
    assert ", ".join(f"Row(k={key}, s={total})" for key, total in sums) in found.stdout
    lines = found.displays[0]["text/plain"].splitlines()
    for line, call in zip(lines, ("collect()", "json("), strict=False):
        assert call in line
        assert re.search(rf"reused \d stages? from \d\d:\d\d, another kernel, saved {time}", line)
    listed = first.run("%flinkjobs --retained").stdout
    assert "answers.1" in listed
    assert re.search(r"shared rows .* memory or disk, durable ", listed)
    with (tmp_path / "numbers" / "part-more.csv").open("w") as file:
        file.write("1000000\n")
    changed = first.run(CELL)
    assert "another kernel" not in str(changed.displays)
    assert "another kernel" not in changed.displays[0]["text/plain"]
    assert changed.stdout != computed.stdout
