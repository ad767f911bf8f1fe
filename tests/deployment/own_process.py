"""Runs scripts that need a Spark session of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]


class Told(NamedTuple):
    """What a script said: the JSON of its last line, and what it warned of."""

    value: Any
    warnings: str


def told_by(*arguments: str, cwd: Path = ROOT, environment: Mapping[str, str] | None = None) -> Told:
    """What a script says that this Python runs, given its arguments."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=os.environ | (environment or {}),
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return Told(json.loads(done.stdout.splitlines()[-1]), done.stderr)
