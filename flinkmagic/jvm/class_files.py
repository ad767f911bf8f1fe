"""Keeps compiled Java classes in the user's cache folder: the next kernel reads them instead of compiling again.

Compiling ours takes seconds in a JVM that has just started, beside the user's first cells. The files are what Python
keeps in ``__pycache__``: made of the sources, for one version of Spark, read only if the user owns them and nobody else
may write them, and of no other use than to save time. Where they cannot be kept or read, the classes are compiled.
"""

from __future__ import annotations

import hashlib
import logging
import os
import stat
import tempfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from platformdirs import user_cache_path

_LOG = logging.getLogger(__name__)

_MOST_FILES = 8
"""Of each package; the oldest go first. Several versions of Spark and of ours may be in use on one machine."""


class ClassFiles:
    """The compiled classes of one package, for one version of Spark.

    Parameters
    ----------
    made_of : iterable of str
        All that they depend on: the sources, and the versions of what they are compiled against.
    """

    def __init__(self, package: str, made_of: Iterable[str]) -> None:
        digest = hashlib.sha256("\0".join(made_of).encode()).hexdigest()
        self._package = package
        self._path = user_cache_path("flinkmagic") / "classes" / f"{package}-{digest[:32]}.zip"

    def read(self) -> dict[str, bytes]:
        """Return the classes by name, each as the bytes of its class file; none if they are not kept."""
        try:
            if not (is_users_alone(self._path.parent) and is_users_alone(self._path)):
                return {}
            with zipfile.ZipFile(self._path) as archive:  # it checks each entry
                return {name: archive.read(name) for name in archive.namelist()}
        except FileNotFoundError:
            return {}
        except (OSError, zipfile.BadZipFile) as error:
            _LOG.debug("the compiled classes of %s are not read: %s", self._package, error)
            return {}

    def write(self, classes: Mapping[str, bytes]) -> None:
        """Keep the classes."""
        try:
            folder = self._path.parent
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            written, name = tempfile.mkstemp(dir=folder, suffix=".tmp")
            with os.fdopen(written, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
                for one, content in classes.items():
                    archive.writestr(one, content)
            Path(name).replace(self._path)
            kept = sorted(folder.glob(f"{self._package}-*.zip"), key=lambda path: path.stat().st_mtime)
            for path in kept[:-_MOST_FILES]:
                path.unlink(missing_ok=True)
        except OSError as error:
            _LOG.debug("the compiled classes of %s are not kept: %s", self._package, error)


def is_users_alone(path: Path) -> bool:
    """Return whether only the user can have written a file or folder."""
    if os.name != "posix":  # a folder of the user's profile
        return True
    found = path.stat()
    return found.st_uid == os.getuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
