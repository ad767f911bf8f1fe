"""Class files that are kept for later kernels."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from flinkmagic.jvm.class_files import ClassFiles

CLASSES = {"a.One": b"\xca\xfe\xba\xbe one", "a.One$Inner": b"\xca\xfe\xba\xbe inner"}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the files."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "flinkmagic" / "classes"


def test_what_was_written_is_read() -> None:
    ClassFiles("a", ["source", "4.3.0"]).write(CLASSES)
    assert ClassFiles("a", ["source", "4.3.0"]).read() == CLASSES


@pytest.mark.parametrize("made_of", [["source", "4.3.1"], ["another source", "4.3.0"], ["source4.3.0"]])
def test_what_was_made_of_something_else_is_not(made_of: list[str]) -> None:
    ClassFiles("a", ["source", "4.3.0"]).write(CLASSES)
    assert ClassFiles("a", made_of).read() == {}


@pytest.mark.parametrize(
    "damage", [lambda content: content[:-40], lambda content: b"", lambda content: b"x" + content[9:]]
)
def test_a_damaged_file_is_not_read(cache: Path, damage: object) -> None:
    files = ClassFiles("a", ["source"])
    files.write(CLASSES)
    [path] = cache.iterdir()
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    assert files.read() == {}
    files.write(CLASSES)
    assert files.read() == CLASSES


def test_a_changed_byte_is_seen(cache: Path) -> None:
    files = ClassFiles("a", ["source"])
    files.write({"a.One": bytes(range(256)) * 16})
    [path] = cache.iterdir()
    content = bytearray(path.read_bytes())
    content[60] ^= 1
    path.write_bytes(content)
    assert files.read() == {}


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
@pytest.mark.parametrize("is_folder", [False, True])
def test_what_others_may_write_is_not_read(cache: Path, is_folder: bool) -> None:
    files = ClassFiles("a", ["source"])
    files.write(CLASSES)
    [path] = cache.iterdir()
    (cache if is_folder else path).chmod(0o777)
    assert files.read() == {}


def test_only_the_last_files_of_a_package_are_kept(cache: Path) -> None:
    for version in range(10):
        ClassFiles("a", [str(version)]).write(CLASSES)
    ClassFiles("a.b", ["0"]).write(CLASSES)
    assert [bool(ClassFiles("a", [str(version)]).read()) for version in range(10)] == [False] * 2 + [True] * 8
    assert ClassFiles("a.b", ["0"]).read() == CLASSES
    assert len(list(cache.iterdir())) == 9


def test_where_nothing_can_be_kept_nothing_is(cache: Path) -> None:
    cache.parent.mkdir()
    cache.touch()
    ClassFiles("a", ["source"]).write(CLASSES)
    assert ClassFiles("a", ["source"]).read() == {}
