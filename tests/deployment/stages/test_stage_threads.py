import threading
import time

import pytest

from flinkmagic.deployment.stages.stage_threads import StageThreads


@pytest.fixture
def threads():
    made = StageThreads()
    yield made
    made.close()


def run(threads, name, block=None):
    """Start a body, and wait until it has begun; gives what tells when it has ended, and on which thread."""
    began, ended, seen = threading.Event(), threading.Event(), []

    def body():
        began.set()
        if block is not None:
            assert block.wait(10)
        seen.append((threading.get_ident(), threading.current_thread().name))
        ended.set()

    threads.start(name, body)
    assert began.wait(10)
    return ended, seen


def until_one_waits(threads):
    deadline = time.monotonic() + 10
    while threads._idle == 0:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_a_thread_that_has_ended_one_stage_takes_the_next(threads):
    seen = []
    for name in ("first", "second", "third"):
        ended, found = run(threads, name)
        assert ended.wait(10)
        seen += found
        until_one_waits(threads)
    assert [name for _, name in seen] == ["first", "second", "third"]
    assert len({thread for thread, _ in seen}) == 1


def test_stages_at_the_same_time_have_a_thread_each(threads):
    block = threading.Event()
    runs = [run(threads, f"stage-{i}", block) for i in range(5)]
    names = {thread.name for thread in threading.enumerate()}
    assert {f"stage-{i}" for i in range(5)} <= names
    block.set()
    assert all(ended.wait(10) for ended, _ in runs)
    assert len({found[0][0] for _, found in runs}) == 5


def test_threads_end_when_closed_the_busy_ones_with_their_stage(threads):
    block = threading.Event()
    waiting, _ = run(threads, "waits")
    assert waiting.wait(10)
    until_one_waits(threads)
    first, _ = run(threads, "takes the waiting thread", block)
    second, _ = run(threads, "has a new thread", block)
    names = ("takes the waiting thread", "has a new thread")
    mine = [thread for thread in threading.enumerate() if thread.name in names]
    assert len(mine) == 2
    threads.close()
    assert all(thread.is_alive() for thread in mine)
    block.set()
    for thread in mine:
        thread.join(10)
    assert not any(thread.is_alive() for thread in mine)
    assert first.is_set()
    assert second.is_set()
