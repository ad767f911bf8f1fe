"""What later actions read of earlier ones, and that nothing stale is ever read."""

from __future__ import annotations

import importlib
import sys

import pytest

from flinkmagic.jvm import block_storage
from flinkmagic.options import JobOptions
from flinkmagic.planning.boundaries import Boundaries
from flinkmagic.planning.clones import SessionClones
from flinkmagic.planning.plan_reader import NAME_OF_RUN
from flinkmagic.reuse import retained_results
from flinkmagic.session import SessionActions, release_retained, retained
from flinkmagic.session.actions import kept_frames
from flinkmagic.session.actions.keeping_budget import KeepingBudget
from flinkmagic.session.actions.kept_frames import KeptFrames

LATE = """
late = spark.read.parquet(path).where("id >= 0").groupBy(F.expr("id % 10 AS k")).agg(F.expr("sum(double(id)) AS total"))
"""


@pytest.fixture
def files(session, tmp_path):
    session.namespace["path"] = str(tmp_path / "numbers")
    session.plain("spark.range(0, 100, 1, 2).write.parquet(path)")
    session.plain(LATE + "None")
    return tmp_path / "numbers"


def rows(answer):
    return sorted(map(tuple, answer))


def test_the_second_action_computes_a_name_whole_and_the_third_reads_it(session, files) -> None:
    assert session.cell("late.count()") == 10
    first = session.report
    assert (first.reused, first.saved_seconds) == (0, 0.0)
    plain = rows(session.plain("late.groupBy(F.expr('total % 2')).count().collect()"))
    assert rows(session.cell("late.groupBy(F.expr('total % 2')).count().collect()")) == plain
    assert session.report.reused == 0
    session.namespace["parity"] = session.plain("late.groupBy(F.expr('total % 3')).agg(F.max('k'))")
    for action in (
        "parity.collect()",
        "late.count()",
        "late.toPandas()",
        "late.show()",
        "late.where('k = 3').collect()",
    ):
        session.cell(action)
        assert session.report.reused >= 2, action  # neither the files are read nor the groups made
        assert session.report.saved_seconds > 0
    assert rows(session.cell("late.collect()")) == rows(session.plain("late.collect()"))
    assert session.cell("late.where('k = 3').first()['total']") == sum(range(3, 100, 10))


def test_what_the_optimizer_drops_from_a_query_is_not_computed_for_later_ones(session, files) -> None:
    session.cell("late.where('total > 0').count()")
    session.plain("wide = spark.range(20).join(late, F.col('id') == late.k, 'left')\nNone")
    assert session.cell("wide.count()") == 20
    assert "boundary" not in {one.kind for one in retained(session.spark)}
    assert session.cell("wide.groupBy('total').count().count()") == 11
    assert "boundary" in {one.kind for one in retained(session.spark)}
    assert session.cell("wide.count()") == 20


def test_what_a_query_reads_nothing_of_is_not_planned(session, files, monkeypatch) -> None:
    plan, planned = SessionClones.plan, []

    def noted(self, logical_plan, clone):
        planned.append(str(logical_plan.toString()))
        return plan(self, logical_plan, clone)

    session.cell("late.where('total > 0').count()")
    session.plain("wide = spark.range(20).join(late, F.col('id') == late.k, 'left')\nNone")
    monkeypatch.setattr(SessionClones, "plan", noted)
    assert session.cell("wide.count()") == 20
    assert planned
    assert all("Join LeftOuter" in one for one in planned)


def test_what_was_read_last_is_looked_for(session, files) -> None:
    frames = KeptFrames.of(session.spark.sparkContext)
    session.plain("early = late.where('k > 3').groupBy(F.expr('k % 3')).count()\nNone")
    for name in ("early", "late", "early", "late"):
        session.cell(f"{name}.collect()")
        frame = session.namespace[name]
        assert next(reversed(frames.within_reach(session.spark.sparkContext))) is frame


def test_the_same_action_again_runs_its_last_stage_only(session, files) -> None:
    expected = rows(session.plain("late.collect()"))
    assert rows(session.cell("late.collect()")) == expected
    stages = session.report.stages
    assert rows(session.cell("late.collect()")) == expected
    assert session.report.reused == stages - 1
    assert len(session.ran.tasks()) == 1


def test_what_is_not_worth_keeping_is_planned_once_to_know_that(session, files, monkeypatch) -> None:
    session.plain("few = spark.read.parquet(path).where('id > 3')\nNone")
    planned, plan = [], SessionClones.plan
    monkeypatch.setattr(SessionClones, "plan", lambda *given: planned.append(given) or plan(*given))
    numbers = []
    for aggregate in ("sum", "max", "min"):
        planned.clear()
        session.cell(f"few.groupBy('id').agg(F.{aggregate}('id')).collect()")
        numbers.append(len(planned))
    assert numbers == [1, 2, 1]


def test_names_stay_as_they_are(session, files) -> None:
    late = session.namespace["late"]
    plan = late._jdf.queryExecution().analyzed().toString()
    for _ in range(3):
        session.cell("late.groupBy('k').count().collect()")
    assert session.namespace["late"] is late
    assert late._jdf.queryExecution().analyzed().toString() == plan
    assert not late.is_cached
    assert not late.storageLevel.useMemory


def test_nothing_is_kept_if_nothing_is_to_be(spark, session, files) -> None:
    session.actions = SessionActions(JobOptions(retain="none"))
    for _ in range(3):
        assert session.cell("late.count()") == 10
        assert session.report.reused == 0
    assert retained(spark) == []


def used_three_times(session):
    answers = [rows(session.cell("late.groupBy('k').agg(F.sum('total')).collect()")) for _ in range(3)]
    assert session.report.reused > 0
    assert answers[0] == answers[1] == answers[2]
    return answers[0]


def as_plain(session, definition, before):
    """Both the old DataFrame and one that is defined again give what plain Spark gives."""
    action = "late.groupBy('k').agg(F.sum('total')).collect()"
    assert rows(session.cell(action)) == rows(session.plain(action))
    session.cell(definition + "None")
    for _ in range(3):
        answer = rows(session.cell(action))
        assert answer == rows(session.plain(action))
        assert answer != before


def test_an_appended_file_is_read(session, files) -> None:
    before = used_three_times(session)
    session.plain('spark.range(100, 110, 1, 1).write.mode("append").parquet(path)')
    as_plain(session, LATE, before)


@pytest.mark.long
def test_an_rdd_that_is_persisted_again_is_read_again(session, tmp_path) -> None:
    file = tmp_path / "lines.txt"
    file.write_text("1\n2\n")
    lines = session.spark.sparkContext.textFile(str(file)).map(lambda line: (int(line),)).persist()
    session.namespace["numbers"] = lines.toDF("n long")
    sums = "numbers.groupBy(F.expr('n % 2')).agg(F.expr('sum(double(n)) AS s')).collect()"
    try:
        for _ in range(3):
            assert rows(session.cell(sums)) == [(0, 2.0), (1, 1.0)]
        assert session.report.reused > 0
        lines.unpersist(blocking=True)
        file.write_text("3\n4\n")
        lines.persist()
        assert rows(session.cell(sums)) == [(0, 4.0), (1, 3.0)]
    finally:
        lines.unpersist()


def test_an_overwritten_file_is_read(session, files) -> None:
    before = used_three_times(session)
    session.plain('spark.range(0, 50, 1, 2).write.mode("overwrite").parquet(path)')
    session.cell(LATE + "None")
    for _ in range(3):
        answer = rows(session.cell("late.groupBy('k').agg(F.sum('total')).collect()"))
        assert answer == rows(session.plain("late.groupBy('k').agg(F.sum('total')).collect()"))
        assert answer != before


FUNCTION = """
def changed(value):
    return value * factor
late = spark.read.parquet(path).withColumn("v", F.udf(changed, "long")("id")).groupBy(F.expr("id % 10 AS k"))
late = late.agg(F.sum("v").alias("total"))
"""


@pytest.mark.long
def test_a_changed_global_counts(session, files) -> None:
    session.plain("factor = 2" + FUNCTION + "None")
    before = used_three_times(session)
    session.plain("factor = 3\nNone")
    as_plain(session, FUNCTION, before)


def test_an_edited_module_counts(session, files, tmp_path, monkeypatch) -> None:
    (tmp_path / "fm_action_helper.py").write_text("def changed(value):\n    return value * 2\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    definition = """
import fm_action_helper
late = spark.read.parquet(path).withColumn("v", F.udf(lambda id: fm_action_helper.changed(id), "long")("id"))
late = late.groupBy(F.expr("id % 10 AS k")).agg(F.sum("v").alias("total"))
"""
    session.spark.sparkContext.addPyFile(str(tmp_path / "fm_action_helper.py"))
    session.plain(definition + "None")
    used_three_times(session)
    (tmp_path / "fm_action_helper.py").write_text("def changed(value):\n    return value * 31\n")
    importlib.reload(sys.modules["fm_action_helper"])
    session.plain(definition + "None")
    session.cell("late.groupBy('k').agg(F.sum('total')).collect()")
    assert session.report.reused == 0
    del sys.modules["fm_action_helper"]


@pytest.mark.long
def test_a_function_that_is_registered_again_counts(session, files) -> None:
    query = "late = spark.sql(f'SELECT id % 10 AS k, sum(changes(id)) AS total FROM parquet.`{path}` GROUP BY 1')\n"
    session.plain('_ = spark.udf.register("changes", lambda value: value * 2, "long")\n' + query + "None")
    before = used_three_times(session)
    session.plain('_ = spark.udf.register("changes", lambda value: value * 3, "long")\nNone')
    as_plain(session, query, before)


def test_a_view_that_is_defined_again_counts(session, files) -> None:
    query = "late = spark.sql('SELECT id % 10 AS k, sum(id) AS total FROM changing GROUP BY 1')\n"
    session.plain("spark.read.parquet(path).createOrReplaceTempView('changing')\n" + query + "None")
    before = used_three_times(session)
    session.plain("spark.read.parquet(path).where('id > 5').createOrReplaceTempView('changing')")
    as_plain(session, query, before)
    session.plain("spark.catalog.dropTempView('changing')")


@pytest.mark.long
def test_a_changed_setting_counts(session, files) -> None:
    query = "late = spark.read.parquet(path).selectExpr('hour(timestamp_seconds(id * 3600)) AS k', 'id').groupBy('k')"
    query += ".agg(F.sum('id').alias('total'))\n"
    session.spark.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        session.plain(query + "None")
        before = used_three_times(session)
        session.spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        as_plain(session, query, before)
    finally:
        session.spark.conf.unset("spark.sql.session.timeZone")


def test_what_depends_on_chance_is_computed_again(session, files) -> None:
    session.plain(
        """
        from pyspark.sql import types as T
        chance = F.udf(lambda id: id, "long").asNondeterministic()
        drawn = spark.read.parquet(path).withColumn("v", chance("id")).groupBy("v").count()
        None
        """
    )
    for _ in range(3):
        assert session.cell("drawn.groupBy('count').agg(F.sum('v')).collect()")[0][1] == 4950
        assert session.report.reused == 0
    assert len(session.report.graph.job_graph.vertices) == 3  # nothing is kept that no one could find


def test_a_limit_is_not_computed_whole(session) -> None:
    session.plain('wide = spark.range(0, 1000, 1, 20).repartitionByRange(20, "id")\nNone')
    for _ in range(3):
        assert [row["id"] for row in session.cell("wide.where('id > 0').take(2)")] == [1, 2]
        assert session.ran.tasks()[0] == 1
    assert session.report.reused == 1


def test_what_was_released_is_computed_as_plain_spark_does(session, files) -> None:
    used_three_times(session)
    for graph in {one.graph for one in retained(session.spark)}:
        release_retained(session.spark, graph)
    assert rows(session.cell("late.collect()")) == rows(session.plain("late.collect()"))
    assert session.report.reused == 0
    assert session.report.stages == 2  # nothing is computed only to be kept


def read_whole(session):
    return [session.cell(f"late.groupBy(F.expr('total % {n}')).count().count()") for n in (2, 3, 4)]


def kept_levels(spark):
    """By RDD, the storage levels of the rows that actions keep: the names of these end with the run's."""
    found = dict(spark.sparkContext._jsc.getPersistentRDDs())
    ours = {number: rdd for number, rdd in found.items() if NAME_OF_RUN.search(rdd.name() or "")}
    return {number: rdd.getStorageLevel() for number, rdd in ours.items()}


@pytest.mark.long
def test_rows_are_kept_on_disk_alone_beside_the_users(spark, nothing_cached, session, files) -> None:
    read_whole(session)
    before = kept_levels(spark)
    assert before[max(before)].useMemory()
    for graph in {one.graph for one in retained(spark)}:
        release_retained(spark, graph)
    users = spark.sparkContext.parallelize(range(9)).persist()
    try:
        assert users.count() == 9
        session.plain(LATE + "None")
        read_whole(session)
        levels = kept_levels(spark)
        newest = max(levels)
        assert newest > max(before)
        assert (levels[newest].useDisk(), levels[newest].useMemory()) == (True, False)
    finally:
        users.unpersist()


@pytest.mark.long
def test_what_the_user_caches_is_kept_by_spark_alone(spark, session, files) -> None:
    expected = read_whole(session)
    assert "boundary" in {one.kind for one in retained(spark)}
    late = session.namespace["late"].cache()
    try:
        assert read_whole(session) == expected
        assert "boundary" not in {one.kind for one in retained(spark)}
        assert late.is_cached
    finally:
        late.unpersist()


@pytest.mark.matrix(2)
@pytest.mark.parametrize(("what", "there"), [("free_disk", 0), ("memory_for_rows", (1000, 49))])
def test_nothing_is_kept_while_there_is_little_room(spark, session, files, monkeypatch, what, there) -> None:
    monkeypatch.setattr(block_storage, what, lambda sc: there)
    assert read_whole(session) == [1, 3, 2]
    assert "boundary" not in {one.kind for one in retained(spark)}
    monkeypatch.undo()
    read_whole(session)
    monkeypatch.setattr(block_storage, what, lambda sc: there)
    assert session.cell("late.groupBy(F.expr('total % 5')).count().count()") == 1
    assert session.report.reused >= 2  # what is kept already is read


@pytest.mark.long
def test_a_long_session_keeps_a_bounded_number_of_results(session, files, monkeypatch) -> None:
    monkeypatch.setattr(retained_results, "MOST_OF_ACTIONS", 4)
    used_three_times(session)
    counts = []
    for number in range(6):
        session.cell(f"late.where('k != {number}').groupBy('total').count().collect()")
        counts.append((session.report.reused, len(retained(session.spark))))
    # The first one keeps the rows of `late`. What is used again stays; what is not goes.
    assert counts == [(1, 3), (2, 4), (2, 4), (2, 4), (2, 4), (2, 4)]


def frames_kept(session):
    return [one for one in retained(session.spark) if one.kind == "boundary"]


def test_what_has_more_rows_than_it_pays_to_keep_is_not_kept(session, files, monkeypatch) -> None:
    monkeypatch.setattr(kept_frames, "KEPT_A_SECOND", 1)  # as if its rows were wider
    monkeypatch.setattr(KeepingBudget, "room", lambda _self, expected: 1.0)
    monkeypatch.setattr(KeepingBudget, "stake", lambda _self, what, seconds: None)  # it is other tests' budget, too
    for _ in range(2):
        session.cell("late.count()")
    session.cell("late.groupBy('k').count().collect()")
    assert frames_kept(session) == []
    monkeypatch.setattr(KeepingBudget, "room", lambda _self, expected: 1000.0)
    session.cell("late.groupBy(F.expr('total % 2')).count().collect()")
    assert [one.graph for one in frames_kept(session)] == ["collect"]


def test_what_may_not_be_kept_is_looked_at_by_few_actions(session, files, monkeypatch) -> None:
    looked = []

    def look(boundaries, scope, number):
        looked.extend(name for name in names if session.namespace[name] in scope.frames[number].dataframes)
        return whole_frame(boundaries, scope, number)

    names, whole_frame = ("late", "once", "twice"), Boundaries._whole_frame
    monkeypatch.setattr(Boundaries, "_whole_frame", look)
    session.namespace["raises"] = session.plain("F.udf(lambda total: 1 / (total - 450), 'double')")
    made = "once = late.withColumn('a', raises('total'))\ntwice = once.withColumn('b', raises('total'))"
    session.cell(f"{made}\ntwice.where('k = 7').agg(F.max('b')).collect()")
    for k in range(1, 6):  # the filter guards the function, which raises where k is 0
        session.cell(f"twice.where('k = {k}').agg(F.max('b')).collect()")
    assert (looked.count("twice"), looked.count("once")) == (3, 1)
    assert [one.graph for one in frames_kept(session)] == ["collect"]  # what both are made of
    session.cell("once.where('k = 1').agg(F.max('a')).collect()")
    assert looked.count("once") == 2


@pytest.mark.parametrize(
    ("made", "before"),
    [
        # Its rows are counted by a stage that is not the last one.
        (
            "spark.read.parquet(path).withColumn('total', F.udf(hash, 'long')('id'))",
            "made.groupBy('id').count().collect()",
        ),
        # It has as many rows as another one.
        ("late.withColumn('other', F.hash('total'))", "late.count()"),
    ],
)
def test_rows_are_counted_where_they_are_read_or_by_what_they_are_made_from(
    session, files, monkeypatch, made, before
) -> None:
    monkeypatch.setattr(kept_frames, "KEPT_A_SECOND", 1)
    monkeypatch.setattr(KeepingBudget, "room", lambda _self, expected: 1.0)
    monkeypatch.setattr(KeepingBudget, "stake", lambda _self, what, seconds: None)
    session.cell(f"made = {made}\n{before}")
    for divisor in (2, 3):
        session.cell(f"made.groupBy(F.expr('total % {divisor}')).count().collect()")
    assert frames_kept(session) == []
    monkeypatch.setattr(KeepingBudget, "room", lambda _self, expected: 1e9)
    session.cell("made.groupBy(F.expr('total % 5')).count().collect()")
    assert frames_kept(session) != []


@pytest.mark.parametrize(
    ("made", "before"),
    [
        ("repartition(3)", "made.select('few').distinct().count()"),
        ("repartition(3)", "made.where('few = 3').count()"),
        (
            "distinct().selectExpr('*', 'lag(id) over (partition by few order by id) before')",
            "made.where('before < 10').count()",
        ),
    ],
)
def test_rows_are_not_counted_behind_what_an_action_does_with_them(session, files, monkeypatch, made, before) -> None:
    monkeypatch.setattr(kept_frames, "KEPT_A_SECOND", 1)
    monkeypatch.setattr(KeepingBudget, "room", lambda _self, expected: 500.0)  # it would do for a tenth of them
    monkeypatch.setattr(KeepingBudget, "stake", lambda _self, what, seconds: None)
    session.cell(f"made = spark.read.parquet(path).selectExpr('id', 'id % 10 few', 'hash(id) total').{made}\n{before}")
    session.cell("made.groupBy(F.expr('total % 2')).count().collect()")
    assert frames_kept(session) == []
    monkeypatch.setattr(KeepingBudget, "room", lambda _self, expected: 1500.0)
    session.cell("made.groupBy(F.expr('total % 3')).count().collect()")
    assert frames_kept(session) != []


def test_what_stands_in_two_objects_is_staked_once(session, files, monkeypatch) -> None:
    stakes = []
    monkeypatch.setattr(KeepingBudget, "room", lambda _self, expected: 1000.0)
    monkeypatch.setattr(KeepingBudget, "stake", lambda _self, what, seconds: stakes.append(what))
    session.plain("from pyspark.sql import DataFrame\nsame = DataFrame(late._jdf, spark)\nNone")
    for name in ("late", "same"):
        session.cell(f"{name}.count()")
    session.cell("same.groupBy(F.expr('total % 2')).count().collect()")
    [kept] = frames_kept(session)
    assert stakes == [kept.key]


def reads_other(result):
    return "other" in result.computed.rows.builder.cachedPlan().output().toString()


def test_what_multiplies_rows_is_kept_once_its_rows_are_counted(session, files) -> None:
    session.plain("pairs = late.crossJoin(late.select(F.col('k').alias('other')))\nNone")
    for _ in range(2):
        assert len(session.cell("pairs.limit(2).collect()")) == 2  # counts no rows of all
    assert len(session.cell("pairs.groupBy('k').count().collect()")) == 10
    assert not any(reads_other(one) for one in frames_kept(session))
    session.cell("pairs.groupBy('other').count().collect()")
    assert any(reads_other(one) for one in frames_kept(session))


def test_what_has_no_row_twice_is_kept_like_anything_else(session, files) -> None:
    session.plain("one = spark.read.parquet(path).withColumn('k', F.col('id') % 7).dropDuplicates(['k'])\nNone")
    session.cell("one.count()")
    found = rows(session.cell("one.groupBy('k').agg(F.max('id')).collect()"))
    assert [key for key, _ in found] == list(range(7))
    assert rows(session.cell("one.select('k', 'id').orderBy('k').collect()")) == found
    assert session.report.reused > 0
