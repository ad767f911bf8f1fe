"""What is typed after a magic becomes words."""

from __future__ import annotations

import pytest

from flinkmagic.magics.magic_line_parser import split_words


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("daily --log  # what the driver's been doing (then", ["daily", "--log"]),
        ("daily --only late#1", ["daily", "--only", "late#1"]),
        ('df.where("a # b").count()  # all', ['df.where("a # b").count()']),
    ],
)
def test_a_comment_is_no_argument(line, words):
    assert split_words(line) == words
