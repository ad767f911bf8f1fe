"""A real JupyterLab on a free loopback port, and a notebook open in it, driven through Playwright.

The server has folders of its own (settings, kernels' connection files, IPython profile) and runs in a process group
of its own. Used by the browser tests and by the benchmark of the display.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHROMIUM_FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
TIMEOUT_MS = 60_000


def chromium() -> str | None:
    """Where the browser is: $FLINKMAGIC_CHROMIUM, else Chromium or Chrome from PATH."""
    named = os.environ.get("FLINKMAGIC_CHROMIUM")
    return named or next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@dataclass(frozen=True)
class Lab:
    """A running JupyterLab."""

    port: int
    token: str
    root: Path

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}/{path}?token={self.token}"

    def end_kernels(self) -> None:
        """Shut all kernels down."""
        for kernel in self._kernels():
            request = urllib.request.Request(self.url(f"api/kernels/{kernel['id']}"), method="DELETE")
            urllib.request.urlopen(request, timeout=20).close()

    def _kernels(self) -> list[dict[str, Any]]:
        """The kernels' models.

        A closed page may leave a kernel that is starting. Jupyter Server (2.21) lists it before it has given it a
        state and answers 500 until then: `AsyncMappingKernelManager._async_start_kernel`.
        """
        deadline = time.monotonic() + 20
        while True:
            try:
                with urllib.request.urlopen(self.url("api/kernels"), timeout=10) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                if error.code != 500 or time.monotonic() > deadline:
                    raise
            time.sleep(0.1)

    def write(self, name: str, *cells: str | dict[str, Any], metadata: dict[str, Any] | None = None) -> Path:
        """Write a notebook: code as text, or whole cells."""
        made = [
            cell
            if isinstance(cell, dict)
            else {
                "cell_type": "code", "id": f"cell-{i}", "metadata": {}, "source": cell, "outputs": [],
                "execution_count": None,
            }
            for i, cell in enumerate(cells)
        ]  # fmt: skip
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        notebook = {
            "cells": made, "metadata": {"kernelspec": kernel, **(metadata or {})}, "nbformat": 4, "nbformat_minor": 5,
        }  # fmt: skip
        path = self.root / name
        path.write_text(json.dumps(notebook), encoding="utf-8")
        return path


def start_lab(home: Path) -> tuple[Lab, subprocess.Popen[bytes]]:
    """Start a server and wait until it answers."""
    folders = {name: home / name.lower() for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")}
    folders |= {
        name: home / name.lower() for name in ("IPYTHONDIR", "JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR")
    }
    for folder in folders.values():
        folder.mkdir(parents=True)
    quiet = folders["JUPYTERLAB_SETTINGS_DIR"] / "@jupyterlab" / "apputils-extension"
    quiet.mkdir(parents=True)
    settings = {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True}
    (quiet / "notification.jupyterlab-settings").write_text(json.dumps(settings))
    root = home / "notebooks"
    root.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    lab = Lab(port, secrets.token_hex(16), root)
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}",
        f"--IdentityProvider.token={lab.token}", f"--ServerApp.root_dir={root}", "--ServerApp.port_retries=0",
        "--LabApp.expose_app_in_browser=True", "--JupyterNotebookApp.expose_app_in_browser=True",
        "--log-level=ERROR",
    ]  # fmt: skip
    with (home / "server.log").open("wb") as log:
        server = subprocess.Popen(
            command, env={**os.environ, **{name: str(path) for name, path in folders.items()}},
            stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    deadline = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(lab.url("api/status"), timeout=2).close()
        except OSError:
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"JupyterLab did not start: {(home / 'server.log').read_text()}") from None
            time.sleep(0.2)
        else:
            return lab, server


def stop_lab(server: subprocess.Popen[bytes]) -> None:
    """End the server and its kernels: its whole process group."""
    os.killpg(server.pid, signal.SIGTERM)
    try:
        server.wait(15)
    except subprocess.TimeoutExpired:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


class Notebook:
    """A notebook open in JupyterLab, or in Notebook 7."""

    def __init__(self, page: Any, lab: Lab, name: str, *, in_lab: bool = True) -> None:
        self.page, self.lab, self.name = page, lab, name
        self.requests: list[str] = []
        self.dialogs: list[str] = []
        page.set_default_timeout(TIMEOUT_MS)
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss()))
        # A workspace of its own: JupyterLab would open the notebooks of earlier tests beside this one.
        workspace = f"lab/workspaces/{secrets.token_hex(4)}/tree"
        page.goto(lab.url(f"{workspace if in_lab else 'notebooks'}/{name}"))
        page.wait_for_function("window.jupyterapp && document.querySelector('.jp-Notebook .jp-Cell')")

    def command(self, name: str, **arguments: Any) -> None:
        self.page.evaluate("([name, args]) => window.jupyterapp.commands.execute(name, args)", [name, arguments])

    def theme(self, dark: bool) -> None:
        self.command("apputils:change-theme", theme="JupyterLab Dark" if dark else "JupyterLab Light")
        # JupyterLab covers the page while it loads a theme, and lets that fade after the theme is there.
        self.page.wait_for_function(
            f"document.body.dataset.jpThemeLight === '{str(not dark).lower()}'"
            " && !document.querySelector('#jupyterlab-splash')"
        )

    def run_all(self) -> None:
        self.page.wait_for_function(
            "() => { const p = window.jupyterapp.shell.currentWidget; "
            "return p && p.sessionContext && p.sessionContext.session && p.sessionContext.session.kernel; }"
        )
        # Not awaited: the command ends when the last cell has.
        self.page.evaluate("() => void window.jupyterapp.commands.execute('notebook:run-all-cells')")

    def kernel_says(self, expression: str) -> str:
        """Run an expression in the notebook's kernel; return what it prints."""
        said = self.page.evaluate(
            """async (code) => {
              const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
              let said = '';
              const future = kernel.requestExecute({code, store_history: false});
              future.onIOPub = (m) => { if (m.header.msg_type === 'stream') said += m.content.text; };
              await future.done;
              return said.trim();
            }""",
            f"print({expression})",
        )
        return str(said)

    def wait_until_kernel_says(self, expression: str, answer: str) -> None:
        """Ask the notebook's kernel until it says so."""
        deadline = time.monotonic() + TIMEOUT_MS / 1000
        while (said := self.kernel_says(expression)) != answer:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{expression} is {said!r}, and not {answer!r}")
            self.page.wait_for_timeout(100)

    def save(self) -> dict[str, Any]:
        """Save and return what was written."""
        path = self.lab.root / self.name
        before = path.stat().st_mtime_ns
        self.command("docmanager:save")
        deadline = time.monotonic() + 20
        while path.stat().st_mtime_ns == before and time.monotonic() < deadline:
            time.sleep(0.05)
        saved: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return saved

    def save_once(self, holds: Callable[[dict[str, Any]], bool]) -> None:
        """Save until something holds of what was written: what is shown may change a moment before its picture."""
        deadline = time.monotonic() + TIMEOUT_MS / 1000
        while not holds(self.save()):
            assert time.monotonic() < deadline, "it is not in the notebook"
            self.page.wait_for_timeout(100)

    @property
    def screenshots(self) -> Path | None:
        """Where pictures for people are kept: the folder that $FLINKMAGIC_SCREENSHOTS names."""
        folder = os.environ.get("FLINKMAGIC_SCREENSHOTS")
        return Path(folder) if folder else None

    def keep_screenshot(self, name: str) -> None:
        """Write a picture of the page for people, if there is a folder for it."""
        if self.screenshots is not None:
            self.page.screenshot(path=str(self.screenshots / f"{name}.png"))

    def foreign_requests(self) -> list[str]:
        """Addresses outside this machine that the page asked for."""
        own = (f"http://127.0.0.1:{self.lab.port}/", f"ws://127.0.0.1:{self.lab.port}/", "data:", "blob:")
        return [url for url in self.requests if not url.startswith(own)]

    def close(self) -> None:
        self.page.close()
