"""A disk that is full: for shuffle files, and for what a write leaves. Sinks that do not need it finish.

A process of its own has a limit on the size of a file, which Spark meets as it meets a full disk: with an
IOException of the operating system in the middle of a file.
"""

from __future__ import annotations

import own_process
import pytest

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What became of each job, by name."""
    folder = tmp_path_factory.mktemp("full")
    return own_process.told_by("-m", "tests.deployment.full_disk_process", str(folder)).value


@pytest.mark.parametrize("name", ["shuffle", "write"])
def test_a_full_disk_fails_its_vertex_and_other_sinks_finish(told, name):
    job = told[name]
    assert job["status"] == "FAILED"
    (error,) = job["errors"]
    assert "File too large" in error
    assert job["finished"] == [f"✓ small_{name}"]
    assert f"out/{name}/_SUCCESS" not in job["success"]
    assert f"out/small_{name}/_SUCCESS" in job["success"]
    (failed,) = job["vertices"]
    assert failed.startswith("Source: Range")


@pytest.mark.parametrize("name", ["shuffle", "write"])
def test_with_room_the_same_graph_runs_to_its_end(told, name):
    job = told[f"{name} mended"]
    assert (job["status"], job["errors"]) == ("FINISHED", [])
    assert f"out/{name}/_SUCCESS" in job["success"]
    assert told["rows"] == 60_000
