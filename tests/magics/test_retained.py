"""A cell that failed is mended and run again; what is retained is listed and released by name."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.long

CELL = """%%flinkgraph {name} --run
{blank}@F.udf("long")
def plus(x):
    return x + 1

@F.udf("long")
def check(x):
    if {condition}:
        raise ValueError("too much")
    return x

sums = spark.range(0, 100, 1, 2).selectExpr("id % 5 AS k", "id").groupBy("k").agg(F.sum(plus("id")).alias("s"))
sums.select(check("s").alias("s"), F.{column}.alias("r")).write.mode("overwrite").json("{name}_out")
"""


def cell(name, *, condition="False", blank="", column="lit(1)"):
    return CELL.format(name=name, condition=condition, blank=blank, column=column)


@pytest.fixture(autouse=True)
def fresh(kernel):
    """No graph of a test's name was there before."""
    kernel.run("for name in {one.graph for one in flinkmagic.session.retained(spark)}:\n"
               "    flinkmagic.session.release_retained(spark, name)")  # fmt: skip


def test_a_mended_cell_computes_the_rest_and_its_picture_says_so(kernel) -> None:
    failed = kernel.run(cell("mended", condition="x > 10"))
    assert "too much" in failed.displays[0]["text/plain"] + failed.error
    mended = kernel.run(cell("mended", blank="\n\n"))
    assert mended.status == "ok", mended.error
    assert "1 job vertex reused" in mended.displays[0]["text/plain"]
    assert "reused" in mended.displays[0]["image/svg+xml"]
    assert kernel.run("print(len({task.stage for task in mended.jobs[-1].tasks()}))").stdout.strip() == "1"


def test_what_is_retained_is_listed_and_released(kernel) -> None:
    kernel.run(cell("beside"))
    kernel.run(cell("listing", column="rand()"))
    listed = kernel.run("%flinkjobs listing --retained").stdout
    lines = listed.splitlines()
    assert lines[0].split() == [
        "result", "kind", "name", "size", "where", "age", "last", "used", "saved", "graph", "for",
    ]  # fmt: skip
    assert lines[1].split()[:3] == ["listing.1", "shuffle", "sums"]
    assert lines[1].endswith("listing  job")
    assert "every run computes listing_out" in listed
    assert "rand" in listed
    assert "is nondeterministic" in listed
    assert "beside" not in listed
    assert kernel.run("%flinkjobs --release beside").stdout.startswith("Released: beside.1")
    assert kernel.run("%flinkjobs --release listing.1").stdout.strip() == "Released: listing.1."
    assert kernel.run("%flinkjobs --retained").stdout.startswith("Nothing is retained.")
    assert kernel.run("%flinkjobs --release listing").error_name == "UnknownNameError"


def test_all_that_is_retained_is_summed_and_released(kernel) -> None:
    for name in ("early", "late"):
        kernel.run(cell(name))
    _, early, late, total = kernel.run("%flinkjobs --retained").stdout.splitlines()[:4]
    assert {early.split()[0], late.split()[0]} == {"early.1", "late.1"}
    assert total.startswith("2 results ")
    size = kernel.run(
        "from flinkmagic import amounts\n"
        "print(amounts.size(sum(one.bytes for one in flinkmagic.session.retained(spark))))"
    ).stdout.strip()
    assert total.endswith(size)
    assert kernel.run("%flinkjobs --release all").stdout.strip() in (
        "Released: early.1, late.1.", "Released: late.1, early.1."
    )  # fmt: skip
    assert kernel.run("%flinkjobs --retained").stdout.startswith("Nothing is retained.")


def test_options_and_their_defaults(kernel) -> None:
    assert kernel.run(cell("unretained").replace("--run", "--run --retain none")).status == "ok"
    assert kernel.run("%flinkjobs --retained").stdout.startswith("Nothing is retained.")
    kernel.run("%config FlinkMagics.retain = 'session'\n%config FlinkMagics.retain_bytes = 1000000")
    try:
        kernel.run(cell("configured"))
    finally:
        kernel.run("%config FlinkMagics.retain = 'job'\n%config FlinkMagics.retain_bytes = None")
    assert kernel.run("print(configured.options.retain, configured.options.retain_bytes)").stdout.split() == [
        "session", "1000000",
    ]  # fmt: skip
    assert kernel.run("%flinkjobs --retained").stdout.splitlines()[1].endswith("configured  session")
    kernel.run(cell("sized").replace("--run", "--retain-bytes 8g --checkpoint-dir kept"))
    assert kernel.run("print(sized.options.retain_bytes, sized.options.checkpoint_dir)").stdout.split() == [
        str(8 * 2**30), "kept",
    ]  # fmt: skip
    assert "500m or 8g" in kernel.run(cell("sized").replace("--run", "--retain-bytes many")).stderr
