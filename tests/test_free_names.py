"""Names that are free."""

from __future__ import annotations

from flinkmagic.free_names import free_name


def test_a_name_that_is_taken_gets_the_first_free_number():
    assert free_name("out", {"other"}) == "out"
    assert free_name("out", {"out", "out_3"}) == "out_2"
    assert free_name("out", {"out", "out_2"}) == "out_3"
    assert free_name("df", {"df", "result2"}, stem="result") == "result3"
