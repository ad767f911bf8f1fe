"""Reads what is typed after a magic: words, help, and mistakes, answered with what was probably meant."""

from __future__ import annotations

import argparse
import functools
import itertools
import shlex
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, TypeVar

from IPython.core.error import UsageError
from IPython.core.magic import no_var_expand
from IPython.core.magic_arguments import magic_arguments

from flinkmagic.capturing.hooks.current_capture import outside_captures

_Magic = TypeVar("_Magic", bound=Callable[..., Any])

_OPENING, _CLOSING = "([{", ")]}"
_HELP = frozenset({"-h", "--help"})


def with_arguments(name: str) -> Callable[[_Magic], _Magic]:
    """Make the `argument` decorators below this one the arguments of a magic, which prints its help for ``--help``.

    Its words are taken as they are typed: IPython expands no variables in them. What the magic itself asks of Spark
    belongs to no cell that is captured around it.
    """

    def decorate(function: _Magic) -> _Magic:
        magic = no_var_expand(magic_arguments(name)(function))

        @functools.wraps(magic)
        def call(magics: Any, line: str, *cell: str) -> Any:
            __tracebackhide__ = True
            if asks_for_help(line):
                # IPython's help is text for its documentation, where it is an indented block.
                print(magic.parser.format_help().removeprefix("::").strip("\n"))
                return None
            with outside_captures():
                return magic(magics, line, *cell)

        return call  # type: ignore[return-value]

    return decorate


def asks_for_help(line: str) -> bool:
    """Return whether ``--help`` is among the words of a line."""
    return not _HELP.isdisjoint(split_words(line))


def parsed(magic: Callable[..., Any], line: str) -> argparse.Namespace:
    """Return the arguments of a magic as they are typed.

    Raises
    ------
    UsageError
        If they are wrong; it names the option that was probably meant.
    """
    parser: argparse.ArgumentParser = magic.parser  # type: ignore[attr-defined]
    words = split_words(line)
    try:
        return parser.parse_args(words)
    except UsageError as error:
        known = [text for action in parser._actions for text in action.option_strings if len(text) > 2]
        typed = [word.partition("=")[0] for word in words if word.startswith("-")]
        meant = [match for word in typed if word not in known for match in get_close_matches(word, known, 1)]
        raise UsageError(f"{error}. Did you mean {', '.join(meant)}?" if meant else str(error)) from None


def split_words(line: str) -> list[str]:
    """Split a line at blanks, but not inside brackets and quotes: ``df.where("a > 1").count()`` is one word.

    A word that holds brackets is an expression and stays as it is; others lose their quotes. What follows a ``#`` that
    stands alone is a comment, as the cures of findings have one.
    """
    words, word, quote, depth = [], "", "", 0
    for position, char in enumerate(line):
        if quote:
            quote = "" if char == quote and line[position - 1] != "\\" else quote
        elif char in "\"'":
            quote = char
        elif char in _OPENING:
            depth += 1
        elif char in _CLOSING:
            depth -= 1
        elif char.isspace() and depth <= 0:
            words.append(word)
            word = ""
            continue
        word += char
    told = itertools.takewhile(lambda word: word != "#", filter(None, (*words, word)))
    return [_unquoted(word) for word in told]


def _unquoted(word: str) -> str:
    if any(char in word for char in _OPENING):
        return word
    try:
        return "".join(shlex.split(word))
    except ValueError as error:
        raise UsageError(f"{word}: {error}".lower()) from None
