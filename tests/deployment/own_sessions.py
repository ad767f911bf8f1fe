"""What scripts with a session of their own have in common; the folder that they write to is their argument."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow.parquet as parquet

import flinkmagic
from tests.benchmarks._standalone_cluster import JVM_OPTIONS

FOLDER = Path(sys.argv[1])


def session(master, **more):
    spark = flinkmagic.local_session(
        "own",
        master,
        {
            "spark.ui.enabled": "false",
            "spark.driver.memory": "1g",
            "spark.driver.host": "127.0.0.1",
            "spark.executor.extraJavaOptions": JVM_OPTIONS,
            "spark.sql.shuffle.partitions": "2",
            **more,
        },
    )
    spark.sparkContext.setLogLevel("OFF")
    return spark


def rows(path):
    return sorted(list(row.values()) for row in parquet.read_table(path).to_pylist())


def records(job):
    return [
        {
            "vertex": task.vertex_id,
            "subtask": task.subtask,
            "attempt": task.attempt,
            "state": task.state.name,
            "slot": task.slot,
            "executor": task.executor,
            "start": task.start_ms,
            "end": task.end_ms,
            "role": task.role,
            "reason": task.reason,
            "error": task.error,
            "stage": task.stage,
        }
        for task in job.tasks()
    ]


def told(job):
    snapshot = job.snapshot()
    return {
        "status": job.status.name,
        "slots": snapshot.slots_total,
        "counts": snapshot.task_counts,
        "vertices": {vertex.id: vertex.parallelism for vertex in job.execution_graph.job_vertices},
        "tasks": records(job),
    }
