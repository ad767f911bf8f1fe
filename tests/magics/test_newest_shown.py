"""The newest of what is shown."""

from __future__ import annotations

from flinkmagic.magics.newest_shown import Newest


def test_the_oldest_is_let_go_of_and_what_is_added_again_is_the_newest() -> None:
    gone: list[str] = []
    newest = Newest(2, gone.append)
    for one in ("a", "b", "a", "c"):
        newest.add(one)
    assert gone == ["b"]
    newest.most = 0
    newest.add("d")
    assert gone == ["b", "a", "c", "d"]


def test_what_is_in_use_does_not_count() -> None:
    gone: list[str] = []
    newest = Newest(1, gone.append, str.islower)
    for one in ("A", "b", "C", "d"):
        newest.add(one)
    assert gone == ["b"]
