"""Sessions with masters of their own: two executors that are processes, Spark's own retries, vertices side by side."""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path

import own_process
import pyspark
import pytest

pytestmark = pytest.mark.long


def told_by(folder, script, **environment):
    """What a script of this folder says that has a session of its own."""
    return own_process.told_by("-m", f"tests.deployment.{script}", str(folder), environment=environment).value


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


@pytest.fixture(scope="module")
def two_executors(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two-executors")
    return told_by(folder, "two_executors_process", SPARK_HOME=str(spark_home(folder)), SPARK_LOCAL_IP="127.0.0.1")


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


@pytest.fixture(scope="module")
def two_slots(tmp_path_factory):
    return told_by(tmp_path_factory.mktemp("two-slots"), "two_slots_process")


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


@pytest.fixture(scope="module")
def side_by_side(tmp_path_factory):
    return told_by(tmp_path_factory.mktemp("side-by-side"), "side_by_side_process")


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
