"""What a session may stake on later actions."""

from __future__ import annotations

import pytest

from flinkmagic.session.actions.keeping_budget import FIRST, LEAST, KeepingBudget


def warm_budget() -> KeepingBudget:
    """One of a JVM that has kept something, which cost nothing."""
    budget = KeepingBudget()
    budget.stake("first", 0.0)
    return budget


def test_nothing_is_staked_before_anything_has_run() -> None:
    assert KeepingBudget().room(expected=0.0) == 0.0


def test_a_twentieth_of_the_time_so_far_is_open_to_stakes_that_of_the_action_included() -> None:
    budget = warm_budget()
    budget.note(12.0)
    assert budget.room(expected=8.0) == pytest.approx(1.0)
    budget.stake("a", 0.7)
    assert budget.room(expected=8.0) == pytest.approx(0.3)
    budget.stake("a", 0.7)
    assert budget.room(expected=8.0) == 0.0


def test_an_action_stakes_a_quarter_of_its_time_or_a_tenth_of_a_second() -> None:
    budget = warm_budget()
    budget.note(1000.0)
    assert budget.room(expected=8.0) == 2.0
    assert budget.room(expected=0.0) == LEAST


def test_half_of_what_was_saved_may_be_staked_again_and_a_stake_is_paid_back_once() -> None:
    budget = warm_budget()
    budget.stake("a", 0.5)
    budget.note(9.0, saved=1.0)
    assert budget.plain == 10.0
    assert budget.room(expected=10.0) == pytest.approx(1.0 + 0.5 - 0.5)
    budget.pays("a", 0.2)
    assert budget.room(expected=10.0) == pytest.approx(1.0 + 0.5 - 0.3)
    budget.pays("a", 7.0)
    assert budget.room(expected=10.0) == pytest.approx(1.5)
    budget.stake("b", 0.5)  # what "a" has paid too much does not pay for "b"
    assert budget.room(expected=10.0) == pytest.approx(1.0)


def test_what_is_kept_first_in_a_jvm_counts_as_what_it_costs() -> None:
    budget = KeepingBudget()
    budget.note(12.0)
    assert budget.room(expected=8.0) == pytest.approx(1.0 / FIRST)
    budget.stake("a", 0.1)
    assert budget.room(expected=8.0) == pytest.approx(1.0 - 0.1 * FIRST)
    budget.stake("b", 0.1)
    assert budget.room(expected=8.0) == pytest.approx(1.0 - 0.1 * FIRST - 0.1)
