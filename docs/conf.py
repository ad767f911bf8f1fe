"""How Sphinx builds the site: `sphinx-build -W -b html docs out/site`."""

from __future__ import annotations

import shutil
from pathlib import Path

import flinkmagic

HERE = Path(__file__).parent

project = "flinkmagic"
author = "the flinkmagic authors"
version = release = flinkmagic.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # notebooks are saved with their outputs
autodoc_typehints = "none"  # the docstrings say it
autodoc_member_order = "bysource"
napoleon_use_rtype = False

html_theme = "furo"
html_title = f"flinkmagic {release}"
exclude_patterns = ["notebooks/data", "notebooks/out"]
nitpicky = False


def setup(app: object) -> None:
    """Copy the notebooks below the pages: Sphinx reads only what is there."""
    pages = HERE / "notebooks"
    shutil.rmtree(pages, ignore_errors=True)
    pages.mkdir()
    for notebook in sorted((HERE.parent / "notebooks").glob("*.ipynb")):
        shutil.copy(notebook, pages)
