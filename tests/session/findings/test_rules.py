"""Each rule finds its fault, says where it is and what it costs, and is silent on the other side of its threshold."""

from __future__ import annotations

from dataclasses import replace

import pytest

from flinkmagic.graph.execution_state import ExecutionState
from flinkmagic.session.findings.facts import InputFacts
from flinkmagic.session.findings.find import RULES
from tests.session.findings.made_facts import find, found, job, operator, task, vertex

MIB = 1 << 20


def even(number=4, took_s=1.0, slots=2, **more):
    """Tasks in waves."""
    return [task(one, one // slots * took_s, took_s, **more) for one in range(number)]


# -- uneven tasks ----------------------------------------------------------------------------------------


def test_a_skewed_partition_costs_the_slots_that_idle_beside_it():
    window = operator("WindowExec")
    tasks = [*even(3, slots=3), task(3, 0, 5, rows_in=20_000)]
    (finding,) = find(job(vertex(*tasks, reads="HASH", operators=(window,)), slots=4))
    assert (finding.rule, finding.cell, finding.line, finding.vertex) == ("skewed-partition", "cell 3", 5, "V")
    assert finding.cost_s == pytest.approx(3 * 4)  # three slots, four seconds
    assert (
        finding.what == "partition 4 of 4 has 20.0 times as much as the others: its task took 5.0 s, the median 1.0 s"
    )
    assert "Window.partitionBy" in finding.cure


def test_partitions_that_are_uneven_cost_nothing_where_the_large_one_is_begun_first():
    tasks = [task(3, 0, 5, rows_in=20_000), *[task(one, one, 1) for one in range(3)], task(4, 3, 1), task(5, 4, 1)]
    assert found(job(vertex(*tasks, reads="HASH"))) == []


def test_the_start_of_python_workers_hides_no_skew():
    """Seen: the first task on each of four slots took five seconds, as did a later one with most of the rows."""
    started = operator("BatchEvalPythonExec", metrics={"pythonTotalTime": 16_000, "pythonProcessingTime": 2_000})
    first = [task(one, 0, 5, slot=f"1_{one}") for one in range(4)]
    later = [task(4 + one, 5, 1.4, slot=f"1_{one}") for one in range(3)]
    large = task(7, 5, 4.8, slot="1_3", rows_in=8500)
    tasks = [*first, *later, large]
    (finding,) = find(job(vertex(*tasks, reads="HASH", operators=(started,)), slots=4))
    assert (finding.rule, finding.cost_s) == ("skewed-partition", pytest.approx(3 * 3.4))
    assert found(job(vertex(*tasks, reads="HASH"), slots=4)) == []


def test_bytes_count_where_rows_do_not_tell():
    tasks = [*even(3, slots=3), task(3, 0, 5, bytes_in=10 * MIB)]
    assert found(job(vertex(*tasks, reads="HASH"), slots=4)) == ["skewed-partition"]


def test_twice_the_median_is_slow_and_less_is_not():
    slow = [*even(3, slots=3), task(3, 0, 2.0, rows_in=9000)]
    assert found(job(vertex(*slow, reads="HASH"), slots=4)) == ["skewed-partition"]
    quick = [*even(3, slots=3), task(3, 0, 1.9, rows_in=9000)]
    assert found(job(vertex(*quick, reads="HASH"), slots=4)) == []


def test_a_straggler_has_no_more_to_read():
    tasks = [*even(3, slots=3), task(3, 0, 5)]
    (finding,) = find(job(vertex(*tasks, reads="HASH"), slots=4))
    assert (finding.rule, finding.certainty) == ("straggling-task", "likely")
    assert finding.what.startswith("subtask 4 took 5.0 times as long as the others with no more to read")
    in_between = [*even(3, slots=3), task(3, 0, 5, rows_in=1600)]
    assert found(job(vertex(*in_between, reads="HASH"), slots=4)) == []


def test_a_task_that_waits_for_its_python_worker_is_no_straggler():
    def beside_a_worker_that_was_there(start_ms):
        metrics = {"pythonTotalTime": start_ms + 200, "pythonProcessingTime": 200}
        calls = operator("MapInPandasExec", metrics=metrics)
        return found(job(vertex(task(0, 0, 1), task(1, 0, 5), operators=(calls,))))

    # The other task was over after a second: for the rest of the start this one has waited.
    assert beside_a_worker_that_was_there(4001) == []
    assert beside_a_worker_that_was_there(4000) == ["straggling-task"]


def test_a_host_is_to_blame_if_all_its_tasks_are_slow():
    tasks = [*even(4, slots=4), *[task(4 + one, 0, 4 + one, executor="9") for one in range(2)]]
    (finding,) = find(job(vertex(*tasks), slots=6))
    assert finding.what.startswith("the tasks on executor 9 took")
    assert "spark.speculation" in finding.cure


# -- memory ----------------------------------------------------------------------------------------------


def test_a_spill_is_charged_by_its_bytes():
    tasks = even(4, took_s=10.0, disk_spilled_bytes=150_000_000)
    (finding,) = find(job(vertex(*tasks, reads="HASH", operators=(operator("SortExec"),))))
    assert (finding.rule, finding.cost_s, finding.operator) == ("spill", pytest.approx(6.0), "Sort")
    assert finding.cure.startswith("%config FlinkMagics.parallelism = 16")
    few = even(2, took_s=4.0, disk_spilled_bytes=16_000_000)
    assert found(job(vertex(*few[:1], reads="HASH"))) == []
    assert found(job(vertex(*few, reads="HASH"))) == ["spill"]


def test_garbage_collection_is_told_from_a_tenth_of_the_time_on():
    (finding,) = find(job(vertex(*even(4, took_s=3.0, gc_ms=300))))
    assert (finding.rule, finding.cost_s) == ("garbage-collection", pytest.approx(1.2))
    assert found(job(vertex(*even(4, took_s=3.0, gc_ms=299)))) == []


def test_a_heap_that_grows_collects_some_garbage_whatever_its_limit():
    assert found(job(vertex(*even(4, gc_ms=250)))) == ["garbage-collection"]
    assert found(job(vertex(*even(4, gc_ms=249)))) == []


# -- too many tasks, too few -----------------------------------------------------------------------------


def tiny(number, took_s=0.02, run_ms=12):
    return [task(one, one // 2 * took_s, took_s, run_ms=run_ms, bytes_in=1000) for one in range(number)]


def test_tiny_tasks_are_charged_with_their_launches():
    source = operator("RangeExec")
    (finding,) = find(job(vertex(*tiny(400), operators=(source,))))
    assert (finding.rule, finding.cost_s) == ("tiny-tasks", pytest.approx(400 * 0.008 * (1 - 8 / 400)))
    assert finding.cure == "spark.range(start, end, step, 4)"
    assert found(job(vertex(*tiny(31), operators=(source,)))) == []  # sixteen for each slot are 32
    assert found(job(vertex(*tiny(400, took_s=0.1, run_ms=50)))) == []


def test_tiny_tasks_over_a_model_s_rows_are_cured_where_these_are_made():
    (finding,) = find(job(vertex(*tiny(400), operators=(operator("ExternalRDDScanExec"),))))
    assert finding.cure.startswith("rdd.coalesce(4)")
    (finding,) = find(job(vertex(*tiny(400), operators=(operator("RDDScanExec"),))))
    assert finding.cure.startswith("df.coalesce(4)")


def test_small_partitions_of_a_shuffle_are_the_shuffle_s_fault():
    above = operator("ShuffleExchangeExec", line=7)
    maps = vertex(*even(2), id="maps", above=above)
    reads = vertex(*[one._replace(start_ms=one.start_ms + 1000, end_ms=one.end_ms + 1000) for one in tiny(400)],
                   reads="HASH", of="maps")  # fmt: skip
    (finding,) = find(job(maps, reads))
    assert (finding.rule, finding.line, finding.operator) == ("shuffle-partitions", 7, "ShuffleExchange")
    large = vertex(*[one._replace(bytes_in=2 * MIB) for one in reads.tasks], reads="HASH", of="maps")
    assert found(job(maps, large)) == []


def test_large_partitions_fewer_than_slots_leave_slots_idle():
    wide = vertex(task(0, 0, 3, bytes_in=80 * MIB), task(1, 0, 3, bytes_in=80 * MIB), reads="HASH")
    assert found(job(wide, slots=4)) == ["shuffle-partitions"]
    assert found(job(wide, slots=2)) == []
    narrow = vertex(task(0, 0, 3, bytes_in=MIB), task(1, 0, 3, bytes_in=MIB), reads="HASH")
    assert found(job(narrow, slots=4)) == []


def test_too_few_tasks_cost_the_slots_that_nothing_else_uses():
    scan = operator("FileSourceScanExec", metrics={"filesSize": 4000})
    alone = vertex(task(0, 0, 3), operators=(scan,))
    (finding,) = find(job(alone))
    assert (finding.rule, finding.cost_s) == ("too-few-tasks", pytest.approx(3.0))
    assert finding.cure == 'spark.conf.set("spark.sql.files.maxPartitionBytes", 1000)'
    beside = vertex(*[task(one, one, 1) for one in range(3)], id="other")
    assert found(job(alone, beside)) == []
    assert found(job(vertex(task(0, 0, 0.4), operators=(scan,)))) == []


def test_tasks_of_a_file_without_a_row_group_do_not_count():
    """Seen: Spark cuts a file of 90 MB in four, and one task has its only row group."""
    metrics = {"filesSize": 90 * MIB, "numFiles": 1, "paths": ["a"], "format": "parquet"}
    scan = operator("FileSourceScanExec", metrics=metrics)
    empty = [task(one, 0, 0.05, rows_in=0, slot=f"1_{one}") for one in range(3)]
    one = vertex(*empty, task(3, 0, 3, rows_in=2_000_000, bytes_in=90 * MIB, slot="1_3"), operators=(scan,))
    (finding,) = find(job(one, slots=4))
    assert (finding.rule, finding.what) == ("too-few-tasks", "all rows in 1 of 4 tasks for 4 slots, for 3.1 s")
    assert finding.cure.startswith("df.repartition(8)")
    by_key = vertex(*one.tasks, reads="HASH")
    assert found(job(by_key, slots=4)) == ["skewed-partition"]


def test_a_columnar_file_is_not_divided_below_its_row_groups():
    def scan(megabytes):
        metrics = {"filesSize": megabytes * MIB, "numFiles": 2, "paths": ["a"], "format": "parquet"}
        return find(job(vertex(task(0, 0, 3), operators=(operator("FileSourceScanExec", metrics=metrics),))))[0].cure

    assert scan(255).startswith("df.repartition(4)")
    assert scan(256) == f'spark.conf.set("spark.sql.files.maxPartitionBytes", {64 * MIB})'


def test_a_handful_of_rows_is_not_spread_unless_python_works_on_them():
    def few(rows, size=1000, kind="HashAggregateExec"):
        own = operator(kind, metrics={"numOutputRows": rows})
        return found(job(vertex(task(0, 0, 3, rows_in=67, bytes_in=size), operators=(own,))))

    assert few(49_999) == []
    assert few(50_000) == ["too-few-tasks"]
    assert few(49_999, size=MIB) == ["too-few-tasks"]
    assert few(67, kind="MapInPandasExec") == ["too-few-tasks"]
    assert found(job(vertex(task(0, 0, 3, rows_in=0, bytes_in=0), operators=(operator("MapPartitionsRDD"),)))) == [
        "too-few-tasks"
    ]


def test_a_small_file_whose_reading_is_short_is_not_spread_unless_python_works_on_it():
    def read(size, seconds, kind="HashAggregateExec"):
        operators = (operator("FileSourceScanExec", metrics={"filesSize": size}), operator(kind))
        return found(job(vertex(task(0, 0, seconds, rows_in=200_000, bytes_in=size), operators=operators)))

    assert read(8 * MIB - 1, 1.9) == []
    assert read(8 * MIB - 1, 2.0) == ["too-few-tasks"]
    assert read(8 * MIB, 0.6) == ["too-few-tasks"]
    assert read(MIB, 0.6, kind="MapInPandasExec") == ["too-few-tasks"]
    assert read(0, 0.6) == ["too-few-tasks"]


def test_garbage_is_no_work_that_more_tasks_would_share():
    scan = operator("FileSourceScanExec", metrics={"filesSize": 4000})
    assert found(job(vertex(task(0, 0, 0.8, gc_ms=79, bytes_in=9 * MIB), operators=(scan,)))) == ["too-few-tasks"]
    assert found(job(vertex(task(0, 0, 0.8, gc_ms=301, bytes_in=9 * MIB), operators=(scan,)))) == []


def test_one_partition_is_the_window_s_or_the_coalesce_s():
    window = vertex(
        task(0, 0, 3, rows_in=50_000), reads="GLOBAL", operators=(operator("SortExec"), operator("WindowExec", 2, 9))
    )
    (finding,) = find(job(window))
    assert (finding.rule, finding.line) == ("one-partition", 9)
    coalesced = vertex(task(0, 0, 3, rows_in=50_000), operators=(operator("CoalesceExec"),))
    (finding,) = find(job(coalesced))
    assert (finding.rule, finding.cure.split()[0]) == ("one-partition", "df.repartition(1)")
    total = vertex(task(0, 0, 3, rows_in=8), reads="GLOBAL", operators=(operator("HashAggregateExec"),))
    assert found(job(total)) == []


def test_files_that_cannot_be_split_explain_the_few_tasks():
    metrics = {"splittable": False, "format": "CSV", "paths": ["file:/a"], "numFiles": 1, "filesSize": 9 * MIB}
    (finding,) = find(job(vertex(task(0, 0, 3), operators=(operator("FileSourceScanExec", metrics=metrics),))))
    assert finding.rule == "unsplittable-files"
    small = {**metrics, "filesSize": MIB}
    assert found(job(vertex(task(0, 0, 3), operators=(operator("FileSourceScanExec", metrics=small),)))) == [
        "too-few-tasks"
    ]


def test_slots_idle_where_the_job_may_not_use_them():
    first, second = vertex(task(0, 0, 2), id="one"), vertex(task(0, 2, 2), id="two")
    (finding,) = find(job(first, second, slots=1, slots_of_session=2))
    assert (finding.rule, finding.vertex, finding.cost_s) == ("idle-slots", "TWO", pytest.approx(2.0))
    assert found(job(first, second, slots=1, slots_of_session=1)) == []
    behind_the_driver = vertex(task(0, 2.5, 2), id="two", reads="HASH", of="one")
    assert found(job(first, behind_the_driver, slots=1, slots_of_session=2)) == []


def test_a_long_wait_between_stages_is_told():
    first = vertex(*even(2), id="one")
    late = vertex(task(0, 2.5, 1), task(1, 2.5, 1), id="two", reads="HASH", of="one")
    (finding,) = find(job(first, late))
    assert (finding.rule, finding.cost_s, finding.certainty) == ("idle-slots", pytest.approx(3.0), "possible")
    soon = vertex(task(0, 1.9, 1), task(1, 1.9, 1), id="two", reads="HASH", of="one")
    assert found(job(first, soon)) == []


def test_a_wait_counts_for_which_slots_idled_beside_those_for_other_stages():
    first = vertex(*even(2), id="one")
    second = vertex(task(0, 1.8, 2), task(1, 1.8, 2), id="two", reads="HASH", of="one")
    # The third stage waited for 800 ms with the second one, and then for its slots.
    third = vertex(task(0, 3.8, 1), task(1, 3.8, 1), id="three", reads="HASH", of="one")
    assert found(job(first, second, third)) == []


def test_a_wait_is_not_told_where_the_whole_driver_is_slow():
    def waiting(other_s):
        first = vertex(*even(2), id="one")
        second = vertex(task(0, 2.5, 1), task(1, 2.5, 1), id="two", reads="HASH", of="one")
        third_at = 3.5 + other_s
        third = vertex(task(0, third_at, 1), task(1, third_at, 1), id="three", reads="HASH", of="two")
        return [(one.rule, one.vertex) for one in find(job(first, second, third))]

    assert waiting(0.74) == [("idle-slots", "TWO")]
    assert waiting(0.76) == []


def test_time_for_which_several_stages_waited_is_charged_once():
    first = vertex(*even(2), id="one")
    late = [
        vertex(task(0, 2.5 + one, 1), task(1, 2.5 + one, 1), id=f"v{one}", reads="HASH", of="one") for one in (0, 1)
    ]
    assert [(one.vertex, one.cost_s) for one in find(job(first, *late))] == [("V0", pytest.approx(3.0))]
    alone = [vertex(task(0, 2 * one, 2), id=f"v{one}") for one in range(3)]
    # The third stage waited four seconds, of which the second one waited two.
    costs = [one.cost_s for one in find(job(*alone, slots=1, slots_of_session=2))]
    assert costs == [pytest.approx(2.0), pytest.approx(2.0)]
    chain = [vertex(task(0, 0, 3), id="v0"), vertex(task(0, 3, 1), id="v1", reads="HASH", of="v0")]
    (finding,) = find(job(*chain, vertex(task(0, 4, 2), id="v2"), slots=1, slots_of_session=2))
    assert (finding.vertex, finding.cost_s) == ("V2", pytest.approx(4.0))


def test_a_broadcast_is_ready_when_the_driver_has_built_it():
    def broadcast(build_ms):
        metrics = {"buildTime": build_ms, "broadcastTime": 100, "numOutputRows": 1_500_000}
        sent = vertex(*even(2), id="sent", kind="broadcast", above=operator("BroadcastExchangeExec", metrics=metrics))
        return found(job(sent, vertex(*[task(one, 2.5, 3) for one in range(2)], reads="BROADCAST", of="sent")))

    assert broadcast(401) == []
    assert broadcast(400) == ["idle-slots"]


def test_the_first_job_of_a_driver_waits_for_it_to_load_its_classes():
    first = vertex(*even(2), id="one")
    late = vertex(task(0, 2.5, 1), task(1, 2.5, 1), id="two", reads="HASH", of="one")
    assert found(job(first, late, is_first=True)) == []
    assert found(job(first, late, is_first=True, slots_of_session=4)) == []
    alone = [vertex(task(0, 2 * one, 2), id=f"v{one}") for one in range(2)]
    assert found(job(*alone, slots=1, slots_of_session=2, is_first=True)) == ["idle-slots"]


# -- joins -----------------------------------------------------------------------------------------------


def join_job(small=MIB, large=100 * MIB, kind="Inner", **more):
    left = vertex(*even(4, rows_out=500_000, shuffle_write_ms=50), id="left", written=(large // 2, large - large // 2))
    right = vertex(*even(4), id="right", written=(small,))
    join = operator("SortMergeJoinExec", 3, inputs=(1, 2), text=f"SortMergeJoin [a], [b], {kind}")
    sorts = (operator("SortExec", 1, metrics={"sortTime": 400}, inputs=(10,)), operator("SortExec", 2, inputs=(20,)))
    inputs = (InputFacts("left", "HASH", 1, 10), InputFacts("right", "HASH", 2, 20))
    tasks = [task(one, 2, 2) for one in range(2)]
    joined = vertex(*tasks, id="join", operators=(*sorts, join), **{"inputs": inputs, **more})
    return job(left, right, joined)


def test_a_small_side_need_not_be_shuffled():
    (finding,) = find(join_job())
    assert (finding.rule, finding.operator) == ("small-side-shuffled", "SortMergeJoin")
    assert finding.cost_s == pytest.approx(0.2 + 0.4 + 2.0)  # written, sorted, two million rows
    assert found(join_job(small=11 * MIB, large=200 * MIB)) == []
    assert found(join_job(large=9 * MIB)) == []


@pytest.mark.parametrize(
    ("kind", "told"), [("LeftOuter", True), ("RightOuter", False), ("FullOuter", False), ("LeftAnti", True)]
)
def test_a_side_that_an_outer_join_keeps_is_not_broadcast(kind, told):
    assert bool(found(join_job(kind=kind))) is told


def test_a_large_broadcast_costs_the_slots_that_wait_for_the_driver():
    def broadcast(size, at_s):
        sent = vertex(*even(2, bytes_out=size // 2), id="sent", kind="broadcast")
        reads = vertex(
            task(0, at_s, 3),
            task(1, at_s, 3),
            reads="BROADCAST",
            of="sent",
            operators=(operator("BroadcastHashJoinExec"),),
        )
        return job(sent, reads)

    (finding,) = find(broadcast(16 * MIB, 2.5))
    assert (finding.rule, finding.cost_s, finding.line) == ("large-broadcast", pytest.approx(3.0), 5)
    assert found(broadcast(16 * MIB - 2, 1.5)) == []


def test_a_join_that_multiplies_costs_the_added_rows():
    def joined(made):
        return job(
            vertex(
                *even(4, rows_in=50_000),
                operators=(operator("BroadcastHashJoinExec", metrics={"numOutputRows": made}),),
            )
        )

    (finding,) = find(joined(800_000))
    assert (finding.rule, finding.cost_s) == ("multiplying-join", pytest.approx(3.0))
    assert found(joined(599_000)) == []


def test_a_join_with_what_is_broadcast_multiplies_if_both_sides_have_fewer_rows():
    def joined(broadcast):
        above = operator("BroadcastExchangeExec", metrics={"numOutputRows": broadcast})
        sent = vertex(task(0, 0, 0.1), id="sent", kind="broadcast", above=above)
        join = operator("BroadcastHashJoinExec", metrics={"numOutputRows": 800_000})
        return job(sent, vertex(*even(4, rows_in=50_000), reads="BROADCAST", of="sent", operators=(join,)))

    assert found(joined(800_000)) == []
    assert found(joined(1_000)) == ["multiplying-join"]


def test_a_join_of_all_with_all_is_a_cross_join():
    def crossed(rows):
        above = operator("BroadcastExchangeExec", metrics={"numOutputRows": rows})
        small = vertex(task(0, 0, 0.1), id="small", kind="broadcast", above=above)
        loop = operator("BroadcastNestedLoopJoinExec")
        return job(small, vertex(*even(4, rows_in=10_000), reads="BROADCAST", of="small", operators=(loop,)))

    assert found(crossed(25)) == ["cross-join"]
    assert found(crossed(24)) == []
    product = operator("CartesianProductExec", metrics={"numOutputRows": 4_000_000})
    assert found(job(vertex(*even(4), operators=(product,)))) == ["cross-join"]


# -- functions, files, failures --------------------------------------------------------------------------


def test_python_functions_are_told_from_half_of_the_stage_on():
    def with_function(kind, python_ms):
        return job(vertex(*even(4, rows_in=3000), operators=(operator(kind, metrics={"pythonTotalTime": python_ms}),)))

    (finding,) = find(with_function("BatchEvalPythonExec", 2000))
    assert (finding.rule, finding.cost_s, finding.certainty) == ("python-functions", pytest.approx(2.0), "likely")
    assert found(with_function("BatchEvalPythonExec", 1999)) == []
    assert found(with_function("MapInPandasExec", 3000)) == []
    (finding,) = find(with_function("ArrowEvalPythonExec", 0))  # older Sparks do not measure it
    assert finding.what == "a stage of 4.0 s calls Python functions for 12.0 K rows, row by row"
    assert (finding.cost_s, finding.certainty) == (pytest.approx(4.0), "possible")


def test_the_start_of_python_workers_is_not_the_functions_time():
    def started_first(total_ms, **more):
        metrics = {"pythonTotalTime": total_ms, "pythonBootTime": 1500, "pythonInitTime": 500, **more}
        return job(vertex(*even(4, rows_in=3000), operators=(operator("BatchEvalPythonExec", metrics=metrics),)))

    # Of four seconds two are the start.
    (finding,) = find(started_first(3000))
    assert finding.cost_s == pytest.approx(1.0)
    assert finding.what.startswith(
        "Python functions take 1.0 s of the stage's 4.0 s, and their workers 2.0 s to start,"
    )
    assert found(started_first(2999)) == []
    # Workers that were there before: their time of initialization is that since they began.
    assert find(started_first(3000, pythonBootTime=0, pythonInitTime=9000))[0].cost_s == pytest.approx(3.0)
    # One worker was there before, the other was not. Spark 4.1 and newer tell the functions' own time.
    assert find(started_first(3000, pythonInitTime=9000, pythonProcessingTime=2400))[0].cost_s == pytest.approx(2.4)


@pytest.mark.parametrize(
    ("function", "cure"),
    [
        ("lambda text: text.upper()", 'F.upper(F.col("text"))'),
        ("lambda text: text.startswith('a')", "F.col(\"text\").startswith('a')"),
        ("lambda text: len(text)", 'F.length(F.col("text"))'),
        ("lambda text: text[:3]", 'F.substring(F.col("text"), 1, 3)'),
        ("lambda x: x * 2", 'F.col("text") * 2'),
        ("lambda x: 2 * x.upper()", "F.upper(col), F.regexp_extract"),
        ("lambda text: text.upper()[:3]", "F.upper(col), F.regexp_extract"),
        ("lambda text: text[:-3]", "F.upper(col), F.regexp_extract"),
        ("lambda x, y: x * 2", "F.upper(col), F.regexp_extract"),
        ("known", "F.upper(col), F.regexp_extract"),
    ],
)
def test_a_built_in_that_plainly_does_the_same_is_the_cure(function, cure):
    line = f'loud = rows.withColumn("loud", F.udf({function})("text"))'
    called = operator("BatchEvalPythonExec", metrics={"pythonTotalTime": 3000}, code=line)
    (finding,) = find(job(vertex(*even(4, rows_in=3000), operators=(called,))))
    assert finding.cure.startswith(cure)
    part = replace(called, code=f"    F.udf({function})('text'),")  # of a statement of several lines
    assert find(job(vertex(*even(4, rows_in=3000), operators=(part,))))


def test_a_function_over_a_few_rows_is_slow_by_itself():
    def over(rows):
        metrics = {"pythonTotalTime": 3000, "pythonNumRowsReceived": rows}
        return found(job(vertex(*even(4), operators=(operator("BatchEvalPythonExec", metrics=metrics),))))

    assert over(10_000) == ["python-functions"]
    assert over(9_999) == []


def test_what_attempts_made_that_do_not_count_is_no_work_of_a_function():
    """Seen: one task of two fails, and the write of both begins again."""

    def with_attempts(rows=30_000, **more):
        again = [task(0, 4, 1, attempt=1), task(1, 4, 1, attempt=1)]
        before = [task(0, 0, 1, state=ExecutionState.FAILED), task(1, 0, 1)]
        metrics = {"pythonTotalTime": 2100, "pythonNumRowsReceived": rows}
        own = operator("BatchEvalPythonExec", metrics=metrics)
        facts = job(vertex(*before, *again, operators=(own,), **more))
        return [one for one in find(facts) if one.rule == "python-functions"]

    (finding,) = with_attempts()
    assert finding.what == "Python functions take 1.4 s of the stage's 2.0 s, for 20.0 K rows, row by row"
    assert finding.cost_s == pytest.approx(1.4)
    assert with_attempts(14_999) == []
    assert "for 30.0 K rows" in with_attempts(kind="boundary")[0].what


def test_an_input_that_two_stages_read_costs_one_reading():
    def reading(path, **metrics):
        known = {"paths": [path], "format": "csv", "filesSize": 1000, **metrics}
        return operator("FileSourceScanExec", metrics=known, variable="lines")

    first, second = (
        vertex(*even(4), id="one", operators=(reading("a"),)),
        vertex(*even(2), id="two", operators=(reading("a"),)),
    )
    (finding,) = find(job(first, second))
    assert (finding.rule, finding.cost_s, finding.certainty) == ("input-read-again", pytest.approx(2.0), "possible")
    assert finding.cure.startswith("lines = lines.cache()")
    for elsewhere in (reading("b"), reading("a", partitions="(day#7 = 1)")):
        assert found(job(first, vertex(*even(2), id="two", operators=(elsewhere,)))) == []
    days = [
        vertex(*even(2), id=str(column), operators=(reading("a", partitions=f"(day#{column} = 1)"),))
        for column in (7, 8)
    ]
    assert found(job(*days)) == ["input-read-again"]


def test_an_input_that_is_read_again_is_told_at_the_first_line_that_only_the_last_reader_has():
    def reader(id, line):
        scan = operator("FileSourceScanExec", id=1, line=1, variable="lines", metrics={"paths": ["a"], "format": "csv"})
        filtered = operator("FilterExec", id=2, line=2, variable="good", inputs=(1,))
        counted = operator("HashAggregateExec", id=3, line=line, variable="counts", inputs=(2,))
        return vertex(*even(2), id=id, operators=(scan, filtered, counted))

    (finding,) = find(job(reader("one", 3), reader("two", 4)))
    assert (finding.line, finding.cure.split("  #")[0]) == (4, "good = good.cache()")
    (finding,) = find(job(reader("one", 3), reader("two", 3)))  # a loop
    assert finding.line == 1


def test_a_columnar_input_costs_the_columns_that_are_read_again_beyond_what_keeping_them_would():
    def columnar(number, columns):
        metrics = {"paths": ["a"], "format": "parquet", "scanTime": 900}
        scan = operator("FileSourceScanExec", text=f"FileScan parquet [{columns}] Batched: true", metrics=metrics)
        return vertex(*even(4), id=str(number), operators=(scan,))

    def read(times, columns="b,c"):
        return job(columnar(0, "a,b"), *[columnar(number, columns) for number in range(1, times)])

    (finding,) = find(read(8))  # of seven readings again, five are what keeping the column costs
    assert (finding.rule, finding.cost_s, finding.certainty) == ("input-read-again", pytest.approx(0.9), "likely")
    assert found(read(6)) == []
    assert found(read(8, "c,d")) == []


def test_many_small_files_are_told_from_a_hundred_on():
    def scan(files, size):
        metrics = {"paths": ["a"], "format": "parquet", "numFiles": files, "filesSize": files * size}
        return job(vertex(*even(4), operators=(operator("FileSourceScanExec", metrics=metrics),)))

    (finding,) = find(scan(100, 1000))
    assert (finding.rule, finding.cost_s) == ("small-files-read", pytest.approx(0.4))
    assert found(scan(99, 1000)) == []
    assert found(scan(100, 3 * MIB)) == []


def test_many_small_files_written_name_the_write():
    def write(files):
        sink = operator("", line=8, metrics={"numFiles": files, "numOutputBytes": files * 1000, "numParts": 50})
        return job(vertex(*even(4), kind="write", above=sink))

    (finding,) = find(write(100))
    assert (finding.rule, finding.line, finding.cost_s) == ("small-files-written", 8, pytest.approx(0.8))
    assert 'repartition("key")' in finding.cure
    assert found(write(99)) == []


def test_failed_attempts_cost_their_time_if_the_job_has_finished():
    failed = task(0, 0, 1, state=ExecutionState.FAILED, reason="ExceptionFailure")
    again = vertex(failed, *[task(one, 1, 1) for one in range(2)])
    (finding,) = find(job(again))
    assert (finding.rule, finding.cost_s) == ("failed-tasks", pytest.approx(1.0))
    assert found(job(again, is_finished=False)) == []
    copy = vertex(failed._replace(speculative=True), *[task(one, 0, 1) for one in range(2)])
    assert found(job(copy)) == []


def test_rows_that_were_lost_with_their_executor_are_no_failure_of_the_tasks_that_made_them():
    again = [task(one, 2, 1, role="recovery", attempt=1) for one in range(2)]
    (finding,) = find(job(vertex(*even(2), *again)))
    assert finding.what == "2 tasks ran again for 2.0 s: their shuffled rows were lost with the executor"
    assert (finding.cost_s, finding.cure[:40]) == (pytest.approx(2.0), 'SparkSession.builder.config("spark.execu')
    failed = task(1, 0, 1, state=ExecutionState.FAILED, reason="ExecutorLostFailure")
    (finding,) = find(job(vertex(failed, *even(2), *again)))
    assert finding.what == (
        "1 attempt of tasks failed after 1.0 s and ran again, lost with their executor; "
        "2 tasks ran again for 2.0 s: their shuffled rows were lost with the executor"
    )
    assert finding.cost_s == pytest.approx(3.0)


def test_what_is_computed_in_every_run_is_told_from_the_second_on():
    source = vertex(*even(4), id="source", operators=(operator("FilterExec", text="Filter (rand(1) < 0.5)", line=4),))
    last = vertex(*[task(one, 2, 1) for one in range(2)], id="last", stage="drawn", reads="HASH", of="source")
    why = {"drawn": "its rows are random"}
    (finding,) = find(job(source, last, not_retained=why, has_run_before=True))
    assert (finding.rule, finding.line, finding.cost_s) == ("not-kept", 4, pytest.approx(6.0))
    assert finding.what == "drawn is computed in every run: its rows are random"
    assert found(job(source, last, not_retained=why)) == []
    assert found(job(source, last, not_used=why)) == ["not-kept"]


# -- all rules -------------------------------------------------------------------------------------------


def test_each_rule_says_its_source_its_threshold_and_its_counter_example():
    import sys

    for rule in RULES:
        text = sys.modules[rule.find.__module__].__doc__
        assert all(f"\n{word}" in text for word in ("Source: ", "Threshold: ", "Counter-example: ")), rule.name
    assert len({rule.name for rule in RULES}) == len(RULES) == 25


# -- cures in the user's own words -------------------------------------------------------------------------


def cure_of(*vertices, **more):
    (finding,) = find(job(*vertices, **more))
    return finding.cure.split("  #")[0]


def test_a_source_is_divided_in_its_own_line_or_by_its_own_name():
    code = "numbers = spark.range(0, 2000000, 1, 1500)  # fault"
    assert cure_of(vertex(*tiny(400), operators=(operator("RangeExec", code=code),))) == (
        "numbers = spark.range(0, 2000000, 1, 4)"
    )
    one_task = task(0, 0, 3, rows_in=2_000_000)
    source = operator("RangeExec", code="numbers = spark.range(2000000)")
    assert cure_of(vertex(one_task, operators=(source,))) == "numbers = spark.range(2000000, numPartitions=4)"
    read = operator("RDDScanExec", variable="rows")
    assert cure_of(vertex(*tiny(400), operators=(read,))) == "rows = rows.coalesce(4)"
    assert cure_of(vertex(one_task, operators=(read,))) == "rows = rows.repartition(4)"


def test_a_shuffle_and_a_coalesce_get_other_numbers_in_their_own_lines():
    above = operator("ShuffleExchangeExec", line=7, code='spread = rows.repartition(1200, "key")')
    reads = [one._replace(start_ms=one.start_ms + 1000, end_ms=one.end_ms + 1000) for one in tiny(400)]
    maps = vertex(*even(2), id="maps", above=above)
    assert cure_of(maps, vertex(*reads, reads="HASH", of="maps")) == 'spread = rows.repartition(4, "key")'
    coalesce = operator("CoalesceExec", code="hashed.coalesce(1).write.parquet(out)")
    one_task = task(0, 0, 3, rows_in=50_000)
    assert cure_of(vertex(one_task, operators=(coalesce,))) == "hashed.repartition(1).write.parquet(out)"


def test_the_small_side_is_broadcast_in_the_line_of_the_join():
    def cure(code, **sizes):
        facts = join_job(**sizes)
        joined = facts.vertices[-1]
        operators = (*joined.operators[:-1], replace(joined.operators[-1], code=code))
        return cure_of(*facts.vertices[:-1], replace(joined, operators=operators))

    line = "found = rows.join(wanted, rows.id == wanted.other)"
    assert cure(line) == "found = rows.join(F.broadcast(wanted), rows.id == wanted.other)"
    assert cure(line, small=100 * MIB, large=MIB) == "found = F.broadcast(rows).join(wanted, rows.id == wanted.other)"
    assert cure('found = a.join(b, "k").join(c, "k")') == 'large.join(F.broadcast(small), "key")'


def test_joins_are_mended_in_their_own_lines():
    def joined(kind, code, made):
        return cure_of(vertex(*even(4, rows_in=50_000), operators=(operator(kind, code=code, metrics=made),)))

    many, pairs = {"numOutputRows": 800_000}, {"numOutputRows": 4_000_000}
    line = 'named = rows.join(keys, "key")'
    assert joined("SortMergeJoinExec", line, many) == 'named = rows.join(keys.dropDuplicates(["key"]), "key")'
    line = "both = left.crossJoin(keys).where(close)"
    assert joined("CartesianProductExec", line, pairs) == 'left.join(keys, left["key"] == keys["key"])'
    sent = vertex(*even(2, bytes_out=8 * MIB), id="sent", kind="broadcast")
    hash_join = operator("BroadcastHashJoinExec", code='found = few.join(F.broadcast(texts), "id")  # soon')
    late = vertex(task(0, 2.5, 3), task(1, 2.5, 3), reads="BROADCAST", of="sent", operators=(hash_join,))
    assert cure_of(sent, late) == 'found = few.join(texts.hint("merge"), "id")'
    tasks = [*even(3, slots=3), task(3, 0, 5, rows_in=20_000)]
    skewed = vertex(*tasks, reads="HASH", operators=(operator("SortMergeJoinExec", code='a = b.join(c, "id")'),))
    assert cure_of(skewed, slots=4) == 'a = b.join(F.broadcast(c), "id")'


def test_files_are_written_anew_beside_what_is_read_and_by_the_line_that_writes_them():
    known = {"paths": ["file:/data/rows/"], "format": "parquet", "numFiles": 200, "filesSize": 1000}

    def read(**metrics):
        scan = operator("FileSourceScanExec", variable="rows", metrics={**known, **metrics})
        return cure_of(vertex(*even(4), operators=(scan,)))

    assert read() == 'rows.repartition(1).write.parquet("file:/data/rows-as-parquet")'
    assert read(partitionColumns=["day"], paths=["a", "b"]) == (
        'rows.repartition("day").write.partitionBy("day").parquet("path")'
    )
    metrics = {"splittable": False, "format": "CSV", "paths": ["a.csv.gz"], "numFiles": 1, "filesSize": 9 * MIB}
    zipped = operator("FileSourceScanExec", metrics=metrics, variable="lines")
    assert cure_of(vertex(task(0, 0, 3), operators=(zipped,))) == 'lines.write.parquet("a.csv.gz-as-parquet")'

    def write(code, **metrics):
        files = {"numFiles": 200, "numOutputBytes": 200_000, **metrics}
        return cure_of(vertex(*even(4), kind="write", above=operator("", line=8, code=code, metrics=files)))

    line = 'rows.repartition(8).write.partitionBy("bucket").parquet(out)'
    assert write(line, numParts=50) == 'rows.repartition("bucket").write.partitionBy("bucket").parquet(out)'
    assert write('rows.where("a > 1").write.json(out)') == 'rows.where("a > 1").coalesce(2).write.json(out)'
    assert write("save(rows)") == "df.coalesce(2).write"


def test_sorts_and_caches_that_are_needless_are_left_out_of_their_lines():
    window = operator("WindowExec", id=2, text="Window [row_number() windowspecdefinition(day#2)]", inputs=(1,))
    assert cure_of(*sorted_rows(asked='ordered = p.orderBy("id")'), grouped(window)) == "ordered = p"
    fills, reads = cached()
    known = replace(reads, operators=(replace(reads.operators[0], code="rows = p.cache()"),))
    assert cure_of(fills, known, reads_of_dropped_caches={12: 2}) == "rows = p"
    assert cure_of(fills, reads, reads_of_dropped_caches={12: 2}) == "rows = ..."
    fills, reads = cached(on_disk=50_000_000)
    wide = replace(reads, operators=(replace(reads.operators[0], text="Scan In-memory table rows [k, v], [(k > 1)]"),))
    assert cure_of(fills, wide) == 'rows = rows.select("k", "v").cache()'
    assert cure_of(fills, reads) == 'rows = rows.select("key", "value").cache()'


def test_magics_get_the_job_s_name_as_it_is_typed():
    first = vertex(*even(2), id="one")
    late = vertex(task(0, 2.5, 1), task(1, 2.5, 1), id="two", reads="HASH", of="one")
    assert cure_of(first, late, name="daily") == "%flinkjobs daily --log"
    assert cure_of(first, late, name="every day") == "%flinkjobs 'every day' --log"
    assert cure_of(first, late) == "%flinkjobs NAME --log"


def test_a_function_s_column_is_named():
    def cure(text):
        called = operator("BatchEvalPythonExec", metrics={"pythonTotalTime": 3000}, text=text)
        return cure_of(vertex(*even(4, rows_in=3000), operators=(called,)))

    assert cure("BatchEvalPython [loud(text)], [pythonUDF0]").startswith('F.upper("text"), ')
    assert cure("BatchEvalPython [loud(text, id)], [pythonUDF0]").startswith("F.upper(col), ")


# -- sorts, partitions, the driver, caches -----------------------------------------------------------------


GLOBAL_SORT = "Sort [id#1L ASC NULLS FIRST], true, 0"


def sorted_rows(*above, kind="shuffle", asked='p.orderBy("id")', sort=GLOBAL_SORT):
    """The stage that a sort reads, and that of the sort."""
    written = {"shuffleWriteTime": 200_000_000, "shuffleRecordsWritten": 500_000}
    exchange = operator("ShuffleExchangeExec", id=90, line=2, code=asked, metrics=written)
    maps = vertex(*even(2), id="maps", above=exchange)
    sorts = operator("SortExec", id=1, text=sort, metrics={"sortTime": 300}, inputs=(0,))
    reads = vertex(*[one._replace(start_ms=1000, end_ms=3000, run_ms=2000) for one in even(2)],
                   id="sorts", reads="RANGE", of="maps", kind=kind, operators=(sorts, *above))  # fmt: skip
    return maps, reads


def grouped(*above):
    """The stage that shuffles sorted rows, and sorts them again."""
    again = operator("SortExec", id=1, text="Sort [day#2 ASC NULLS FIRST], false, 0", inputs=(1,))
    return vertex(*[one._replace(start_ms=3000, end_ms=4000) for one in even(2)],
                  id="groups", reads="HASH", of="sorts", operators=(again, *above))  # fmt: skip


def test_a_sort_whose_order_a_shuffle_undoes_is_needless():
    window = operator("WindowExec", id=2, text="Window [row_number() windowspecdefinition(day#2)]", inputs=(1,))
    (finding,) = find(job(*sorted_rows(), grouped(window)))
    assert (finding.rule, finding.line, finding.cost_s) == ("needless-sort", 2, pytest.approx(0.2 + 0.3 + 0.5))
    assert finding.what == "all rows are sorted, and then shuffled, and sorted again by day ASC NULLS FIRST"


def test_a_sort_is_undone_by_the_one_that_reads_its_shuffle_alone():
    joined = operator("ShuffledHashJoinExec", id=1, inputs=(1,))
    above = operator("SortExec", id=2, text="Sort [day#2 ASC NULLS FIRST], false, 0", inputs=(1,))
    groups = replace(grouped(), operators=(joined, above))
    assert found(job(*sorted_rows(), groups)) == []
    both = [operator("ProjectExec", id=one, inputs=(1,)) for one in (2, 3)]
    assert found(job(*sorted_rows(*both), grouped())) == []


def test_a_sort_below_a_function_of_the_order_is_needed():
    collected = operator("SortAggregateExec", id=2, text="SortAggregate(functions=[collect_list(x#3)])", inputs=(1,))
    assert found(job(*sorted_rows(), grouped(collected))) == []
    by_group = operator("FlatMapGroupsInPandasExec", id=2, text="FlatMapGroupsInPandas [day#2]", inputs=(1,))
    assert found(job(*sorted_rows(), grouped(by_group))) == []


def test_a_sort_is_needless_before_a_table_without_an_order_and_kept_in_files():
    noop = operator("write", id=2, inputs=(1,))
    assert found(job(*sorted_rows(replace(noop, operator="OverwriteByExpression noop-table"), kind="write"))) == [
        "needless-sort"
    ]
    files = replace(noop, operator="Execute InsertIntoHadoopFsRelationCommand")
    assert found(job(*sorted_rows(files, kind="write"))) == []


def test_the_sort_of_a_write_by_partitions_undoes_an_order_but_not_a_range_that_was_asked_for():
    by_day = "Sort [day#2 ASC NULLS FIRST], false, 0"
    write = operator("write", id=2, inputs=(1,))
    assert found(job(*sorted_rows(write, kind="write", sort=by_day))) == ["needless-sort"]
    assert found(job(*sorted_rows(write, kind="write", sort=by_day, asked='p.repartitionByRange("id")'))) == []
    assert found(job(*sorted_rows(kind="shuffle", sort=by_day))) == []


def of_partitions(condition, left=20_000, columns=("day",), partitions="", functions=()):
    metrics = {
        "numPartitions": 20, "numOutputRows": 400_000, "partitions": partitions, "partitionColumns": columns,
        "scanTime": 2000,
    }  # fmt: skip
    scan = operator("FileSourceScanExec", id=1, line=1, metrics=metrics)
    calls = operator("BatchEvalPythonExec", id=2, text=f"BatchEvalPython [{', '.join(functions)}]", inputs=(1,))
    filters = operator("FilterExec", id=3, line=2, text=f"Filter {condition}", metrics={"numOutputRows": left},
                       inputs=(2 if functions else 1,))  # fmt: skip
    return job(vertex(*even(2), operators=(scan, *([calls] if functions else []), filters)))


def test_a_filter_of_a_time_reads_all_partitions_of_a_calendar():
    (finding,) = find(of_partitions("(cast(ts#5 as date) = 2024-01-05)"))
    assert (finding.rule, finding.line) == ("unfiltered-partitions", 2)
    assert finding.cost_s == pytest.approx(2.0 * 0.95 * 0.95)
    assert finding.cure.startswith('df.where(F.col("day") == value)')
    assert found(of_partitions("(cast(ts#5 as date) = 2024-01-05)", columns=("country",))) == []
    assert found(of_partitions("(customer#5 = 7)")) == []
    assert found(of_partitions("(cast(ts#5 as date) = 2024-01-05)", left=200_000)) == []
    assert found(of_partitions("(cast(ts#5 as date) = 2024-01-05)", partitions="(day#3 = 5)")) == []


def test_a_python_function_of_the_partitions_column_chooses_no_folders():
    assert found(of_partitions("pythonUDF0#9", columns=("country",), functions=["odd(country#4)"])) == [
        "unfiltered-partitions"
    ]
    assert found(of_partitions("pythonUDF0#9", columns=("country",), functions=["odd(name#4)"])) == []


def test_the_driver_that_works_alone_before_or_after_a_job_is_told():
    late = [one._replace(start_ms=3000, end_ms=4000) for one in even(2)]
    (finding,) = find(job(vertex(*late)))
    assert (finding.rule, finding.cost_s, finding.certainty) == ("driver-busy", pytest.approx(6.0), "possible")
    assert found(job(vertex(*late), is_first=True)) == []
    planned = (operator("FilterExec", line=4, variable="rows"), operator("write", id=2, line=5))
    (finding,) = find(job(vertex(*even(2), operators=planned), planning_ms=2500.0))
    assert (finding.line, finding.cure.split("  #")[0]) == (4, "rows = rows.localCheckpoint()")
    assert finding.what.startswith("no task ran for 2.5 s before the first stage: the driver planned the job or listed")
    assert found(job(vertex(*even(2, took_s=8)), planning_ms=2500.0)) == []
    assert found(job(vertex(*[one._replace(start_ms=900, end_ms=2000) for one in even(2)]))) == []

    files = operator(
        "write", id=2, line=7, metrics={"numFiles": 5000, "numOutputBytes": 5000 * 4 * MIB, "jobCommitTime": 1900}
    )
    written = vertex(*even(2), kind="write", above=files)
    (finding,) = find(job(written, ended_ms=written.end_ms + 2000))
    assert (finding.line, finding.certainty) == (7, "likely")
    assert finding.what == "no task ran for 2.0 s after the last stage: the driver committed 5,000 files"

    results = vertex(*[one._replace(result_bytes=200 * MIB) for one in even(2)], kind="result")
    (finding,) = find(job(results, ended_ms=results.end_ms + 2000))
    assert finding.what.endswith("the driver took up 400.0 MiB of results")

    counted = operator("RangeExec", id=1, line=2, metrics={"numOutputRows": 3_000_000})
    action = operator("", id=-1, line=5, code="rows = df.collect()")
    few_bytes = [one._replace(result_bytes=4 * MIB) for one in even(2)]
    results = vertex(*few_bytes, kind="result", operators=(counted,), above=action)
    (finding,) = find(job(results, ended_ms=results.end_ms + 2000))
    assert finding.what.endswith("the driver took up 3.0 M rows, 8.0 MiB, of results")
    assert (finding.line, finding.cure[:13]) == (5, "df.toPandas()")


def cached(there=8, on_disk=0, memory=100 * MIB, line=3):
    """The stage that fills a cache, and one that reads it."""
    metrics = {
        "cacheId": 12, "cachePartitions": 8, "cachedPartitions": there, "cachedBytes": memory, "cachedOnDisk": on_disk,
        "numOutputRows": 1_000_000,
    }  # fmt: skip
    scan = operator("InMemoryTableScanExec", line=line, metrics=metrics, variable="rows")
    reads = [one._replace(start_ms=one.start_ms + 1000, end_ms=one.end_ms + 1000) for one in even(2)]
    return vertex(*even(2), id="fills", kind="boundary"), vertex(*reads, reads="FORWARD", of="fills", operators=(scan,))


def test_partitions_of_a_cache_that_are_missing_are_charged_with_their_part_of_its_stage():
    fills, reads = cached(there=6)
    (finding,) = find(job(fills, reads))
    assert (finding.rule, finding.line, finding.cost_s) == ("evicted-cache", 3, pytest.approx(fills.run_ms / 4000))
    (finding,) = find(job(*cached(on_disk=50_000_000)))
    assert (finding.rule, finding.cost_s) == ("evicted-cache", pytest.approx(0.5))
    assert found(job(*cached())) == []
    assert found(job(*cached(on_disk=50_000_000, memory=0))) == []  # it was persisted there


def test_a_cache_that_is_dropped_after_one_read_was_for_nothing():
    (finding,) = find(job(*cached(), reads_of_dropped_caches={12: 2}))
    assert (finding.rule, finding.line) == ("unread-cache", 3)
    assert finding.cost_s == pytest.approx(0.004 * 104.8576 + 0.2)
    assert finding.what == "1.0 M rows (100.0 MiB) were cached, and dropped before anything else had read them"
    (finding,) = find(job(*cached(memory=0), reads_of_dropped_caches={12: 2}))  # of a log
    assert finding.what == "1.0 M rows were cached, and dropped before anything else had read them"
    assert (finding.cost_s, finding.estimate) == (pytest.approx(0.2), "estimated: 0.2 µs for each row")
    assert found(job(*cached(), reads_of_dropped_caches={12: 3})) == []  # another stage has read it
    assert found(job(*cached())) == []  # it is still there
