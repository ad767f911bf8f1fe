"""What is retained is found by key and graph, is bounded, and goes by name."""

from __future__ import annotations

import pytest

from flinkmagic.reuse.retained_results import DEFAULT_BYTES, RetainedResult, RetainedResults


@pytest.fixture
def store():
    return RetainedResults()


@pytest.fixture
def result():
    """Make results; `gone` lists the keys of those that were let go of."""

    def make(key, graph="g", size=10, *, session=False):
        return RetainedResult(
            key, "shuffle", graph, f"vertex of {key}", session, object(), size, let_go=lambda: make.gone.append(key)
        )

    make.gone = []
    return make


def keys(store):
    return [one.key for one in store.entries()]


def test_a_graph_finds_its_own(store, result):
    one = result("a")
    store.add(one)
    assert store.find("g", "a", of_session=False) is one
    assert store.find("g", "b", of_session=True) is None
    assert store.find("h", "a", of_session=True) is None


def test_what_is_there_for_the_session_is_found_by_who_looks_there(store, result):
    one = result("a", session=True)
    store.add(one)
    assert store.find("h", "a", of_session=True) is one
    assert store.find("h", "a", of_session=False) is None


def test_it_is_bounded_unless_told_otherwise(store, result):
    assert DEFAULT_BYTES == 8 * 1024**3
    for key in "abc":
        store.add(result(key, size=3 * 1024**3))
    assert keys(store) == ["c", "b"]
    assert result.gone == ["a"]


def test_no_more_is_kept_than_is_left_free_on_the_disk(result):
    free = [100]
    store = RetainedResults(free_disk=lambda: free[0])
    for key in "abc":
        store.add(result(key, size=30))
    assert keys(store) == ["c", "b", "a"]
    free[0] = 20
    store.add(result("d", size=30))
    assert keys(store) == ["d", "c"]
    assert result.gone == ["a", "b"]


def test_what_was_used_longest_ago_goes_first(store, result):
    store.set_bound(30)
    for key in "abc":
        store.add(result(key))
    store.use(store.find("g", "a", of_session=False))
    store.add(result("d"))
    assert keys(store) == ["d", "a", "c"]
    assert result.gone == ["b"]


def test_what_is_too_large_alone_is_not_kept(store, result):
    store.set_bound(30)
    store.add(result("a", size=31))
    assert keys(store) == []
    assert result.gone == ["a"]


def test_a_smaller_bound_holds_immediately(store, result):
    for key in "abc":
        store.add(result(key))
    store.set_bound(20)
    assert keys(store) == ["c", "b"]
    assert result.gone == ["a"]
    store.set_bound(0)
    assert keys(store) == []


def test_objects_in_the_drivers_heap_have_a_bound_of_their_own_and_take_nothing_along():
    store = RetainedResults(driver_bytes=100)
    shrunk, busy = [], set()

    def keep(key, driver_bytes=0):
        def shrink():
            shrunk.append(key)
            return key not in busy

        one = RetainedResult(key, "broadcast", "g", key, False, object(), 1, driver_bytes=driver_bytes, shrink=shrink)
        store.add(one)

    for key, driver_bytes in (("a", 60), ("b", 40), ("c", 0)):
        keep(key, driver_bytes)
    assert shrunk == []
    keep("d", 60)
    assert shrunk == ["a"]
    store.use(store.find("g", "a", of_session=False))  # it is made again
    busy.add("b")
    keep("e", 10)
    assert shrunk == ["a", "b", "d"]
    keep("f", 30)
    assert shrunk == ["a", "b", "d", "b"], "what was being read is tried again"
    assert keys(store) == ["f", "e", "a", "d", "c", "b"]


def test_what_cannot_be_without_its_object_goes():
    store = RetainedResults(driver_bytes=100)
    for key in "ab":
        store.add(RetainedResult(key, "subquery", "g", key, False, object(), 60, driver_bytes=60))
    assert keys(store) == ["b"]


def test_an_equal_result_takes_the_place_and_the_name(store, result):
    store.add(result("a"))
    store.add(result("a"))
    assert [one.name for one in store.entries()] == ["g.1"]
    assert result.gone == ["a"]


def test_names_are_the_graphs_with_numbers(store, result):
    for key, graph in (("a", "g"), ("b", "g"), ("c", "h")):
        store.add(result(key, graph))
    assert {one.key: one.name for one in store.entries()} == {"a": "g.1", "b": "g.2", "c": "h.1"}


def test_release_by_name_of_a_result_or_a_graph(store, result):
    for key, graph in (("a", "g"), ("b", "g"), ("c", "h"), ("d", "g")):
        store.add(result(key, graph))
    assert [one.key for one in store.release("g.2")] == ["b"]
    assert [one.key for one in store.release("g")] == ["a", "d"]
    assert keys(store) == ["c"]
    assert result.gone == ["b", "a", "d"]
    assert store.release("g") == []


def test_one_that_cannot_be_let_go_of_does_not_keep_the_others(store, result):
    def fail():
        raise OSError("the session is gone")

    broken = result("a")
    broken.let_go = fail
    store.add(broken)
    store.add(result("b"))
    assert len(store.release("g")) == 2
    assert result.gone == ["b"]
