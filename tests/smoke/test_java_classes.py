"""All Java classes of the package are compiled by the running Spark's Janino."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flinkmagic.capturing.driver import java_classes as capturing
from flinkmagic.deployment import java_classes as deployment
from flinkmagic.jvm.driver_classes import SHARED, DriverClasses
from flinkmagic.planning import java_classes as planning
from flinkmagic.reuse import java_classes as reuse

PACKAGE = Path(capturing.__file__).parents[2]
HOMES = (capturing, deployment, planning, reuse)
# Its source is inserted into a query's code, which executors compile (`python_workers`).
BODY = "PythonWorkerWatch"


def _own(classes: DriverClasses) -> DriverClasses:
    """The same classes, of which nothing is compiled yet."""
    return DriverClasses(classes._package, tuple(classes._classes), classes._uses, tuple(classes._filled))


@pytest.mark.parametrize("home", HOMES, ids=lambda home: home.__package__)
def test_every_class_is_compiled(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Any) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    gateway, classes = spark.sparkContext._gateway, _own(home.CLASSES)
    classes.compile_all(gateway)
    compiled = classes._compiled[gateway]
    assert not compiled.is_loaded
    assert set(compiled.constructors) == classes._classes - classes._filled


def test_every_source_is_named() -> None:
    sources = {path.stem for path in PACKAGE.rglob("*.java")}
    named = [name for home in HOMES for name in home.CLASSES._classes - {SHARED}]
    assert sorted([*named, SHARED]) == sorted(sources - {BODY})
