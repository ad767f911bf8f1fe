"""Completes the magics by Tab: options, their values, names of graphs and DataFrames (IPython's matcher API)."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher
from pyspark.sql import DataFrame

from flinkmagic.session.graph_names import RESERVED

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from flinkmagic.magics.flink_magics import FlinkMagics

_CALL = re.compile(r"^\s*(?P<escape>%%?)(?P<magic>flink\w+)\s+(?P<words>.*)$", re.DOTALL)


def register_completion(shell: InteractiveShell, magics: FlinkMagics) -> None:
    """Add a matcher for lines that call one of the magics."""
    if shell.Completer is None:
        return

    @context_matcher(identifier="flinkmagic")
    def flinkmagic_matcher(context: CompletionContext) -> SimpleMatcherResult:
        found = completions(magics, context.line_with_cursor[: context.cursor_position])
        return SimpleMatcherResult(
            completions=[SimpleCompletion(text=text, type="param") for text in found], suppress=bool(found)
        )

    # The extension may be loaded again: the earlier matcher would offer outdated names.
    matchers = shell.Completer.custom_matchers
    others = [one for one in matchers if getattr(one, "matcher_identifier", None) != "flinkmagic"]
    matchers[:] = [*others, flinkmagic_matcher]


def completions(magics: FlinkMagics, line: str) -> list[str]:
    """Return what can follow at the end of `line`, a line up to the cursor.

    Parameters
    ----------
    line : str
        Such as ``%flinkrun del`` or ``%%flinkgraph delays --par``. All facts about options come from the magics' own
        parsers: names, choices, and for a type with `suggestions`, those.
    """
    call = _CALL.match(line)
    if call is None:
        return []
    kind = "cell" if call["escape"] == "%%" else "line"
    magic = magics.magics[kind].get(call["magic"])
    parser = getattr(magic, "parser", None)
    if parser is None:
        return []
    words = call["words"].split()
    word = words.pop() if words and not line[-1].isspace() else ""
    return sorted(text for text in _choices(magics, parser, kind, words, word) if text.startswith(word))


def _choices(
    magics: FlinkMagics, parser: argparse.ArgumentParser, kind: str, words: list[str], word: str
) -> Iterable[str]:
    if word.startswith("-"):
        return _options(parser, words)
    option = _open_option(parser, words)
    if option is not None and option.dest == "only":
        return _sinks(magics, words)
    if option is not None and option.nargs != 0:
        return map(str, option.choices or getattr(option.type, "suggestions", None) or ())
    if kind == "cell":
        return ()
    if not parser.prog.endswith("flinkgraph"):
        return tuple(magics.graphs)
    return (*magics.graphs, *_frames(magics.shell.user_ns), *(() if words else RESERVED))


def _open_option(parser: argparse.ArgumentParser, words: list[str]) -> argparse.Action | None:
    """Return the option whose value the next word is: one that takes several stays open."""
    for place in range(len(words) - 1, -1, -1):
        option = next((a for a in parser._actions if words[place] in a.option_strings), None)
        if option is not None:
            return option if option.nargs == "+" or place == len(words) - 1 else None
    return None


def _sinks(magics: FlinkMagics, words: list[str]) -> Iterable[str]:
    """Return the sinks, not yet named, of the graph that is named before."""
    graph = next((magics.graphs[word] for word in words if word in magics.graphs), None)
    return [name for name in graph.sink_names() if name not in words] if graph is not None else ()


def _options(parser: argparse.ArgumentParser, words: list[str]) -> Iterable[str]:
    """Yield the long options that can still be given: one with a value may be repeated only if it collects them."""
    for action in parser._actions:
        given = any(word in action.option_strings for word in words)
        if not given or isinstance(action, argparse._AppendAction):
            yield from (text for text in action.option_strings if len(text) > 2)


def _frames(namespace: dict[str, Any]) -> Iterable[str]:
    return [
        name for name, value in list(namespace.items()) if isinstance(value, DataFrame) and not name.startswith("_")
    ]
