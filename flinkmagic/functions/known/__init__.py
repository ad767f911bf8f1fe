"""Lists what is known to be pure, by name: `standard_library`, `libraries`, `spark` by module, `methods` on any value.

The tables are meant to be read and extended. What is in none of them is not known to be pure.
"""

from __future__ import annotations

import builtins

from flinkmagic.functions.known import methods, pickles
from flinkmagic.functions.known.libraries import LIBRARIES
from flinkmagic.functions.known.spark import SPARK
from flinkmagic.functions.known.standard_library import STANDARD_LIBRARY

PURE = {
    module: frozenset(names.split())
    for table in (STANDARD_LIBRARY, LIBRARIES, SPARK)
    for module, names in table.items()
}
"""By module, what of it is known to be pure; ``*`` for all of it."""

METHODS = frozenset(name for names in methods.METHODS.values() for name in names.split())
IMPURE = frozenset(name for names in methods.IMPURE.values() for name in names.split())
PATHS = frozenset(methods.PATHS.split())
SPECIAL = frozenset(methods.SPECIAL.split())

BUILTINS = frozenset(dir(builtins))

BY_TEXT = frozenset({"agg", "aggregate", "apply", "transform"})
"""Methods of pandas that take the name of another method as text."""
IMPURE_BY_TEXT = frozenset(methods.IMPURE["pandas"].split())

_PACKAGES = frozenset(module[:end] for module in PURE for end in range(len(module)) if module[end] == ".")


def public_module(module: str) -> str:
    """Return the public name of a module that a pickle, or another module, calls by a private one."""
    private = module
    while private:
        if private in pickles.MODULES:
            return pickles.MODULES[private]
        private = private.rpartition(".")[0]
    return module


def is_module(module: str) -> bool:
    """Return whether it is one of the tables' modules, or a package on the way to one."""
    return module in PURE or module in _PACKAGES or module in pickles.MODULES


def is_pure(module: str, name: str) -> bool:
    """Return whether a function, class or constant of a module is known to be pure."""
    names = PURE.get(pickles.MODULES.get(module, module), frozenset())
    return name in names or ("*" in names and not name.startswith("_"))


def is_all_pure(module: str) -> bool:
    """Return whether all parts of a module are known to be pure, also those that it does not name."""
    return "*" in PURE.get(module, ())


def is_pure_in_pickles(module: str, name: str) -> bool:
    """Return whether a pickle's reference is known to be pure: some functions and names occur only in pickles."""
    if is_pure(module, name) or name in pickles.MAKERS.get(module, "").split():
        return True
    if any(module == data or module.startswith(data + ".") for data in pickles.DATA):
        return True
    return is_pure(public_module(module), name)
