"""Effects past Spark on what is pending: each is settled, or refused before it happens; others are let through."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import flinkmagic
from flinkmagic.errors.capturing import PendingWriteError

READ = "df = spark.read.parquet(at('a'))\n"
WRITE = READ + "df.write.parquet(at('out/x'))\n"

TOUCHING = {
    "input replaced": "import os, shutil\nshutil.rmtree(at('a'))\nos.rename(at('b'), at('a'))",
    "input removed by pathlib": "import pathlib\n[p.unlink() for p in sorted(pathlib.Path(at('a')).iterdir())]",
    "input overwritten": "import pathlib\nnext(pathlib.Path(at('a')).glob('part-*')).write_bytes(b'')",
    "input moved": "import os, pathlib\nos.rename(next(pathlib.Path(at('a')).glob('part-*')), at('moved'))",
    "target opened": "try:\n    open(at('out/x/_SUCCESS')).close()\nexcept OSError: pass",
    "target's folder listed": "import os\nos.listdir(at('out'))",
    "target made the working folder": "import os\nhere = os.getcwd()\ntry:\n    os.chdir(at('out/x'))\n"
    "finally:\n    os.chdir(here)",
    "target scanned": "list(__import__('os').scandir(at('.')))",
    "target looked for": "import os\nos.path.exists(at('out/x'))",
    "target looked for by pathlib": "import pathlib\npathlib.Path(at('out/x')).is_dir()",
    "target globbed": "import glob\nglob.glob(at('out/*'))",
    "folder above that is not there": "import os\nos.path.isdir(at('out'))",
    "folder above made": "import os\nos.makedirs(at('out'), exist_ok=True)",
    "pandas reads the target": "import pandas\ntry:\n    pandas.read_parquet(at('out/x'))\nexcept OSError: pass",
    "process": "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'pass'])",
    "shell": "import os\nos.system('true')",
    "signal": "import os\nos.kill(os.getpid(), 0)",
    "socket": "import socket\nsocket.create_connection(('127.0.0.1', port)).close()",
    "request over an open connection": "try:\n    connection.request('GET', '/')\nexcept OSError: pass",
    "database file in the target": "import sqlite3\nsqlite3.connect(at('out/x/db')).close()",
}
HARMLESS = {
    "other file written": "open(at('other'), 'w').write('x')",
    "input read": "open(next(__import__('pathlib').Path(at('a')).glob('part-*')), 'rb').read()",
    "input looked for": "import os\nos.path.exists(at('a'))",
    "link copied": "import os, shutil\nos.symlink(at('b'), at('l'))\n"
    "shutil.copy2(at('l'), at('m'), follow_symlinks=False)\nassert os.path.islink(at('m'))",
    "neighbour removed": "import shutil\nshutil.rmtree(at('b'))",
    "folder above that is there": "import os\nos.path.isdir(at('.'))",
    "memory database": "import sqlite3\nsqlite3.connect(':memory:').close()",
    "temporary folder": "import tempfile\nwith tempfile.TemporaryDirectory() as d:\n    open(d + '/x', 'w').close()",
    "temporary file": "import tempfile\nwith tempfile.NamedTemporaryFile('w', dir=at('.')) as f:\n    f.write('x')",
    "unnamed temporary file": "import tempfile\nwith tempfile.TemporaryFile(dir=at('.')) as f:\n    f.write(b'x')",
    "import": "import importlib.util, sys\nsys.path.insert(0, at('.'))\nimportlib.invalidate_caches()\n"
    "found = importlib.util.find_spec('no_such_module')\nsys.path.pop(0)",
    "signal that is handled": "import os, signal\nbefore = signal.signal(signal.SIGUSR1, lambda *_: None)\n"
    "os.kill(os.getpid(), signal.SIGUSR1)\nsignal.signal(signal.SIGUSR1, before)",
    "rows made": "spark.sparkContext.parallelize(range(10)).map(str)",
    "frame": "spark.createDataFrame([(1,)], ['x'])",
}


@pytest.fixture
def files(numbers: Any) -> None:
    numbers("a", 3)
    numbers("b", 5)


@pytest.mark.usefixtures("files")
class TestEffects:
    @pytest.mark.matrix(4)
    @pytest.mark.parametrize("line", TOUCHING.values(), ids=TOUCHING)
    def test_settle_what_they_touch(self, cell: Any, line: str) -> None:
        with _listener() as cell.namespace["port"]:
            cell.namespace["connection"] = _connected(cell.namespace["port"])
            program = cell.capture(WRITE + line, deploying=True)
        assert cell.deployed == ["x"]
        assert not program.writes
        assert cell.rows("out/x") == [0, 1, 2]

    @pytest.mark.matrix(4)
    @pytest.mark.parametrize("line", TOUCHING.values(), ids=TOUCHING)
    def test_are_refused_before_they_happen(self, cell: Any, line: str) -> None:
        before = cell.files()
        with _listener() as cell.namespace["port"]:
            cell.namespace["connection"] = _connected(cell.namespace["port"])
            with pytest.raises(PendingWriteError):
                cell.capture(WRITE + line)
        assert cell.files() == before

    @pytest.mark.matrix(4)
    @pytest.mark.parametrize("line", HARMLESS.values(), ids=HARMLESS)
    def test_elsewhere_are_let_through(self, cell: Any, line: str) -> None:
        program = cell.capture(WRITE + line)
        assert [write.name for write in program.writes] == ["x"]

    def test_do_not_matter_outside_of_a_capture(self, cell: Any, tmp_path: Path) -> None:
        stat = os.stat
        cell.capture(WRITE)
        assert os.stat is stat
        assert not os.path.exists(tmp_path / "out")

    def test_leave_no_pending_write_behind(self, cell: Any) -> None:
        with pytest.raises(PendingWriteError):
            cell.capture(WRITE + "import os\nos._exit(3)")

    def test_of_other_threads_are_not_the_cells(self, cell: Any) -> None:
        seen: list[bool] = []
        ready, go = threading.Event(), threading.Event()

        def look() -> None:
            go.wait(30)
            seen.append(os.path.exists(cell.at("out/x")))
            ready.set()

        other = threading.Thread(target=look)
        other.start()
        cell.namespace.update(go=go, ready=ready)
        program = cell.capture(WRITE + "go.set()\nassert ready.wait(30)")
        other.join()
        assert seen == [False]
        assert len(program.writes) == 1


BEHIND = {
    "checkpoint": (
        "spark.sparkContext.setCheckpointDir(at('check'))\ndf = spark.read.parquet(at('a')).checkpoint()",
        "import shutil\nshutil.rmtree(at('check'))",
    ),
    "lines of an RDD": (
        "lines = spark.sparkContext.textFile(at('lines')).map(lambda line: (int(line),))\n"
        "df = spark.createDataFrame(lines, 'id long')",
        "import os\nos.remove(at('lines'))",
    ),
}


@pytest.mark.matrix(2)
@pytest.mark.parametrize(("frame", "effect"), BEHIND.values(), ids=BEHIND)
def test_files_behind_an_rdd_are_inputs(cell: Any, numbers: Any, frame: str, effect: str) -> None:
    numbers("a", 3)
    (cell.folder / "lines").write_text("0\n1\n2\n")
    cell.capture(f"{frame}\ndf.write.parquet(at('out/x'))\n{effect}", deploying=True)
    assert cell.deployed == ["x"]
    assert cell.rows("out/x") == [0, 1, 2]


class TestAWriteWithAFunction:
    """What a function that is not known to be pure touches cannot be told: it settles before any file is touched."""

    WRITE = (
        "from pyspark.sql.types import LongType\n"
        "def log(x):\n    with open(at_log, 'a') as f:\n        f.write('x')\n    return x\n"
        "f = F.udf(log, LongType())\n"
        "spark.range(0, 3, 1, 1).select(f('id')).write.parquet(at('out'))\n"
    )

    def test_settles_before_a_file_is_read(self, cell: Any) -> None:
        cell.namespace["at_log"] = cell.at("log")
        cell.capture(self.WRITE + "logged = open(at_log).read()", deploying=True)
        assert cell.namespace["logged"] == "xxx"

    def test_lets_python_read_its_own_files(self, cell: Any) -> None:
        cell.namespace["at_log"] = cell.at("log")
        program = cell.capture(self.WRITE + "import this\nspark.createDataFrame([(1,)], ['x']).count()")
        assert len(program.writes) == 1


class _listener:  # noqa: N801 - a context manager that reads as a statement
    """A socket that accepts connections, on a port of its own."""

    def __enter__(self) -> int:
        self._socket = socket.create_server(("127.0.0.1", 0))
        return int(self._socket.getsockname()[1])

    def __exit__(self, *exception: object) -> None:
        self._socket.close()


def _connected(port: int) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.connect()
    return connection


def test_a_package_that_is_installed_is_not_the_caller_either(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    site.mkdir()
    (site / "flinkmagic").symlink_to(Path(flinkmagic.__file__).parent)
    ask = "from flinkmagic.capturing.hooks import audit; print(audit.__file__, audit._caller())"
    env = {**os.environ, "PYTHONPATH": str(site)}
    asked = subprocess.run([sys.executable, "-c", ask], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert asked.stdout.split() == [str(site / "flinkmagic/capturing/hooks/audit.py"), "<string>"], asked.stderr
