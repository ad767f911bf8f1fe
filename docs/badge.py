"""Writes the README's Binder badge: `python docs/badge.py`.

It is made of `Repository` in `project.urls` of `pyproject.toml`, which has to be a repository on GitHub; without that
there is no badge.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PLACE = re.compile(r"(?<=<!-- binder -->\n).*?(?=<!-- /binder -->)", re.DOTALL)
FIRST = "notebooks/quickstart.ipynb"


def badge(project: dict[str, Any]) -> str:
    """Return the badge in Markdown, a line of its own; nothing if the project names no repository.

    Parameters
    ----------
    project : dict
        The table `project` of `pyproject.toml`.

    Raises
    ------
    ValueError
        If the repository is not on GitHub: Binder's address for it would be another one.
    """
    url = project.get("urls", {}).get("Repository")
    if url is None:
        return ""
    where = urlsplit(url)
    if where.netloc != "github.com":
        raise ValueError(f"no Binder address is known for {url}")
    name = where.path.strip("/").removesuffix(".git")
    launch = f"https://mybinder.org/v2/gh/{name}/HEAD?urlpath=lab/tree/{FIRST}"
    return f"[![Open the quickstart in Binder](https://mybinder.org/badge_logo.svg)]({launch})\n"


def project() -> dict[str, Any]:
    """Return the table `project` of `pyproject.toml`."""
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found


def main() -> None:
    """Put the badge into the README."""
    text = README.read_text(encoding="utf-8")
    README.write_text(PLACE.sub(lambda _: badge(project()), text, count=1), encoding="utf-8")


if __name__ == "__main__":
    main()
