"""README and site: links lead somewhere, named files exist, and the table of benefits is what was measured."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
LINK = re.compile(r"(?<!\\)\]\(([^)\s]+)\)")
NAMED = re.compile(r"`((?:flinkmagic|tests|docs|notebooks|binder|\.ci)/[\w./-]*)`")
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def script(name: str) -> ModuleType:
    """A script of the site's."""
    specification = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and MyST make them."""
    headings = re.findall(r"^#+ (.+)$", FENCED.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(FENCED.sub("", page.read_text(encoding="utf-8"))):
        if link.startswith(("http://", "https://")):
            continue
        place, _, anchor = link.partition("#")
        target = page if not place else page.parent / place
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_links_of_the_tutorials_lead_somewhere() -> None:
    found = []
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
        links = [link for link in LINK.findall(text) if not link.startswith(("http://", "https://"))]
        assert all((path.parent / link).exists() for link in links), (path.name, links)
        found += links
    assert "06-iterations.ipynb" in found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_a_page_names_exist(page: Path) -> None:
    missing = [name for name in NAMED.findall(page.read_text(encoding="utf-8")) if not (ROOT / name).exists()]
    assert missing == []


def test_what_one_sees_first_is_short() -> None:
    first = (ROOT / "README.md").read_text(encoding="utf-8").partition("\n## ")[0]
    assert 250 < len(first.split()) <= 400


def test_a_badge_opens_the_quickstart_of_the_project_s_own_repository() -> None:
    badges = script("badge")
    made = badges.badge({"urls": {"Repository": "https://github.com/someone/flinkmagic.git"}})
    assert "(https://mybinder.org/v2/gh/someone/flinkmagic/HEAD?urlpath=lab/tree/notebooks/quickstart.ipynb)" in made
    with pytest.raises(ValueError, match="no Binder address is known"):
        badges.badge({"urls": {"Repository": "https://example.org/flinkmagic"}})
    (written,) = badges.PLACE.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    assert written == badges.badge(badges.project())


def test_the_table_of_benefits_is_made_of_the_figures() -> None:
    benefits = script("benefits")
    figures = benefits.saved_figures()
    assert figures["sharing"]["equal"]
    assert figures["notebooks"]["errors"] == figures["notebooks"]["differ"] == 0
    (written,) = benefits.PLACE.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    assert written == benefits.table(figures)
    assert written.count("\n") == 6
