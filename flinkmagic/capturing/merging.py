"""Joins programs: a cell with the cells whose DataFrames it continues from, and all cells in one graph.

Each program numbers its own DataFrames. The DataFrame object joins them: a later cell calls the very object that an
earlier cell made. Expression ids need no care, since Spark assigns each only once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from flinkmagic.capturing.lineage import RecordedCall
from flinkmagic.capturing.program import EagerWork, Program, Use
from flinkmagic.capturing.session_snapshot import SessionSnapshot
from flinkmagic.capturing.writes.deferred_write import DeferredWrite
from flinkmagic.capturing.writes.pending import check_overwrites
from flinkmagic.capturing.writes.targets import sources_of
from flinkmagic.free_names import free_name
from flinkmagic.jvm.java import execution_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def link(program: Program, earlier: Iterable[Program]) -> None:
    """Note which DataFrames of earlier programs a program continues from (its `uses`)."""
    results = (program.frame_of(df) for df in program.results.values())
    given = program.given(number for number in results if number is not None)
    makers = [(one, one.lineage.by_output()) for one in earlier if one is not program]
    found = []
    for _, df in sorted(given.items()):
        for maker, calls in reversed(makers):
            call = calls.get(at) if (at := maker.frame_of(df)) is not None else None
            if call is not None:
                names = maker.names_of(call.output)
                found.append(Use(names[0] if names else call.text, maker))
                break
    program.uses = tuple(found)


def over_frames(
    frames: Mapping[str, DataFrame],
    earlier: Iterable[Program] = (),
    name: str | None = None,
    namespace: MutableMapping[str, Any] | None = None,
) -> Program:
    """Make a program whose results are existing DataFrames, of earlier programs or of none."""
    spark = next(iter(frames.values())).sparkSession
    program = Program(spark, name=name, results=dict(frames), complete=True, namespace=namespace)
    for df in frames.values():
        program.lineage.registry.keep(df)
    program.lineage.frames = dict(program.lineage.registry.kept)
    link(program, earlier)
    return program


def spanning(program: Program) -> Program:
    """Return the program with the calls of all those that it continues from; only its own sinks are computed."""
    return merge([program]) if len(_with_used([program])) > 1 else program


def merge(programs: Sequence[Program]) -> Program:
    """Make one program that does what all of them do, in their order.

    Sinks of equal names are distinguished by the names of their programs. A result that another of the programs
    continues from is no result of the whole, just as within one program. A variable means what the last of them bound
    to it, and the whole has the last one's name.

    Parameters
    ----------
    programs : sequence of Program
        In the order in which their cells ran; of one SparkContext.
    """
    last = programs[-1]
    whole = Program(
        last.spark,
        name=last.name,
        cell=last.cell,
        session=last.session,
        complete=True,
        parts=tuple(programs),
        namespace=last.namespace,
    )
    lineage = whole.lineage
    numberings: dict[Program, Callable[[int], int]] = {}
    calls: list[RecordedCall] = []
    for program in _with_used(programs):
        number = numberings[program] = _numbering(program, whole)
        for call in program.lineage.calls:
            inputs = tuple(map(number, call.inputs))
            calls.append(replace(call, index=len(calls), inputs=inputs, output=number(call.output)))
        for df in program.lineage.frames.values():
            lineage.registry.keep(df)
        whole.variables.update(program.variables)
        lineage.local_rdds |= program.lineage.local_rdds
        lineage.marks.update({number(frame): mark for frame, mark in program.lineage.marks.items()})
        for frame, one in program.lineage.selections.items():
            lineage.selections[number(frame)] = replace(one, parent=number(one.parent))
    lineage.calls = tuple(calls)
    if last.asked is not None:
        whole.asked = numberings[last](last.asked)
    whole.streams = tuple(
        replace(stream, index=index, frame=numberings[program](stream.frame))
        for index, (program, stream) in enumerate((one, stream) for one in programs for stream in one.streams)
    )
    _add_writes(whole, programs, numberings)
    _add_results(whole, programs)
    lineage.frames = dict(lineage.registry.kept)
    return whole


def check_runnable(program: Program) -> None:
    """Refuse a merged program that overwrites what it reads; each of its parts was checked during capture.

    Raises
    ------
    OverwritesInputError
        The message names the write, and who reads its target.
    """
    if program.parts:
        results = program.results.items() if program.writes else ()
        check_overwrites(program.writes, {name: sources_of(execution_of(df).analyzed()) for name, df in results})


def _with_used(programs: Sequence[Program]) -> list[Program]:
    """Return the programs and all that they continue from, the latter first."""
    ordered: dict[Program, None] = {}

    def visit(program: Program) -> None:
        if program not in ordered:
            for use in program.uses:
                visit(use.program)
            ordered[program] = None

    for program in programs:
        visit(program)
    return list(ordered)


def _numbering(program: Program, whole: Program) -> Callable[[int], int]:
    """Return the whole's number for a frame: a living one by identity; one that is gone belongs to one program only."""
    registry = whole.lineage.registry
    known = {number: registry.use(df) for number, df in program.lineage.registry.living().items()}

    def number_of(number: int) -> int:
        if number not in known:
            known[number] = registry.reserve()
        return known[number]

    for df, number in program.lineage.registry.aliases():
        registry.alias(df, number_of(number))
    return number_of


def _add_writes(
    whole: Program, programs: Sequence[Program], numberings: Mapping[Program, Callable[[int], int]]
) -> None:
    made: list[DeferredWrite] = []
    for program in programs:
        before = tuple(made)
        for write in program.writes:
            across = tuple(one.index for one in before if _must_wait(write, one))
            made.append(
                replace(
                    write,
                    index=len(made),
                    name=_unique(write.name, program, {one.name for one in made}),
                    frame=numberings[program](write.frame),
                    after=(*across, *(len(before) + index for index in write.after)),
                )
            )
    whole.writes = tuple(made)
    whole.eager = EagerWork(skipped=tuple(skipped for program in programs for skipped in program.eager.skipped))


def _must_wait(write: DeferredWrite, earlier: DeferredWrite) -> bool:
    if earlier.impure != write.impure:
        return True
    return earlier.facts.target.overlaps(write.facts.target) or any(
        source.overlaps(write.facts.target) for source in earlier.sources
    )


def _add_results(whole: Program, programs: Sequence[Program]) -> None:
    sessions: dict[str, SessionSnapshot | None] = {}
    for program in programs:
        # A program's own results were decided during capture, or named by the user.
        consumed = _consumed(whole, [other for other in programs if other is not program])
        for name, df in program.results.items():
            written = any(df is write.df for write in whole.writes)
            if written or whole.frame_of(df) in consumed or any(df is other for other in whole.results.values()):
                continue
            taken = {*whole.results, *(write.name for write in whole.writes)}
            unique = _unique(name, program, taken)
            whole.results[unique] = df
            sessions[unique] = program.result_session(name)
    whole.result_sessions = sessions


def _consumed(whole: Program, programs: Iterable[Program]) -> set[int]:
    """Return what the sinks of some of a whole's programs are made from."""
    frames = (df for one in programs for df in (*(write.df for write in one.writes), *one.results.values()))
    return whole.lineage.ancestors(number for df in frames if (number := whole.frame_of(df)) is not None)


def _unique(name: str, program: Program, taken: set[str]) -> str:
    if name not in taken:
        return name
    return free_name(f"{program.name or 'job'}.{name}", taken)
