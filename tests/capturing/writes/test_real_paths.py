"""Paths are resolved as `os.path.realpath` resolves them, also after folders and links have changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from flinkmagic.capturing.writes.real_paths import Folders, forget, real_path


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "a" / "deep").mkdir(parents=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    (tmp_path / "b" / "file").symlink_to(tmp_path / "a" / "file")
    (tmp_path / "b" / "lost").symlink_to(tmp_path / "nowhere" / "file")
    return tmp_path


NAMES = (
    "a", "a/", "a/file", "a/.", "a/..", "a/new", "link", "link/file", "link/deep/new", "link/deep/../file",
    "link/..", "b/file", "b/lost", "nowhere/file", "a/file/below", "link/nowhere/../file", "a//file",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_each_path_leads_where_the_standard_library_says(tree: Path, name: str) -> None:
    path = f"{tree}/{name}"
    assert real_path(path) == os.path.realpath(path)
    assert real_path(path) == os.path.realpath(path)  # and where the folder is known


def test_the_root_has_no_folder() -> None:
    assert real_path("/") == os.path.realpath("/")
    assert real_path("/tmp") == os.path.realpath("/tmp")


def test_a_link_that_leads_elsewhere_is_followed(tree: Path) -> None:
    path = f"{tree}/link/file"
    assert real_path(path) == f"{os.path.realpath(tree)}/a/file"
    (tree / "link").unlink()
    (tree / "link").symlink_to(tree / "b")
    assert real_path(path) == os.path.realpath(path) == f"{os.path.realpath(tree)}/a/file"
    (tree / "b" / "file").unlink()
    assert real_path(path) == f"{os.path.realpath(tree)}/b/file"


def test_a_folder_that_is_renamed_below_a_link_is_resolved_again_after_forgetting(tree: Path) -> None:
    path = f"{tree}/link/file"
    real_path(path)
    (tree / "a").rename(tree / "c")
    (tree / "link").unlink()
    (tree / "link").symlink_to(tree / "c")
    forget()
    assert real_path(path) == f"{os.path.realpath(tree)}/c/file"


def test_a_folder_is_judged_once_until_it_changes(tree: Path) -> None:
    judged: list[str] = []

    def judge(folder: str) -> bool:
        judged.append(folder)
        return folder.endswith("/a")

    folders, home = Folders(judge), os.path.realpath(tree)
    assert [folders.hold(f"{home}/a/{name}") for name in ("file", "new", "deep", "file")] == [True] * 4
    assert judged == [f"{home}/a"]
    assert folders.hold(f"{home}/link/file")
    assert not folders.hold(f"{home}/b/other")
    assert not folders.hold(f"{home}/b/file")  # a link to what lies in a folder of no interest
    assert not folders.hold(f"{home}/nowhere/file")
    assert judged == [f"{home}/a", f"{home}/a", f"{home}/b"]
    (tree / "link").unlink()
    (tree / "link").symlink_to(tree / "b")
    assert not folders.hold(f"{home}/link/other")
    assert judged[3:] == [f"{home}/b"]
    forget()
    assert folders.hold(f"{home}/a/file")
    assert judged[4:] == [f"{home}/a"]


def test_a_folder_of_no_interest_is_told_by_its_own_name(tree: Path) -> None:
    folders = Folders(lambda folder: folder.endswith("/deep"))
    assert folders.hold(f"{tree}/a/deep")
    assert not folders.hold(f"{tree}/a/file")
    assert not folders.hold(f"{tree}/a")
