"""Copies the tutorial notebooks to the reader's own folder, and opens them in JupyterLab (`flinkmagic tutorials`)."""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import flinkmagic
from flinkmagic.errors.usage import MissingExtraError

FIRST = "quickstart.ipynb"


def add_parser(subparsers: Any) -> None:
    """Declare the command's options."""
    parser = subparsers.add_parser(
        "tutorials",
        help="copy the tutorial notebooks to a folder and open them",
        description="Copies the tutorial notebooks and their data to a folder, and opens the first one in JupyterLab. "
        "Notebooks that are there already are left as they are, edits included.",
    )
    parser.add_argument("--out", type=Path, default=Path("flinkmagic-tutorials"), help="the folder (%(default)s)")
    parser.add_argument("--no-lab", action="store_true", help="copy them only")
    parser.add_argument(
        "lab", nargs="*", metavar="-- OPTION", help="options for JupyterLab: -- --no-browser --port 8889"
    )


def run(arguments: argparse.Namespace) -> int:
    """Copy the notebooks and open JupyterLab; return the command's exit code.

    Raises
    ------
    MissingExtraError
        If JupyterLab is to be opened and is not installed.
    """
    if not arguments.no_lab and importlib.util.find_spec("jupyterlab") is None:
        raise MissingExtraError("demo", ["jupyterlab"])
    folder = arguments.out.resolve()
    first = lay_out(folder, keep=True)
    print(f"The notebooks are in {folder}", flush=True)
    if arguments.no_lab:
        return 0
    return subprocess.call(
        [sys.executable, "-m", "jupyterlab", str(first), *_as_root(arguments.lab), *arguments.lab],
        env=_environment(),
    )


def _as_root(options: Sequence[str]) -> list[str]:
    """Return what JupyterLab wants to be told by root, as in a container, where only this machine can reach it."""
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    is_reachable = any("ip" in option.partition("=")[0].lstrip("-").lower().split(".") for option in options)
    return ["--allow-root"] if is_root and not is_reachable and "--allow-root" not in options else []


def _environment() -> dict[str, str]:
    """Return the environment of JupyterLab: Spark's Python workers import what the notebooks import."""
    python = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    return python | os.environ


def notebooks_folder() -> Path:
    """Return where the tutorial notebooks are: inside an installed wheel, else beside the package in a checkout."""
    package = Path(flinkmagic.__file__).parent
    inside = package / "_notebooks"
    return inside if inside.is_dir() else package.parent / "notebooks"


def lay_out(folder: Path, *, keep: bool) -> Path:
    """Copy the notebooks, and what they read and import, into a folder; return where the quickstart is.

    Parameters
    ----------
    folder : Path
        Made if it does not exist.
    keep : bool
        Leave existing files as they are, edits included.
    """
    source = notebooks_folder()
    (folder / "data").mkdir(parents=True, exist_ok=True)
    for text in (source / "data").glob("*.txt"):
        shutil.copy(text, folder / "data" / text.name)
    for file in (*source.glob("*.ipynb"), *source.glob("*.py")):
        if not (keep and (folder / file.name).exists()):
            shutil.copy(file, folder / file.name)
    return folder / FIRST
