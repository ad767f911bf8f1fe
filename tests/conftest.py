"""Fixtures that several test folders share: one real Spark session for each process of a run."""

from __future__ import annotations

import gc
import importlib
import os
import shutil
import sys
import tempfile
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Tests are short: what the JVM's second compiler makes faster takes it longer to compile. What the first one compiles
# for thousands of tests does not fit into 48 MB, its share by default: the JVM would throw code away and compile it
# again. Kernels and scripts that tests start inherit it.
for _name in ("SPARK_SUBMIT_OPTS", "SPARK_LAUNCHER_OPTS"):
    os.environ.setdefault(_name, "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m")

ARCHIVE = "FLINKMAGIC_TEST_ARCHIVE"
"""Names the folder of the class archive to the processes of a run."""

ORDERED = "FLINKMAGIC_TESTS_ORDERED"
"""Set for the processes of a run of all tests, which run the files in an order of ours."""

FIRST = (
    "differential/test_differential.py",
    "differential/test_effects.py",
    "deployment/test_lost_executors.py",
    "deployment/test_own_sessions.py",
    "deployment/test_standalone_cluster.py",
    "deployment/test_stopped_session.py",
    "magics/test_flink_magics.py",
    "magics/test_live_view.py",
)
"""Files that take long for few tests, most of it in other processes: begun last, one would keep a worker alone."""

EARLY = ("conformance", "graph")
"""Folders of tests that take milliseconds and no JVM, while the archive is made."""

LAST = ("conformance", "display", "functions", "graph", "scheduling", "simulation")
"""Folders of such tests that fill up what is left."""

LISTENER = """
import java.util.ArrayList;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.util.QueryExecutionListener;

public class Heard implements QueryExecutionListener {
    private final ArrayList all = new ArrayList();

    public synchronized void onSuccess(String name, QueryExecution query, long nanos) {
        all.add(name);
        all.add(query);
    }

    public synchronized void onFailure(String name, QueryExecution query, Exception error) {
        all.add(name + " failed");
        all.add(query);
    }

    public synchronized Object next() {
        return all.isEmpty() ? null : all.remove(0);
    }
}
"""


def pytest_configure(config: pytest.Config) -> None:
    """Order the files where several processes run all tests; archive Spark's classes for those that start many JVMs."""
    parallel = getattr(config.option, "numprocesses", None) and not hasattr(config, "workerinput")
    if not parallel or config.option.file_or_dir or config.option.collectonly:
        return
    # xdist would begin with the files that have the most tests.
    config.option.loadscopereorder = False
    os.environ[ORDERED] = "1"
    if "not long" in config.option.markexpr:
        return  # two or three JVMs: they start sooner than an archive is made
    from tests import class_archive

    folder = Path(tempfile.mkdtemp(prefix="flinkmagic-classes-"))
    making = class_archive.start(folder)
    os.environ[ARCHIVE] = str(folder)
    os.environ[class_archive.OPTIONS] = class_archive.options_with(folder, os.environ)

    def clean_up() -> None:
        making.kill()
        making.wait()
        shutil.rmtree(folder, ignore_errors=True)

    config.add_cleanup(clean_up)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave most cases of a matrix to a longer run; let the workers of a run of all begin with what takes long."""
    cases = Counter[str]()
    for item in items:
        matrix = item.get_closest_marker("matrix")
        if matrix is not None:
            test = item.nodeid.partition("[")[0]
            left_out = cases[test] % matrix.args[0]
            is_long = item.get_closest_marker("long") is not None
            if left_out and not is_long:
                item.add_marker(pytest.mark.long)
            if left_out and (is_long or left_out % 3 != 1):
                item.add_marker(pytest.mark.exhaustive)
            cases[test] += 1
    if ORDERED not in os.environ:
        return
    tests = Path(__file__).parent

    def turn(item: pytest.Item) -> int:
        place = item.path.relative_to(tests)
        if ARCHIVE in os.environ and place.parts[0] in EARLY:
            return -len(FIRST) - 1
        if place.as_posix() in FIRST:
            return FIRST.index(place.as_posix()) - len(FIRST)
        return int(place.parts[0] in LAST)

    items.sort(key=turn)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Keep what thousands of collected tests consist of out of each later garbage collection."""
    gc.collect()
    gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let a worker wait for the archive before its first test that may start a JVM."""
    if ARCHIVE in os.environ and item.path.relative_to(Path(__file__).parent).parts[0] not in EARLY:
        from tests import class_archive

        class_archive.wait(Path(os.environ[ARCHIVE]))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A real local session with two cores; its warehouse and scratch space are thrown away."""
    from flinkmagic.local_spark import local_session
    from tests.quick_driver import quicken

    home = tmp_path_factory.mktemp("spark")
    session = local_session(
        app_name="flinkmagic-tests",
        master="local[2]",
        config={
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            # Tests ask the status stores what ran; by default these forget all but the last thousand.
            "spark.ui.retainedJobs": "100000",
            "spark.ui.retainedStages": "100000",
            "spark.sql.ui.retainedExecutions": "100000",
            "spark.driver.memory": "2g",
            # Where Spark does not merge small partitions, in a cache's plan or a stream, each of 200 would be a task.
            "spark.sql.shuffle.partitions": "16",
            # By default a page of an aggregation takes some ten megabytes, which are filled with zeros for each task.
            "spark.buffer.pageSize": "1m",
            "spark.python.daemon.module": "tests.quick_daemon",
            # Spark looks every two seconds whether a task with a Python worker was ended, and gives that two more.
            "spark.python.task.killTimeout": "50ms",
            "spark.executorEnv.PYTHONPATH": str(Path(__file__).parents[1]),
            "spark.sql.warehouse.dir": str(home / "warehouse"),
            "spark.local.dir": str(home / "scratch"),
            "spark.driver.extraJavaOptions": f"-Dderby.system.home={home / 'derby'}",
        },
    )
    # Failing tasks are part of the tests; Spark would log each of them at length.
    session.sparkContext.setLogLevel("FATAL")
    quicken(session)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def listener_class(spark: SparkSession) -> Any:
    """Compiled once: py4j remembers methods by a class's name."""
    jvm: Any = spark._jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader())
    compiler.cook(LISTENER)
    return compiler.getClassLoader().loadClass("Heard")


@pytest.fixture
def query_listener(spark: Any, listener_class: Any) -> Iterator[Any]:
    """A listener of the session's queries: `next()` gives the name of one, then the query, then the next one's name."""
    manager = spark._jsparkSession.listenerManager()
    listener = listener_class.newInstance()
    manager.register(listener)
    yield listener
    manager.unregister(listener)


@pytest.fixture
def nothing_cached(spark: SparkSession) -> None:
    """Nobody's rows are in memory: beside the user's, ours would be kept on disk alone."""
    spark.catalog.clearCache()
    for rdd in spark.sparkContext._jsc.getPersistentRDDs().values():
        if not rdd.rdd().isLocallyCheckpointed():  # whose rows are nowhere else
            rdd.unpersist()


@pytest.fixture(autouse=True)
def nothing_retained(request: pytest.FixtureRequest) -> Iterator[None]:
    """No test finds what an earlier one's jobs have computed, or another session active."""
    if "spark" in request.fixturenames:
        from flinkmagic.jvm.java import static_method

        session = request.getfixturevalue("spark")
        static_method(session._jvm, "SparkSession", "setActiveSession")(session._jsparkSession)
    yield
    if "spark" in request.fixturenames:
        from flinkmagic.session import release_retained, retained

        session = request.getfixturevalue("spark")
        for graph in {one.graph for one in retained(session)}:
            release_retained(session, graph)


@pytest.fixture
def eventually() -> Callable[..., None]:
    """Wait until something holds, for a minute at most."""

    def wait(condition: Callable[[], object], seconds: float = 60.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, "it did not come true in time"
            time.sleep(0.01)

    return wait


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Write modules into a folder on the path; forgotten after the test."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)

    def write(**sources: str) -> None:
        for name, source in sources.items():
            path = tmp_path / (name.replace("__", "/", 1) + ".py")
            path.parent.mkdir(exist_ok=True)
            path.write_text(textwrap.dedent(source))
        importlib.invalidate_caches()

    yield write
    for name in set(sys.modules) - before:
        del sys.modules[name]
