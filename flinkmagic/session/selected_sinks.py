"""Selects the sinks of a run (``%flinkrun NAME --only SINK ...``).

1. A sink is named by a result's variable, the last part of a path, or a table's name; if a name fits several sinks, the
   second is named ``name#2``.
2. What a sink is computed from belongs to the run: its ancestors in the graph.
3. So does an earlier write that a sink must follow (a control edge), unless a run of the graph has written it already:
   run later, it would read, or replace, what the sink has written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from flinkmagic.amounts import count
from flinkmagic.errors.usage import AmbiguousSinkError, InvalidValueError, UnknownNameError
from flinkmagic.planning.sinks import PlannedSink
from flinkmagic.session.summary import sink_line


@dataclass(frozen=True)
class SelectedSinks:
    """The sinks of a run."""

    run: frozenset[int]
    """Indices of all sinks that run."""
    earlier: tuple[tuple[PlannedSink, PlannedSink], ...] = ()
    """The writes that run without being named, each with the sink that must follow it."""


def select_sinks(
    graph: str, sinks: Sequence[PlannedSink], words: Iterable[str], written: Collection[int]
) -> SelectedSinks:
    """Return the sinks of a run, by their names.

    Parameters
    ----------
    written : collection of int
        Indices of the sinks that earlier runs of the graph have finished.

    Raises
    ------
    UnknownNameError
        If a name fits no sink.
    AmbiguousSinkError
        If a name fits several.
    InvalidValueError
        If there is no name.
    """
    words = [words] if isinstance(words, str) else list(words)
    if not words:
        raise InvalidValueError(words, "one or more names of sinks", "only")
    waiting = [_named(graph, sinks, word) for word in words]
    run, earlier = {sink.index for sink in waiting}, []
    while waiting:
        sink = waiting.pop(0)
        for index in sink.write.after if sink.write is not None else ():
            if index not in run and index not in written:
                run.add(index)
                earlier.append((sinks[index], sink))
                waiting.append(sinks[index])
    return SelectedSinks(frozenset(run), tuple(earlier))


def sink_words(sinks: Sequence[PlannedSink]) -> list[str]:
    """Return, for each sink, a word that names it alone."""
    words = []
    for sink in sinks:
        word = _last_part(sink)
        fitting = [one.index for one in sinks if _fits(one, word)]
        words.append(word if len(fitting) == 1 else f"{word}#{fitting.index(sink.index) + 1}")
    return words


def selected_notes(sinks: Sequence[PlannedSink], selected: SelectedSinks) -> list[str]:
    """Return which part of a graph runs (``1 of 3 sinks: by_hour``), and why writes run that were not named."""
    names = ", ".join(sink.name for sink in sinks if sink.index in selected.run)
    lines = [f"{len(selected.run)} of {count(len(sinks), 'sink')}: {names}"]
    lines += [f"{earlier.name} runs too: {then.name} must follow it" for earlier, then in selected.earlier]
    return lines


def _named(graph: str, sinks: Sequence[PlannedSink], word: str) -> PlannedSink:
    fitting = [sink for sink in sinks if _fits(sink, word)]
    name, mark, number = word.rpartition("#")
    if not fitting and mark and number.isdecimal():
        fitting = [sink for sink in sinks if _fits(sink, name)][int(number) - 1 : int(number)] if int(number) else []
    if not fitting:
        raise UnknownNameError("sink", word, sink_words(sinks))
    if len(fitting) > 1:
        numbered = [(f"{word}#{number}", sink_line(one)) for number, one in enumerate(fitting, start=1)]
        raise AmbiguousSinkError(word, graph, numbered)
    return fitting[0]


def _fits(sink: PlannedSink, word: str) -> bool:
    if word in (sink.name, _last_part(sink)):
        return True
    if sink.write is None:
        return word == sink.variable
    separator = "/" if sink.write.facts.target.table is None else "."
    return f"{separator}{sink.target.rstrip('/')}".endswith(f"{separator}{word}")


def _last_part(sink: PlannedSink) -> str:
    if sink.write is None:
        return sink.variable or sink.name
    separator = "/" if sink.write.facts.target.table is None else "."
    return sink.target.rstrip("/").rpartition(separator)[-1] or sink.name
