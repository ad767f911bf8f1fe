"""Threads that a cell starts are part of it; other processes settle what is pending."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from flinkmagic.errors.capturing import PendingWriteError, ThreadWriteError

WRITE = "spark.range(0, 3, 1, 1).write.parquet(at('x'))\n"
THREAD = """
import threading
failed = []
def work():
    try:
        {work}
    except Exception as error:
        failed.append(error)
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""
READS = "rows = spark.read.parquet(at('x')).count(); done.append(rows)"
LOOKS = "import os; done.append(os.path.exists(at('x')))"
WRITES = "spark.range(5).write.parquet(at('y')); done.append(True)"


@pytest.fixture
def done(cell: Any) -> list[Any]:
    cell.namespace["done"] = []
    return cell.namespace["done"]


@pytest.mark.parametrize(
    ("work", "outcome"), [(READS, 3), (LOOKS, True), (WRITES, True)], ids=["read", "look", "write"]
)
class TestAThreadOfTheCell:
    def test_settles_what_is_pending(self, cell: Any, done: list[Any], work: str, outcome: Any) -> None:
        cell.capture(WRITE + THREAD.format(work=work), deploying=True)
        assert done == [outcome]
        assert cell.deployed == ["x"]

    def test_is_refused_and_the_cell_does_not_go_on_as_if_it_had_worked(
        self, cell: Any, done: list[Any], work: str, outcome: Any
    ) -> None:
        with pytest.raises((PendingWriteError, ThreadWriteError)) as refusal:
            cell.capture(WRITE + THREAD.format(work=work))
        assert cell.namespace["failed"] == [refusal.value]
        assert done == []
        assert cell.made() == set()


POOLS = {
    "executor": "from concurrent.futures import ThreadPoolExecutor as Pool\nwith Pool(2) as pool:",
    "pool": "from multiprocessing.pool import ThreadPool as Pool\nwith Pool(2) as pool:",
}


@pytest.mark.parametrize("pool", POOLS.values(), ids=POOLS)
class TestAPoolOfThreads:
    def test_works_for_the_cell(self, cell: Any, pool: str) -> None:
        source = WRITE + f"{pool}\n    found = list(pool.map(lambda name: spark.read.parquet(at(name)).count(), 'xx'))"
        cell.capture(source, deploying=True)
        assert cell.namespace["found"] == [3, 3]
        assert cell.deployed == ["x"]

    def test_writes_immediately(self, cell: Any, pool: str) -> None:
        source = (
            f"{pool}\n    list(pool.map(lambda name: spark.range(4).write.parquet(at(name)), 'pq'))\n"
            "n = spark.read.parquet(at('p'), at('q')).count()"
        )
        program = cell.capture(source, deploying=True)
        assert cell.namespace["n"] == 8
        assert program.eager.settlements == ()

    def test_that_was_there_before_works_for_the_cell_and_then_no_more(self, cell: Any, pool: str) -> None:
        cell.plain(pool.partition("with")[0] + "pool = Pool(1)\nlist(pool.map(str, 'a'))")
        run = cell.namespace["pool"].map
        source = WRITE + "found = list(pool.map(lambda name: spark.read.parquet(at(name)).count(), 'x'))"
        cell.capture(source, deploying=True)
        assert cell.namespace["found"] == [3]
        seen: list[Any] = []
        cell.namespace["look"] = lambda: seen.extend(run(lambda name: cell.made(), "x"))
        program = cell.capture("spark.range(1).write.parquet(at('z'))")
        cell.namespace["look"]()
        assert seen == [{"x"}]
        assert len(program.writes) == 1


def test_an_argument_of_the_function_s_own_is_no_function(cell: Any) -> None:
    cell.capture(
        WRITE + f"{POOLS['executor']}\n    count = lambda func: spark.read.parquet(at(func)).count()\n"
        "    found = pool.submit(count, func='x').result()",
        deploying=True,
    )
    assert cell.namespace["found"] == 3
    assert cell.deployed == ["x"]


def test_another_process_may_touch_anything(cell: Any) -> None:
    source = WRITE + (
        "import multiprocessing\n"
        "process = multiprocessing.get_context('spawn').Process(target=print)\n"
        "process.start()\nprocess.join()\n"
    )
    program = cell.capture(source, deploying=True)
    assert [settlement.cause for settlement in program.eager.settlements] == ["process"]


def test_a_loop_in_another_thread_may_touch_anything(cell: Any) -> None:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def look() -> set[str]:
        return cell.made()

    cell.namespace.update(loop=loop, look=look)
    source = WRITE + "import asyncio\nseen = asyncio.run_coroutine_threadsafe(look(), loop).result(60)"
    try:
        cell.capture(source, deploying=True)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
    assert cell.namespace["seen"] == {"x"}
