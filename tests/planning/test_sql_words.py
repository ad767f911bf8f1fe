"""Parts of a SQL text are told by what they do and which tables they read."""

from __future__ import annotations

import pytest

import flinkmagic


@pytest.fixture(scope="module")
def views(spark):
    spark.range(0, 600, 1, 2).selectExpr("id", "id % 50 AS o_id", "id % 7 AS kind").createOrReplaceTempView("w_items")
    spark.range(0, 50).selectExpr("id AS o_id", "id % 5 AS who").createOrReplaceTempView("w_orders")
    for name in ("w_items", "w_orders"):
        spark.table(name).write.mode("overwrite").saveAsTable(f"{name}_t")
    yield
    for name in ("w_items", "w_orders"):
        spark.sql(f"DROP TABLE {name}_t")
        spark.catalog.dropTempView(name)


def titles(graph):
    return [node.title for node in graph.view("job").nodes]


def test_boxes_of_a_text_say_what_they_do_and_to_which_table(spark, views):
    with flinkmagic.capture(spark) as program:
        rows = spark.sql("""
            SELECT o.who, count(*) AS n FROM w_items_t i JOIN w_orders_t o ON i.o_id = o.o_id WHERE i.kind > 2
            GROUP BY o.who ORDER BY n DESC LIMIT 3""")
        rows.write.format("noop").mode("overwrite").save()
    graph = flinkmagic.compile(program, "words", parallelism=2)
    assert titles(graph)[:3] == [
        "w_orders_t: scan, filter",
        "w_items_t: scan, filter, join on o_id, aggregate by who",
        "w_items_t, w_orders_t: aggregate by who, first 3 by n DESC",
    ]
    first = graph.view("job").nodes[0].main_operator
    assert first.call.startswith("sql(")
    assert first.subtitle.endswith("Filter")
    # In the stream graph each operator says what it alone does; one that does nothing of note has Spark's word.
    told = [node.title for node in graph.view("stream").nodes]
    assert "w_items_t: join on o_id" in told
    assert "Project" in told
    assert not [title for title in told if title.startswith("sql(")]


def test_what_texts_share_is_told_by_its_tables_and_columns(spark, views):
    text = "SELECT o_id, count(*) AS n FROM w_items_t WHERE kind > 1 GROUP BY o_id"
    with flinkmagic.capture(spark) as program:
        spark.sql(text).write.format("noop").mode("overwrite").save()
        spark.sql(text).write.format("noop").mode("append").save()
    graph = flinkmagic.compile(program, "told", parallelism=2)
    (note,) = [line for line in graph.summary().splitlines() if "is shared by" in line]
    assert note.strip().startswith("w_items_t (aggregate by o_id) by o_id is shared by 2 sinks")


def test_a_finished_job_tells_what_its_vertices_took_longest_first(spark, views):
    with flinkmagic.capture(spark) as program:
        rows = spark.sql("SELECT kind, count(*) AS n FROM w_items_t GROUP BY kind")
        rows.write.format("noop").mode("overwrite").save()
        spark.sql("SELECT who FROM w_orders_t").write.format("noop").mode("overwrite").save()
    job = flinkmagic.compile(program, "took", parallelism=2).run()
    snapshot = job.snapshot()
    read = job.execution_graph.job_vertices[0].id
    assert (snapshot.costs[read].rows_in, snapshot.costs[read].rows_out) == (600, 14)
    took = [snapshot.costs[node.vertex_id].took_ms for node in snapshot.longest_first(_boxes(job, snapshot))]
    assert took == sorted(took, reverse=True)
    assert len(took) == 3


def _boxes(job, snapshot):
    from flinkmagic.display import job_view

    return job_view(job.execution_graph.job_graph).paint(snapshot).nodes
