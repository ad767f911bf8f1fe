"""A session that runs FAIR and gives each task two cores: slots are its cores by two, and jobs share them."""

from __future__ import annotations

import own_process
import pytest

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def told():
    return own_process.told_by("-m", "tests.deployment.fair_session_process").value


def test_slots_are_cores_by_the_cores_of_a_task(told):
    assert told["slots"] == 2
    assert told["most"] <= 2
    assert told["slot_names"] == ["driver_0", "driver_1"]


def test_each_job_has_a_pool_of_its_own_and_a_short_one_does_not_wait_for_a_long_one(told):
    assert told["status"] == ["FINISHED", "FINISHED"]
    assert told["short_ended_first"]
    assert all(pool.startswith("flinkmagic-") for pool in told["pools"].values())
    assert len(set(told["pools"].values())) == 2
    assert told["users_pool"] is None


def test_a_batch_of_a_stream_has_its_query_s_pool(told):
    assert told["batch_pools"] == [["FINISHED", "default"], ["FINISHED", "mine"]]
