"""The layout engine: Graphviz's `dot`, in whichever of its two forms the machine has.

It is `dot` from PATH, else the Graphviz inside the pip-installed `pygraphviz`, behind a small `dot` command of our own
(`dot_command.py`), because inside pygraphviz it is not thread-safe and may end the process that it runs in. Starting
that command takes longer than laying out a graph of fifty nodes: `warm_up` starts one ahead, which waits for its input
and ends when it has answered, or when this process does.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from functools import lru_cache
from pathlib import Path

from flinkmagic.errors.usage import LayoutEngineNotFoundError, LayoutFailedError

_SCRIPT = Path(__file__).with_name("dot_command.py")
_TIMEOUT_S = 120.0

_spare_lock = threading.Lock()
_spare: subprocess.Popen[bytes] | None = None


def engine_available() -> bool:
    """Return whether pictures can be laid out on this machine."""
    return shutil.which("dot") is not None or importlib.util.find_spec("pygraphviz") is not None


def render_dot(source: str, output_format: str) -> str:
    """Run DOT text through the layout engine and return what it prints in `output_format`.

    Raises
    ------
    LayoutEngineNotFoundError
        If there is neither `dot` nor `pygraphviz`.
    LayoutFailedError
        If it refuses the text.
    """
    if use_own_command():
        return _render_with_own(source, output_format)
    import graphviz

    try:
        answer: str = graphviz.pipe_string("dot", output_format, source, encoding="utf-8", quiet=True)
    except graphviz.CalledProcessError as error:
        raise LayoutFailedError(str(error.stderr or error).strip()) from error
    return answer


def warm_up() -> None:
    """Start the engine ahead of the next picture if starting it takes long; return immediately."""
    global _spare
    if not engine_available() or not use_own_command():
        return
    with _spare_lock:
        if _spare is None or _spare.poll() is not None:
            _spare = _start("json0")


@lru_cache(maxsize=1)
def use_own_command() -> bool:
    """Return whether PATH has no `dot`; then the `graphviz` package is given our own command, too."""
    from graphviz.backend import dot_command

    if shutil.which(str(dot_command.DOT_BINARY)) is not None:
        return False
    if importlib.util.find_spec("pygraphviz") is None:
        raise LayoutEngineNotFoundError
    dot_command.DOT_BINARY = _own_dot()
    return True


def _render_with_own(source: str, output_format: str) -> str:
    global _spare
    process = None
    if output_format == "json0":
        with _spare_lock:
            process, _spare = _spare, None
    if process is None or process.poll() is not None:
        process = _start(output_format)
    try:
        answer, complaint = process.communicate(source.encode("utf-8"), _TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise LayoutFailedError(f"no answer within {_TIMEOUT_S:.0f} seconds") from None
    if process.returncode:
        lines = complaint.decode("utf-8", "replace").strip().splitlines()
        raise LayoutFailedError(lines[-1] if lines else f"exit code {process.returncode}")
    return answer.decode("utf-8")


def _start(output_format: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, str(_SCRIPT), "-Kdot", f"-T{output_format}"]
    pipe = subprocess.PIPE
    # A process group of its own: interrupting a notebook's kernel signals the kernel's whole group.
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)


def _end_spare() -> None:
    if _spare is not None and _spare.poll() is None:
        _spare.kill()
        _spare.wait()


atexit.register(_end_spare)


def _own_dot() -> Path:
    """Write a command that starts `dot_command.py` with this interpreter; it lives as long as this process."""
    folder = Path(tempfile.mkdtemp(prefix="flinkmagic-dot-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if os.name == "nt":
        command = folder / "dot.cmd"
        command.write_text(f'@"{sys.executable}" "{_SCRIPT}" %*\r\n', encoding="utf-8")
        return command
    command = folder / "dot"
    words = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(_SCRIPT))} "$@"\n'
    command.write_text(words, encoding="utf-8")
    command.chmod(0o700)
    return command
