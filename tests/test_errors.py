"""What all errors have in common."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import string

import pytest

from flinkmagic import errors
from flinkmagic.errors.base import FlinkMagicError, InvariantViolatedError
from flinkmagic.errors.iterations import SuperstepFailedError
from flinkmagic.errors.usage import InvalidValueError

CLASSES = [
    one
    for module in pkgutil.iter_modules(errors.__path__)
    for _, one in inspect.getmembers(importlib.import_module(f"flinkmagic.errors.{module.name}"), inspect.isclass)
    if issubclass(one, FlinkMagicError) and one.__module__ == f"flinkmagic.errors.{module.name}"
]


@pytest.mark.parametrize("error", [one for one in CLASSES if one.template], ids=lambda one: one.__name__)
def test_a_text_is_completed_by_the_fields_of_its_class(error: type[FlinkMagicError]) -> None:
    assert dataclasses.is_dataclass(error)
    named = {name for _, name, _, _ in string.Formatter().parse(error.template) if name}
    assert named <= {field.name for field in dataclasses.fields(error)}


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (InvalidValueError(0, "1 or more", "slots"), "slots must be 1 or more, not 0."),
        (InvariantViolatedError("a {clock} goes on"), "It does not hold that a {clock} goes on. This is a bug of "
         "flinkmagic: please report it."),
        (SuperstepFailedError("ranks", 3, ["ValueError: no rank"]), "Superstep 3 of the loop 'ranks' failed.\n"
         "ValueError: no rank\nCorrect the step, or what it reads, and run the loop again."),
    ],
)  # fmt: skip
def test_texts(error: FlinkMagicError, text: str) -> None:
    assert str(error) == text
