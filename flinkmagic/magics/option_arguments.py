"""Makes a graph's options after a magic and in `%config` from their table (`flinkmagic.options`)."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from IPython.core.magic_arguments import argument
from traitlets import Enum, HasTraits, Int, MetaHasTraits, TraitError, Unicode, validate

from flinkmagic.errors.usage import InvalidValueError
from flinkmagic.options import FOLDER, OPTIONS, Option, typed
from flinkmagic.simulation.arguments import SIMULATION_ARGUMENTS

_Magic = TypeVar("_Magic", bound=Callable[..., Any])


def _argument(option: Option) -> Callable[[_Magic], _Magic]:
    values = option.values
    how = {"choices": values.choices} if values.choices else {"type": typed(values)}
    # argparse takes a per cent sign in a help text for a format.
    text = f"{option.what} ({option.by_default})".replace("%", "%%")
    made: Callable[[_Magic], _Magic] = argument(*option.flags, metavar=values.metavar, help=text, **how)
    return made


def job_arguments(magic: _Magic) -> _Magic:
    """Give a magic the options of a graph (a decorator to use among IPython's `argument`)."""
    for option in reversed(OPTIONS):
        magic = _argument(option)(magic)
    return magic


def simulation_arguments(magic: _Magic) -> _Magic:
    """Give a magic the options of a simulation."""
    for flag, how in reversed(SIMULATION_ARGUMENTS.items()):
        magic = argument(flag, **how)(magic)
    return magic


def job_options(given: argparse.Namespace, defaults: object) -> dict[str, Any]:
    """Return keywords for `flinkmagic.compile`: as typed, else as configured."""
    chosen = {option.name: getattr(given, option.name) for option in OPTIONS}
    return {name: getattr(defaults, name) if value is None else value for name, value in chosen.items()}


def _trait(option: Option) -> Any:
    told: dict[str, Any] = {"help": option.sentence, "allow_none": option.default is None}
    if option.values.choices:
        trait: Any = Enum(option.values.choices, option.default, **told)
    elif option.values.type is int:
        trait = Int(option.default, **told)
    else:
        trait = Unicode(option.default, **told)
    return trait.tag(config=True)


def _checked(defaults: Any, proposal: Any) -> Any:
    option = next(each for each in OPTIONS if each.name == proposal["trait"].name)
    try:
        option.check(proposal["value"])
    except InvalidValueError as error:
        raise TraitError(str(error)) from None
    if option.values is FOLDER:  # it stays when the kernel changes its own
        return str(Path(proposal["value"]).expanduser().absolute()) if proposal["value"] else None
    return proposal["value"]


ConfiguredOptions: Any = MetaHasTraits(
    "ConfiguredOptions",
    (HasTraits,),
    {
        "__doc__": "The defaults of a graph's options, for `%config`.",
        "__module__": __name__,
        **{option.name: _trait(option) for option in OPTIONS},
        "_checked": validate(*(option.name for option in OPTIONS))(_checked),
    },
)
"""A class with a trait for each option."""
