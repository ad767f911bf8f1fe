"""Lists the folders of Spark, flinkmagic, the standard library and packages: they tell whose code a file has."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

import py4j
import pyspark


def _folder(path: str | Path) -> str:
    return os.path.join(os.path.abspath(path), "")


SPARK = tuple(_folder(Path(str(module.__file__)).parent) for module in (pyspark, py4j))
CAPTURING, FLINKMAGIC = (_folder(Path(__file__).parents[level]) for level in (1, 2))
STANDARD_LIBRARY = tuple(_folder(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib"))
INSTALLED = tuple(_folder(sysconfig.get_path(name)) for name in ("purelib", "platlib"))
