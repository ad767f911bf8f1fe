"""Fixtures: JupyterLab, a browser, notebooks open in it. Without a browser these tests skip and say so."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

HERE = Path(__file__).parent


def _load(name: str) -> ModuleType:
    """Import a module of this folder under its own name: pytest does not put test folders on the path."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]


lab_server = _load("lab_server")


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A running JupyterLab (`lab_server.Lab`)."""
    pytest.importorskip("jupyterlab")
    if lab_server.chromium() is None:
        pytest.skip("no Chromium: apt install chromium, or set FLINKMAGIC_CHROMIUM")
    started, server = lab_server.start_lab(tmp_path_factory.mktemp("lab"))
    yield started
    lab_server.stop_lab(server)


@pytest.fixture(scope="session")
def browser(lab: Any) -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=lab_server.chromium(), args=lab_server.CHROMIUM_FLAGS)
        yield started
        started.close()


@pytest.fixture
def open_notebook(lab: Any, browser: Any) -> Iterator[Callable[..., Any]]:
    """Open a notebook that was written with `lab.write`, as a `lab_server.Notebook`."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})

    def open_one(name: str, **options: bool) -> Any:
        return lab_server.Notebook(context.new_page(), lab, name, **options)

    yield open_one
    context.close()
    lab.end_kernels()
