"""What all errors have in common."""

from __future__ import annotations

import abc
import copy
import dataclasses
import importlib
import inspect
import pickle
import pkgutil
import string

import pytest

from flinkmagic import errors
from flinkmagic.errors.base import FlinkMagicError, InvariantViolatedError, UserError
from flinkmagic.errors.iterations import SuperstepFailedError
from flinkmagic.errors.scheduling import ExecutorLostError
from flinkmagic.errors.usage import InvalidValueError

CLASSES = [
    one
    for module in pkgutil.iter_modules(errors.__path__)
    for _, one in inspect.getmembers(importlib.import_module(f"flinkmagic.errors.{module.name}"), inspect.isclass)
    if issubclass(one, FlinkMagicError) and one.__module__ == f"flinkmagic.errors.{module.name}"
]


@pytest.mark.parametrize("error", [one for one in CLASSES if one.template], ids=lambda one: one.__name__)
def test_a_text_is_completed_by_the_fields_of_its_class(error: type[FlinkMagicError]) -> None:
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


def test_a_subclass_is_a_dataclass_without_a_decorator() -> None:
    class RefusedError(UserError):
        line: int
        words: list[str] = dataclasses.field(default_factory=list)

        template = "line {line}: {words}"

    class RefusedTwiceError(RefusedError):
        """Has no field of its own."""

    assert str(RefusedTwiceError(3, ["a"])) == "line 3: ['a']"
    assert (RefusedTwiceError(3).words, RefusedTwiceError(line=4).line) == ([], 4)
    with pytest.raises(TypeError, match="line"):
        RefusedError()  # type: ignore[call-arg]


def test_an_abstract_subclass() -> None:
    class GoneError(FlinkMagicError, abc.ABC):
        what: str

        @abc.abstractmethod
        def cure(self) -> str: ...

    class SlotGoneError(GoneError):
        def cure(self) -> str:
            return f"replace {self.what}"

    assert (GoneError.__abstractmethods__, SlotGoneError.__abstractmethods__) == ({"cure"}, frozenset())
    assert SlotGoneError("a slot").cure() == "replace a slot"


def test_an_error_is_equal_to_itself_only() -> None:
    one, other = ExecutorLostError("tm-1", "killed"), ExecutorLostError("tm-1", "killed")
    assert one != other
    assert len({one, other, one}) == 2


def test_an_error_survives_pickling_and_copying() -> None:
    error = SuperstepFailedError("ranks", 3, ["ValueError: no rank"])
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):  # noqa: S301
        assert type(again) is SuperstepFailedError
        assert vars(again) == vars(error)
        assert str(again) == str(error)
