"""Reads a code object's instructions, whether it comes from a pickle or from a module's source. Python 3.10 to 3.14."""

from __future__ import annotations

import dis
import functools
import sys
import types
from collections.abc import Iterator
from typing import Any

from flinkmagic.functions.inert_pickle import Record

_CONSTS = 7
"""Which argument of `types.CodeType` holds the constants, in all versions."""
_NO_STEP = frozenset({"CACHE", "EXTENDED_ARG", "NOP", "NOT_TAKEN", "RESUME"})
_LEAVES = ("POP_TOP", "STORE_", "POP_JUMP_", "SWAP", "ROT_", "COPY", "DELETE_")
"""Instructions that leave what lies under their operands as it is, though the stack is no higher after them."""
_OPENS = frozenset({"BEFORE_WITH", "LOAD_ATTR", "LOAD_METHOD", "UNPACK_EX", "UNPACK_SEQUENCE"})
"""Instructions that put more in place of what they take."""
_JUMPS = ("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_ABSOLUTE")
_CALLS = frozenset({"CALL", "CALL_FUNCTION", "CALL_METHOD", "PRECALL"})
_OPTIMIZED = 0x1


class CodeView:
    """A code object.

    Parameters
    ----------
    consts : tuple
        Its constants; code objects among them are views.
    """

    def __init__(self, code: types.CodeType, consts: tuple[Any, ...]) -> None:
        self.code = code
        self.consts = consts

    @classmethod
    def of(cls, code: Record | types.CodeType) -> CodeView:
        """Return the view of a code object, or of the record of one."""
        if isinstance(code, types.CodeType):
            consts = code.co_consts
        else:
            code, consts = code_and_consts(code)
        return cls(code, tuple(cls.of(const) if _is_code(const) else const for const in consts))

    @functools.cached_property
    def instructions(self) -> list[dis.Instruction]:
        """Its instructions, without those that do nothing."""
        return [one for one in dis.get_instructions(self.code) if one.opname not in _NO_STEP]

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of its parameters; none for the body of a class or a module."""
        code = self.code
        count = code.co_argcount + code.co_kwonlyargcount
        count += bool(code.co_flags & 0x4) + bool(code.co_flags & 0x8)  # *args, **kwargs
        return code.co_varnames[:count] if code.co_flags & _OPTIMIZED else ()

    @property
    def nested(self) -> Iterator[CodeView]:
        """The functions, classes and comprehensions in it."""
        return (const for const in self.consts if isinstance(const, CodeView))

    def const(self, place: int) -> Any:
        """Return the constant that an instruction loads; None if it loads none."""
        if not 0 <= place < len(self.instructions):
            return None
        one = self.instructions[place]
        if one.opname == "LOAD_SMALL_INT":
            return one.arg
        return self.consts[one.arg or 0] if one.opname == "LOAD_CONST" else None

    def after(self, place: int) -> int:
        """Return the place of the next instruction, except the one that makes room for a call."""
        place += 1
        while place < len(self.instructions) and self.instructions[place].opname == "PUSH_NULL":
            place += 1
        return place

    def is_called(self, place: int) -> bool:
        """Return whether what an instruction loads is called; also True if that cannot be told."""
        one = self.instructions[place]
        if one.opname == "LOAD_METHOD" or (one.opname == "LOAD_ATTR" and self._loads_method(one)):
            return True
        consumer = self._consumer(place)
        return consumer is None or self._is_callee(*consumer)

    def call_of(self, place: int) -> int | None:
        """Return the place of the instruction that calls what one loads; None if there is none, or it is unknown."""
        consumer = self._consumer(place)
        return consumer[0] if consumer is not None and self._is_callee(*consumer) else None

    @staticmethod
    def _loads_method(one: dis.Instruction) -> bool:
        # From 3.12 on, where LOAD_METHOD is gone, the lowest bit of the argument says so.
        return "LOAD_METHOD" not in dis.opmap and bool((one.arg or 0) & 1)

    def _consumer(self, place: int) -> tuple[int, int] | None:
        """Return which instruction pops what one loads, and what lies above it by then; None if unknown."""
        above = 0
        at = place + 1
        while at < len(self.instructions):
            one = self.instructions[at]
            if one.opname.startswith(_JUMPS):
                target = self._place_of(one.argval)
                if target is None or target <= at:
                    return None
                at = target
                continue
            if above == 0 and one.opname in _OPENS:
                return at, above
            loops = one.opname == "FOR_ITER"
            effect = 0 if one.opname == "KW_NAMES" else dis.stack_effect(one.opcode, one.arg, jump=loops)
            if above + effect < 0 or (above + effect == 0 and not one.opname.startswith(_LEAVES)):
                return at, above
            above += effect
            at = (self._place_of(one.argval) or at + 1) if loops else at + 1
        return None

    def _is_callee(self, call: int, above: int) -> bool:
        """Return whether a call calls what has so much above it; else that is an argument of it, or it is no call."""
        one = self.instructions[call]
        if one.opname == "CALL_FUNCTION_EX":
            return above >= (2 if sys.version_info >= (3, 14) else 1 + ((one.arg or 0) & 1))
        if one.opname in ("CALL_FUNCTION_KW", "CALL_KW"):
            return above > (one.arg or 0)
        return one.opname in _CALLS and above >= (one.arg or 0)

    def _place_of(self, offset: int) -> int | None:
        return next((at for at, one in enumerate(self.instructions) if one.offset >= offset), None)

    def arguments(self, call: int) -> tuple[int, tuple[str, ...]] | None:
        """Return how many positional arguments a call has, and the names of the others; None if it unpacks some."""
        one = self.instructions[call]
        if one.opname == "CALL_FUNCTION_EX":
            return None
        names: tuple[str, ...] = ()
        if one.opname in ("CALL_FUNCTION_KW", "CALL_KW"):
            names = self.const(call - 1)
        elif call and self.instructions[call - 1].opname == "KW_NAMES":
            names = self.consts[self.instructions[call - 1].arg or 0]
        return (one.arg or 0) - len(names), names


def code_and_consts(record: Record) -> tuple[types.CodeType, tuple[Any, ...]]:
    """Return the code object that a record is of, without its constants, and these: some may be records, too."""
    args = list(record.args)
    consts = args[_CONSTS]
    args[_CONSTS] = (None,) * len(consts)
    return types.CodeType(*args), consts


def _is_code(const: Any) -> bool:
    return isinstance(const, types.CodeType) or (isinstance(const, Record) and const.is_code)
