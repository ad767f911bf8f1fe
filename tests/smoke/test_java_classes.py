"""All Java classes of the package are compiled by the running Spark's Janino."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flinkmagic.capturing.driver import java_classes as capturing
from flinkmagic.deployment import java_classes as deployment
from flinkmagic.jvm.driver_classes import DriverClasses
from flinkmagic.planning import java_classes as planning
from flinkmagic.reuse import java_classes as reuse

HOMES = (capturing, deployment, planning, reuse)


def _own(classes: DriverClasses) -> DriverClasses:
    """The same classes, of which nothing is compiled yet."""
    return DriverClasses(classes._package, filled=tuple(classes._filled), others=tuple(classes._others))


@pytest.mark.parametrize("home", HOMES, ids=lambda home: home.__package__)
def test_every_class_is_compiled(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Any) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    gateway, classes = spark.sparkContext._gateway, _own(home.CLASSES)
    classes.compile_all(gateway)
    compiled = classes._compiled[gateway]
    assert not compiled.is_loaded
    assert set(compiled.constructors) == classes._classes - classes._filled
