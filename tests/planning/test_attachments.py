"""What was shipped with the session travels with the job's graphs."""

from __future__ import annotations

from flinkmagic.graph.job_graph_generator import create_job_graph
from flinkmagic.planning import plan


def test_python_files_travel_to_the_job_graph(spark, tmp_path) -> None:
    module = tmp_path / "shipped_helper.py"
    module.write_text("ANSWER = 42\n")
    spark.sparkContext.addPyFile(str(module))
    planned = plan(spark.range(3), spark=spark)
    settings = create_job_graph(planned.environment.get_stream_graph()).settings
    address = settings.user_artifacts["shipped_helper.py"]
    assert address.endswith("/shipped_helper.py")
    assert address in settings.blob_keys


def test_a_stage_may_have_more_tasks_than_flink_has_key_groups(spark) -> None:
    planned = plan(spark.range(0, 40_000, 1, 40_000), spark=spark)
    graph = create_job_graph(planned.environment.get_stream_graph())
    assert max(vertex.parallelism for vertex in graph.vertices_in_topological_order()) == 40_000
