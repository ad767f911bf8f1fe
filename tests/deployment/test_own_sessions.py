"""Sessions with masters of their own: two executors that are processes, Spark's own retries, vertices side by side."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path

import own_process
import pyspark
import pytest

BEGINNING = """
import contextlib
import json
import sys
import threading
import time
from pathlib import Path

import pyarrow.parquet as parquet
from pyspark import InheritableThread
from pyspark.sql import functions as F

import flinkmagic
from flinkmagic.deployment.python_workers import ExecutorWatch

FOLDER = Path(sys.argv[1])

def session(master, **more):
    spark = flinkmagic.local_session("own", master, {
        "spark.ui.enabled": "false", "spark.driver.memory": "1g", "spark.driver.host": "127.0.0.1",
        "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "spark.sql.shuffle.partitions": "2", **more})
    spark.sparkContext.setLogLevel("OFF")
    return spark

def rows(path):
    return sorted(list(row.values()) for row in parquet.read_table(path).to_pylist())

def records(job):
    return [
        {"vertex": task.vertex_id, "subtask": task.subtask, "attempt": task.attempt, "state": task.state.name,
         "slot": task.slot, "executor": task.executor, "start": task.start_ms, "end": task.end_ms, "role": task.role,
         "reason": task.reason, "error": task.error, "stage": task.stage}
        for task in job.tasks()]

def told(job):
    snapshot = job.snapshot()
    return {
        "status": job.status.name, "slots": snapshot.slots_total, "counts": snapshot.task_counts,
        "vertices": {vertex.id: vertex.parallelism for vertex in job.execution_graph.job_vertices},
        "tasks": records(job)}
"""


def told_by(folder, script, **environment):
    """What a script says that has a session of its own."""
    file = folder / "script.py"
    file.write_text(BEGINNING + script)
    return own_process.told_by(str(file), str(folder), environment=environment).value


def spark_home(folder):
    """The installed Spark under another name: workers of a local-cluster put their folders into Spark's home."""
    home = folder / "spark"
    home.mkdir()
    for name in ("bin", "jars", "python"):
        (home / name).symlink_to(Path(pyspark.__file__).parent / name, target_is_directory=True)
    return home


def own_tasks(job):
    """The records of a job's own subtasks."""
    return [task for task in job["tasks"] if task["role"] == "task"]


# -- local-cluster -----------------------------------------------------------------------------------------------------

TWO_EXECUTORS = """
def program(out):
    numbers = spark.range(0, 3000, 1, 4).select("id", (F.col("id") % 60).alias("k"))
    weights = spark.range(0, 50, 1, 2).select(F.col("id").alias("k"), (F.col("id") * 7).alias("weight"))
    parities = spark.range(0, 2, 1, 1).select(
        F.col("id").alias("parity"), F.when(F.col("id") == 0, "even").otherwise("odd").alias("kind"))
    doubled = F.udf(lambda number: 2 * number, "long")
    joined = numbers.hint("merge").join(weights, "k").withColumn("double", doubled("id"))
    named = joined.join(F.broadcast(parities), F.col("id") % 2 == F.col("parity"))
    named.select("id", "weight", "double", "kind").write.parquet(f"{out}/rows")
    named.groupBy("kind").agg(F.sum("double").alias("s"), F.count("*").alias("n")).write.parquet(f"{out}/sums")
    return named

spark = session("local-cluster[2,1,1024]", **{"spark.python.task.killTimeout": "1h"})
store = spark.sparkContext._jsc.sc().statusStore()
deadline = time.monotonic() + 60
while (registered := store.executorList(True).size()) < 3:
    assert time.monotonic() < deadline, f"{registered - 1} executors"
    time.sleep(0.05)
plain = program(FOLDER / "plain")
with flinkmagic.capture(spark) as captured:
    program(FOLDER / "ours")
assert not (FOLDER / "ours").exists()
graph = flinkmagic.compile(captured, "two", parallelism=2)
job = graph.run()

def until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "not so within 60 s"
        time.sleep(0.05)

def running_on():
    found = store.executorList(True)
    executors = [found.apply(number) for number in range(found.size())]
    return sorted(executor.id() for executor in executors if executor.activeTasks())

def waiting(batches):
    while not (FOLDER / "go").exists():
        time.sleep(0.05)
    yield from batches

def busy(number):
    while True:
        number += 1

def cancelled(frame, tasks):
    # A job of ours, while its tasks run in Python workers.
    job = flinkmagic.compile({"rows": frame}, name="cancelled").run(wait=False)
    until(lambda: len(running_on()) == tasks)
    # A worker that is still starting up cannot be ended.
    time.sleep(1)
    job.cancel()
    job.wait(60)
    return {"status": job.status.name, "states": [task.state.name for task in job.tasks()]}

def of_the_user(frame):
    counted.append(frame.count())

def cancelled_by_the_user(frame, go):
    # What still runs of a job of the user's own, some time after that.
    def count():
        sc.setJobGroup("users", "the user's own work", interruptOnCancel=True)
        with contextlib.suppress(Exception):
            frame.count()
    thread = InheritableThread(target=count)
    thread.start()
    until(lambda: len(running_on()) == 1)
    time.sleep(1)
    sc.cancelJobGroup("users")
    time.sleep(1.5)
    still = len(running_on())
    go.touch()
    thread.join(60)
    until(lambda: not running_on())
    return still

one, two = (spark.range(0, number, 1, number) for number in (1, 2))
cancellations = [cancelled(two.mapInArrow(waiting, "id long"), 2)]
until(lambda: not running_on())
cancellations.append(cancelled(two.select(F.udf(busy, "long")("id").alias("id")), 2))
until(lambda: not running_on())
sc, counted = spark.sparkContext, []
users = threading.Thread(target=of_the_user, args=(one.mapInArrow(waiting, "id long"),))
users.start()
until(lambda: len(running_on()) == 1)
of_the_users = running_on()
cancellations.append(cancelled(one.mapInArrow(waiting, "id long"), 2))
until(lambda: len(running_on()) == 1)
still = running_on()
(FOLDER / "go").touch()
users.join()
until(lambda: not running_on())
(FOLDER / "go").unlink()
spared = cancelled_by_the_user(one.mapInArrow(waiting, "id long"), FOLDER / "go")
spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
found = store.jobsList(None)
every = [found.apply(number) for number in range(found.size())]
watch = ExecutorWatch.of(sc)
reached = sorted(watch._asked), sorted(watch._missed), watch._is_refused

print(json.dumps({
    **told(job),
    "reached": reached,
    "cancellations": cancellations,
    "spared": spared,
    "user": {"before": of_the_users, "after": still, "counted": counted},
    "watch": [[job.numTasks(), job.numFailedTasks()] for job in every if job.jobTags().contains("flinkmagic-watch")],
    "rows": [rows(FOLDER / who / "rows") for who in ("plain", "ours")],
    "sums": [rows(FOLDER / who / "sums") for who in ("plain", "ours")],
    "plan": plain._jdf.queryExecution().executedPlan().toString(),
    "shown": sorted({task.executor for task in job.snapshot().tasks}),
}))
spark.stop()
"""


@pytest.fixture(scope="module")
def two_executors(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two-executors")
    return told_by(folder, TWO_EXECUTORS, SPARK_HOME=str(spark_home(folder)), SPARK_LOCAL_IP="127.0.0.1")


def test_joins_and_python_on_two_executors_write_the_rows_of_a_plain_run(two_executors):
    assert two_executors["status"] == "FINISHED"
    numbers = [number for number in range(3000) if number % 60 < 50]
    expected = [[number, number % 60 * 7, 2 * number, ("even", "odd")[number % 2]] for number in numbers]
    sums = [[kind, sum(row[2] for row in expected if row[3] == kind), 1250] for kind in ("even", "odd")]
    assert two_executors["rows"] == [expected, expected]
    assert two_executors["sums"] == [sums, sums]
    for operator in ("SortMergeJoin", "BroadcastHashJoin", "EvalPython"):
        assert operator in two_executors["plan"]


def test_both_executors_run_tasks_each_in_a_slot_of_its_own(two_executors):
    tasks = two_executors["tasks"]
    assert two_executors["slots"] == 2
    assert two_executors["shown"] == ["0", "1"]
    assert {(task["executor"], task["slot"]) for task in tasks} == {("0", "0_0"), ("1", "1_0")}
    assert {task["state"] for task in tasks} == {"FINISHED"}


def test_every_subtask_of_every_vertex_is_finished(two_executors):
    widths = two_executors["vertices"]
    assert two_executors["counts"] == {"FINISHED": sum(widths.values())}
    ran = Counter(task["vertex"] for task in own_tasks(two_executors))
    assert ran.keys() == widths.keys()
    assert all(0 < ran[vertex] <= width for vertex, width in widths.items())


def test_cancel_ends_tasks_that_wait_for_python_workers_on_executors(two_executors):
    # Spark itself would let each of them live for an hour.
    first, second, third = two_executors["cancellations"]
    assert first == second == {"status": "CANCELED", "states": ["CANCELED", "CANCELED"]}
    assert third == {"status": "CANCELED", "states": ["CANCELED"]}


def test_cancel_leaves_a_python_worker_of_the_users_on_another_executor_alone(two_executors):
    user = two_executors["user"]
    assert user["before"] == user["after"]
    assert user["counted"] == [1]


def test_a_python_worker_of_a_job_that_the_user_cancelled_is_left_to_spark(two_executors):
    assert two_executors["spared"] == 1


def test_the_executors_are_asked_once_to_watch_their_python_workers(two_executors):
    assert two_executors["watch"] == [[2, 0]]
    assert two_executors["reached"] == [["0", "1"], [], False]


# -- Spark's own retries -----------------------------------------------------------------------------------------------

TWO_SLOTS = """
spark = session("local[2,4]")

def passes_the_second_time(number, marker):
    def check(value):
        if value == number:
            try:
                marker.touch(exist_ok=False)
            except FileExistsError:
                return value
            raise ValueError(f"no {number} the first time")
        return value
    return F.udf(check, "long")

def go(name, restart):
    folder = FOLDER / name
    folder.mkdir()
    with flinkmagic.capture(spark) as program:
        numbers = spark.range(0, 1000, 1, 4).select(passes_the_second_time(600, folder / "map")("id").alias("id"))
        sums = numbers.groupBy((F.col("id") % 7).alias("k")).agg(F.sum("id").alias("s"))
        sums.select(passes_the_second_time(3, folder / "write")("k").alias("k"), "s").write.parquet(f"{folder}/out")
    job = flinkmagic.compile(program, name, parallelism=2, restart=restart).run()
    graph = job.execution_graph
    return {
        **told(job),
        "rows": rows(folder / "out"),
        "files": len(list((folder / "out").glob("part-*"))),
        "errors": len(job.snapshot().errors) + len(job.exceptions()),
        "restarts": job.info().number_of_restarts,
        "attempts": [graph.current_execution(index).attempt for index in range(graph.n_vertices)],
        "order": [vertex.id for vertex in graph.job_vertices]}

def slowly(batches):
    import time
    yield from batches
    time.sleep(0.2)

def ordered(name):
    with flinkmagic.capture(spark) as program:
        for number in range(6):
            # Earlier ones take longer to prepare.
            numbers = spark.range(number * 10, number * 10 + 10, 1, 1)
            for step in range(4 * (5 - number)):
                numbers = numbers.select((F.col("id") + step - step).alias("id"))
            numbers.mapInArrow(slowly, numbers.schema).write.parquet(f"{FOLDER}/{name}/{number}")
    job = flinkmagic.compile(program, name, share="never").run()
    order = [vertex.id for vertex in job.execution_graph.job_vertices]
    stages = {task.vertex_id: task.stage for task in job.tasks()}
    return {"status": job.status.name, "stages": [stages[vertex] for vertex in order]}

retried = {"none": go("without", "none"), "fixed-delay": go("with_restarts", "fixed-delay:3:1s")}
ordered("cold")
print(json.dumps({**retried, "in order": [ordered(f"run{number}") for number in range(4)]}))
spark.stop()
"""


@pytest.fixture(scope="module")
def two_slots(tmp_path_factory):
    return told_by(tmp_path_factory.mktemp("two-slots"), TWO_SLOTS)


@pytest.fixture(params=["none", "fixed-delay"])
def retried(two_slots, request):
    return two_slots[request.param]


def test_a_task_that_spark_tries_again_leaves_the_rows_exact(retried):
    assert retried["status"] == "FINISHED"
    assert retried["rows"] == [[k, sum(range(k, 1000, 7))] for k in range(7)]
    _, write = retried["order"]
    assert retried["files"] == retried["vertices"][write] == 2


def test_sparks_own_retry_is_no_failure_and_no_restart_of_the_job(retried):
    assert (retried["errors"], retried["restarts"]) == (0, 0)
    assert set(retried["attempts"]) == {0}
    assert retried["counts"] == {"FINISHED": sum(retried["vertices"].values())}


def test_the_records_show_the_attempt_that_failed_and_the_one_that_passed(retried):
    told = {}
    for task in own_tasks(retried):
        about = (task["attempt"], task["state"], task["reason"])
        told.setdefault((task["vertex"], task["subtask"]), []).append(about)
    twice = [subtask for subtask, attempts in told.items() if len(attempts) > 1]
    first, last = retried["order"]
    assert (first, 2) in twice
    assert [vertex for vertex, _ in twice] == [first, last]
    for subtask, attempts in told.items():
        if subtask in twice:
            assert attempts == [(0, "FAILED", "ExceptionFailure"), (1, "FINISHED", "")]
        else:
            assert attempts == [(0, "FINISHED", "")]
    errors = [task["error"] for task in own_tasks(retried) if task["state"] == "FAILED"]
    assert "ValueError: no 600 the first time" in errors[0]
    assert "ValueError: no 3 the first time" in errors[1]


# -- side by side ------------------------------------------------------------------------------------------------------

SIDE_BY_SIDE = """
spark = session("local[4]")
store = spark.sparkContext._jsc.sc().statusStore()

def slowly(frame, seconds):
    def wait(batches):
        import time
        yield from batches
        time.sleep(seconds)
    return frame.mapInArrow(wait, frame.schema)

def jobs():
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    found = store.jobsList(None)
    every = [found.apply(number) for number in range(found.size())]
    return [
        {"id": job.jobId(), "group": job.jobGroup().get(),
         "stages": [int(stage) for stage in job.stageIds().mkString(",").split(",")],
         "tags": [tag for tag in job.jobTags().mkString(",").split(",") if tag]}
        for job in every]

def go(name, **options):
    with flinkmagic.capture(spark) as program:
        slowly(spark.range(0, 10, 1, 2), 1.0).write.parquet(f"{FOLDER}/{name}/first")
        slowly(spark.range(10, 20, 1, 2), 1.0).write.parquet(f"{FOLDER}/{name}/second")
    job = flinkmagic.compile(program, name, **options).run(wait=False)
    counted = spark.range(0, 100, 1, 2).count()
    job.wait()
    return {
        **told(job),
        "counted": counted,
        "rows": [rows(FOLDER / name / which) for which in ("first", "second")]}

spark.sparkContext.setJobGroup("users", "the user's own work")
# The workers are there before anything is compared.
slowly(spark.range(0, 4, 1, 4), 0.5).count()
print(json.dumps({"free": go("free"), "limited": go("limited", slots=2), "jobs": jobs()}))
spark.stop()
"""


@pytest.fixture(scope="module")
def side_by_side(tmp_path_factory):
    return told_by(tmp_path_factory.mktemp("side-by-side"), SIDE_BY_SIDE)


def two_vertices(job):
    """The tasks of each of the two vertices."""
    by_vertex = {vertex: [task for task in job["tasks"] if task["vertex"] == vertex] for vertex in job["vertices"]}
    assert [len(tasks) for tasks in by_vertex.values()] == [2, 2]
    return by_vertex.values()


@pytest.mark.parametrize("name", ["free", "limited"])
def test_both_writes_have_their_rows_and_a_job_of_the_users_runs_beside_them(side_by_side, name):
    job = side_by_side[name]
    assert job["status"] == "FINISHED"
    assert job["rows"] == [[[number] for number in range(10)], [[number] for number in range(10, 20)]]
    assert job["counted"] == 100


def test_tasks_of_two_vertices_run_at_the_same_time(side_by_side):
    job = side_by_side["free"]
    first, second = two_vertices(job)
    for one, other in product(first, second):
        assert max(one["start"], other["start"]) < min(one["end"], other["end"])
    assert job["slots"] == 4
    assert {task["slot"] for task in job["tasks"]} == {f"driver_{number}" for number in range(4)}


def test_with_two_slots_one_vertex_runs_after_the_other(side_by_side):
    job = side_by_side["limited"]
    first, second = sorted(two_vertices(job), key=lambda tasks: tasks[0]["start"])
    assert max(task["end"] for task in first) <= min(task["start"] for task in second)
    for one, other in (first, second):
        assert max(one["start"], other["start"]) < min(one["end"], other["end"])
    assert job["slots"] == 2


def test_the_jobs_of_each_vertex_carry_a_tag_of_their_own_and_those_of_the_user_none(side_by_side):
    vertex_of = {
        task["stage"]: (name, task["vertex"]) for name in ("free", "limited") for task in side_by_side[name]["tasks"]
    }
    tags, groups, users = {}, {}, []
    for job in side_by_side["jobs"]:
        ours = [tag for tag in job["tags"] if tag.startswith("flinkmagic-")]
        vertices = {vertex_of[stage] for stage in job["stages"] if stage in vertex_of}
        if not vertices:
            users.append(job)
            assert (ours, job["group"]) == ([], "users")
            continue
        (vertex,) = vertices
        assert len(ours) == 1
        tags.setdefault(vertex, set()).update(ours)
        groups.setdefault(vertex[0], set()).add(job["group"])
    assert tags.keys() == set(vertex_of.values())
    assert len(tags) == 4
    assert all(len(of_vertex) == 1 for of_vertex in tags.values())
    assert len(set.union(*tags.values())) == 4
    # The vertices of one run have a group in common.
    assert [len(of_job) for of_job in groups.values()] == [1, 1]
    assert len({"users", *groups["free"], *groups["limited"]}) == 3
    assert len(users) >= 3


# -- the order in which Spark gets them --------------------------------------------------------------------------------


def test_spark_gets_what_waits_for_slots_in_the_order_of_the_decision(two_slots):
    assert len(two_slots["in order"]) == 4
    for run in two_slots["in order"]:
        assert run["status"] == "FINISHED"
        first, second, *others = run["stages"]
        assert max(first, second) < min(others)
        assert others == sorted(others)
