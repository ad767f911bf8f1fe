"""What a session may stake on later actions."""

from __future__ import annotations

import pytest

from flinkmagic.session.actions.ledger import LEAST, Ledger


def test_nothing_is_staked_before_anything_has_run() -> None:
    assert Ledger().room(expected=0.0) == 0.0


def test_a_twentieth_of_the_time_so_far_is_open_to_stakes_that_of_the_action_included() -> None:
    ledger = Ledger()
    ledger.note(12.0)
    assert ledger.room(expected=8.0) == pytest.approx(1.0)
    ledger.stake("a", 0.7)
    assert ledger.room(expected=8.0) == pytest.approx(0.3)
    ledger.stake("a", 0.7)
    assert ledger.room(expected=8.0) == 0.0


def test_an_action_stakes_a_quarter_of_its_time_or_a_tenth_of_a_second() -> None:
    ledger = Ledger()
    ledger.note(1000.0)
    assert ledger.room(expected=8.0) == 2.0
    assert ledger.room(expected=0.0) == LEAST


def test_half_of_what_was_saved_may_be_staked_again_and_a_stake_is_paid_back_once() -> None:
    ledger = Ledger()
    ledger.stake("a", 0.5)
    ledger.note(9.0, saved=1.0)
    assert ledger.plain == 10.0
    assert ledger.room(expected=10.0) == pytest.approx(1.0 + 0.5 - 0.5)
    ledger.pays("a", 0.2)
    assert ledger.room(expected=10.0) == pytest.approx(1.0 + 0.5 - 0.3)
    ledger.pays("a", 7.0)
    assert ledger.room(expected=10.0) == pytest.approx(1.5)
    ledger.stake("b", 0.5)  # what "a" has paid too much does not pay for "b"
    assert ledger.room(expected=10.0) == pytest.approx(1.0)
