"""Decides whether a pickled function is known to be pure: it sees and changes nothing but its arguments.

A function is known to be pure if all that it refers to is: names in `known`'s tables, and the user's own functions and
classes for which the same is true, whether the pickle includes them or their modules are found. It is read
(`code_references`), not run. A false negative costs a computation; a false positive would cost a wrong result.

Only what a function does by itself counts. An edited broadcast variable or module makes a function a different one, but
no less pure: that is the fingerprint's concern.
"""

from __future__ import annotations

import hashlib

from flinkmagic.functions import known
from flinkmagic.functions.code_references import (
    REFLECTIVE,
    VALUE,
    Meanings,
    Module,
    NotKnownPureError,
    Symbol,
)
from flinkmagic.functions.inert_pickle import read_pickle
from flinkmagic.functions.module_purity import Stamp, UserModule, stamp_of
from flinkmagic.functions.pickle_purity import PickleReader
from flinkmagic.functions.user_modules import CannotCompareError, find_module, library_version

_MOST = 4096
_known: dict[bytes, tuple[str | None, tuple[Stamp, ...]]] = {}
"""The answer by the digest of a pickle, with the files of the user's modules that it was read from."""


def impurity(pickled: bytes) -> str | None:
    """Return why a function that PySpark pickled (``PythonFunction.command()``) is not known to be pure; None if it is.

    Sources of the user's modules are read whenever they change.
    """
    digest = hashlib.sha256(pickled).digest()
    answer = _known.get(digest)
    if answer is None or any(stamp_of(stamp[0]) != stamp for stamp in answer[1]):
        if len(_known) >= _MOST:
            _known.clear()
        answer = _known[digest] = _judged(pickled)
    return answer[0]


def _judged(pickled: bytes) -> tuple[str | None, tuple[Stamp, ...]]:
    judge = _Judge()
    reason = None
    try:
        PickleReader(judge, *read_pickle(pickled)).read()
        judge.finish()
    except (NotKnownPureError, CannotCompareError) as why:
        reason = str(why)
    except RecursionError:
        reason = "it is nested too deeply"
    return reason, judge.stamps()


class _Judge:
    """Judges what the functions of one pickle refer to."""

    def __init__(self) -> None:
        self._modules: dict[str, UserModule] = {}
        self._libraries: dict[str, bool] = {}
        self._attributes: dict[str, bool] = {}
        self._defined: set[str] = set()
        self._texts: set[str] = set()
        self._has_paths = False

    def stamps(self) -> tuple[Stamp, ...]:
        """Return the files of the user's modules that were read."""
        return tuple(module.stamp for module in self._modules.values() if module.stamp is not None)

    # -- modules and their names ------------------------------------------------------------------------------

    def is_user_module(self, name: str) -> bool:
        """Return whether it is a module of the user's that can be found."""
        if name not in self._libraries:
            self._libraries[name] = library_version(name) is None and find_module(name) is not None
        return self._libraries[name]

    def user_module(self, name: str) -> UserModule:
        """Return a module of the user's that can be imported without harm."""
        if name not in self._modules:
            module = UserModule(name, self)
            self._modules[name] = module
            module.run()
        return self._modules[name]

    def module(self, name: str) -> None:
        """Judge the import of a module."""
        if self.is_user_module(name):
            self.user_module(name)

    def builtin(self, name: str) -> Meanings:
        """Judge a builtin name of Python."""
        if name == "getattr" or known.is_pure("builtins", name):
            return frozenset({Symbol("builtins", name)})
        if name in known.BUILTINS:
            raise NotKnownPureError(f"it names {name}")
        raise NotKnownPureError(f"it names {name}, which was not shipped with it")

    def attribute_of_module(self, module: str, name: str) -> Meanings:
        """Judge a name that is taken from a module."""
        if self.is_user_module(module):
            return self._of_user_module(module, name)
        public = known.public_module(module)
        symbol = Symbol(public, name)
        if known.is_pure(public, name) or symbol in REFLECTIVE:
            self._has_paths = self._has_paths or public == "pathlib"
            return frozenset({symbol})
        if known.is_module(f"{public}.{name}"):
            return frozenset({Module(known.public_module(f"{public}.{name}"))})
        if name in ("__name__", "__version__"):
            return VALUE
        raise NotKnownPureError(f"it uses {module}.{name}, which is not known to be pure")

    def _of_user_module(self, module: str, name: str) -> Meanings:
        found = self.user_module(module)
        if not found.has(name) and self.is_user_module(f"{module}.{name}"):
            self.module(f"{module}.{name}")
            return frozenset({Module(f"{module}.{name}")})
        return found.meanings_of(name)

    def attribute_of_symbol(self, symbol: Symbol, name: str) -> None:
        """Judge an attribute of a library's class or function."""
        if name not in known.METHODS and name not in known.SPECIAL:
            raise NotKnownPureError(f"it uses {symbol}.{name}, which is not known to be pure")
        self.attribute(name, called=False)

    def symbol(self, module: str, name: str) -> None:
        """Judge a reference of a pickle to a function or class of a module."""
        if module == "__main__":
            raise NotKnownPureError("it refers to a name of __main__ that was not shipped with it")
        first, *rest = name.split(".")
        if self.is_user_module(module):
            self._of_user_module(module, first)
        elif name.endswith("_deserialize_accumulator"):
            raise NotKnownPureError("it adds to an accumulator")
        elif not known.is_pure_in_pickles(module, first):
            raise NotKnownPureError(f"it uses {module}.{name}, which is not known to be pure")
        self._has_paths = self._has_paths or module.startswith("pathlib")
        for part in rest:
            self.attribute(part, called=True)

    # -- attributes of values ---------------------------------------------------------------------------------

    def attribute(self, name: str, called: bool) -> None:
        """Judge an attribute of a value."""
        if name.startswith("__") and name.endswith("__"):
            if name not in known.SPECIAL:
                raise NotKnownPureError(f"it uses {name}")
        else:
            self._attributes[name] = self._attributes.get(name, False) or called

    def define(self, name: str) -> None:
        """Judge an attribute that an object of the user's is given under this name."""
        self._defined.add(name)

    def text(self, text: str) -> None:
        """Judge a text constant. Pandas and numpy take two texts for the time at which they read them."""
        if text.strip().lower() in ("now", "today"):
            raise NotKnownPureError(f"it holds {text!r}, which may mean the time of the run")
        self._texts.add(text)

    def finish(self) -> None:
        """Judge the attributes, once all attributes of the user's objects have been read.

        Raises
        ------
        NotKnownPureError
            If one of them is not known to be pure.
        """
        for name, called in sorted(self._attributes.items()):
            of_path = self._has_paths and name in known.PATHS
            unknown = called and name not in known.METHODS and name not in self._defined
            if name in known.IMPURE or of_path or unknown:
                how = f"calls .{name}()" if called else f"uses .{name}"
                raise NotKnownPureError(f"it {how}, which is not known to be pure")
        if known.BY_TEXT.intersection(self._attributes):
            for text in sorted(known.IMPURE_BY_TEXT.intersection(self._texts)):
                raise NotKnownPureError(f"it holds {text!r}, by which pandas may call a method that is not pure")
