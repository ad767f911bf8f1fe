import gc
import threading
import time
import weakref

import pytest

from flinkmagic.deployment.stages.stage_threads import IDLE, StageThreads


@pytest.fixture
def threads():
    return StageThreads(idle_s=60.0)


def run(threads, name, block=None):
    """Start a body, and wait until it has begun; gives what tells when it has ended, and on which thread."""
    began, ended, seen = threading.Event(), threading.Event(), []

    def body():
        began.set()
        if block is not None:
            assert block.wait(10)
        seen.append((threading.current_thread(), threading.current_thread().name))
        ended.set()

    threads.start(name, body)
    assert began.wait(10)
    return ended, seen


def until_idle(threads, count):
    deadline = time.monotonic() + 10
    while threads._idle != count:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_a_thread_that_has_ended_one_stage_takes_the_next(threads):
    seen = []
    for name in ("first", "second", "third"):
        ended, found = run(threads, name)
        assert ended.wait(10)
        seen += found
        until_idle(threads, 1)
        assert found[0][0].name == IDLE
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
    until_idle(threads, 5)


def test_a_thread_that_waits_in_vain_ends():
    threads = StageThreads(idle_s=0.02)
    ended, seen = run(threads, "only")
    assert ended.wait(10)
    ((thread, _),) = seen
    thread.join(10)
    assert not thread.is_alive()
    assert threads._idle == 0
    after, _ = run(threads, "has a new thread")
    assert after.wait(10)


def test_none_is_lost_between_a_thread_that_gives_up_and_a_stage_that_starts():
    threads, done = StageThreads(idle_s=0.0005), threading.Semaphore(0)
    for _ in range(500):
        threads.start("stage", done.release)
        time.sleep(0.0005)
    assert all(done.acquire(timeout=10) for _ in range(500))


def test_a_thread_that_waits_holds_nothing_of_the_stage_that_it_ran(threads):
    class Stage:
        def run(self):
            pass

    stage = Stage()
    held = weakref.ref(stage)
    threads.start("stage", stage.run)
    until_idle(threads, 1)
    del stage
    gc.collect()
    assert held() is None


def test_all_threads_are_idle_after_their_stages_and_then_end():
    """One that has just ended its stage may take the work for which another was made."""
    others, threads, done = set(threading.enumerate()), StageThreads(idle_s=0.3), threading.Semaphore(0)

    def starter():
        for _ in range(500):
            threads.start("stage", done.release)

    starters = [threading.Thread(target=starter) for _ in range(4)]
    for each in starters:
        each.start()
    for each in starters:
        each.join(10)
    assert all(done.acquire(timeout=10) for _ in range(2000))
    deadline = time.monotonic() + 10
    while mine := {one.name for one in {*threading.enumerate()} - others}:
        assert time.monotonic() < deadline, mine
        time.sleep(0.01)
    assert threads._idle == 0
