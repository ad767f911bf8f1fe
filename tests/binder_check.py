"""What a visitor of the Binder image gets: `PREFIX/bin/python tests/binder_check.py`, in the checkout.

PREFIX is an environment in which Binder's own steps were executed. The server must open the quickstart in JupyterLab,
and its first cell, which starts Spark, must work within a minute of the kernel's start.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import nbformat
from jupyter_client.manager import KernelManager

FIRST_CELL_S = 60
OPENS = "/lab/tree/notebooks/quickstart.ipynb"


CHECKOUT = Path(__file__).parents[1]


def opened() -> str:
    """Start the server that Binder starts, whatever is on PATH, and return the path that its root leads to."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = (f"--port={port}", "--no-browser", "--ServerApp.token=", "--allow-root", "--ServerApp.port_retries=0")
    server = subprocess.Popen(
        [sys.executable, "-m", "notebook", *options],
        cwd=CHECKOUT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    try:
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10) as page:
                    return str(page.url).partition(str(port))[2].partition("?")[0]
            except (urllib.error.URLError, ConnectionError):
                if time.monotonic() > deadline or server.poll() is not None:
                    raise
                time.sleep(0.3)
    finally:
        server.terminate()
        server.wait()


def first_cell_seconds() -> float:
    """Run the quickstart's first cell in a kernel; return the seconds from the kernel's start."""
    notebook = nbformat.read(CHECKOUT / "notebooks" / "quickstart.ipynb", as_version=4)
    source = next(cell.source for cell in notebook.cells if cell.cell_type == "code")
    kernel = KernelManager(kernel_name="python3")
    began = time.monotonic()
    kernel.start_kernel(cwd=str(CHECKOUT / "notebooks"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    client = kernel.blocking_client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=FIRST_CELL_S)
        reply = client.execute_interactive(source, timeout=FIRST_CELL_S, output_hook=lambda message: None)
        seconds = time.monotonic() - began
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)
    if reply["content"]["status"] != "ok":
        raise SystemExit(f"the first cell failed: {reply['content']}")
    return seconds


def main() -> None:
    path = opened()
    if path != OPENS:
        raise SystemExit(f"the server opens {path}, not {OPENS}")
    seconds = first_cell_seconds()
    print(f"opens {path}; the first cell took {seconds:.1f} s from the kernel's start")
    if seconds > FIRST_CELL_S:
        raise SystemExit(f"the first cell may take {FIRST_CELL_S} s")


if __name__ == "__main__":
    main()
