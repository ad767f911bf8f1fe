"""Runs a session's actions under Flink's scheduler.

1. An action whose query is one stage is made as it is, and so is one that only Spark itself can carry out. A query of
   the first rows of a source is not even planned before.
2. The stages of any other query run as a job, except the last one, which the action itself runs.
3. Failures follow the rules of any line (`line_as_job`). If plain Spark is to carry the action out, it is made as it
   is; the line that says so is left out if that fails as well.
4. Failures of the last stage are raised in the same way.
5. If a job that keeps rows for later actions fails, the query runs again without keeping any: what plain Spark does not
   compute for the action must not make it fail. If it fails again, the error is plain Spark's own. If the last stage
   fails, which may keep columns of text files, the action is made as it is.
6. What the action itself runs, all of it or its last stage, has a job tag of its own, so that it can be followed and
   cancelled.
7. An action whose small answer is known, because it was asked for before, runs nothing (`asked_answers`).
8. What a signal handler of the user's raises ends the action, wherever it is.
9. If the last stage fails, and reads rows that another process has stored, the action is made as it is.
10. With a durable store, a cache of the user's may take stored rows (`durable_caches`): the next action tells.
11. `toLocalIterator` computes its rows as they are asked for: how that ended is told when it is known.
"""

from __future__ import annotations

import logging
import sys
import time
from collections import deque
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from flinkmagic.capturing.hooks.call_hooks import is_lazy
from flinkmagic.capturing.writes.sparks_errors import SPARKS_ERRORS, is_cancelled, release_log, withheld_log
from flinkmagic.capturing.writes.write_commands import is_observed
from flinkmagic.deployment.stages.finished_queries import FinishedQuery
from flinkmagic.deployment.stages.stage_place import PROPERTY, StagePlace
from flinkmagic.deployment.watching.call_work import CallWork
from flinkmagic.display.printable import lines_visible
from flinkmagic.errors.actions import (
    ActionCancelledError,
    ActionFailedError,
    PartitionsAskedError,
    cache_found,
    failed_in,
    not_kept,
    not_noted,
    not_read,
)
from flinkmagic.errors.base import UserError, add_note, is_from_signal
from flinkmagic.errors.capturing import NotDeployedError
from flinkmagic.jvm.java import execution_of
from flinkmagic.options import JobOptions
from flinkmagic.planning.java_classes import CLASSES
from flinkmagic.planning.run_origin import NO_QUERY, LineQuery
from flinkmagic.reuse.durable_caches import DurableCaches, durable_caches
from flinkmagic.reuse.durable_rows import durable_rows
from flinkmagic.reuse.durable_store import KERNEL
from flinkmagic.reuse.retained_results import retained_results
from flinkmagic.session.actions.action_graph import ActionGraph
from flinkmagic.session.actions.action_kinds import ActionKind, PlainCallError, action_kind, java_call, query_name
from flinkmagic.session.actions.action_report import ONE_STAGE, ROWS_ON_DEMAND, ActionListener, ActionReport
from flinkmagic.session.actions.asked_answers import AskedAnswer, asked, say_not_known
from flinkmagic.session.actions.kept_frames import KeptFrames
from flinkmagic.session.actions.known_schemas import read_files
from flinkmagic.session.actions.text_reads import TextReads
from flinkmagic.session.job import store_for
from flinkmagic.session.line_as_job import Line, carry_out

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark import SparkContext
    from pyspark.sql import DataFrame

    from flinkmagic.capturing.capture_listener import ActionCall, ReadCall
    from flinkmagic.capturing.program import Program
    from flinkmagic.session.job import Job

_LOG = logging.getLogger(__name__)

_LONG_CALL_SITE = "callSite.long"
"""Spark 3.5 to 4.3 keep this with each stage and query (`CallSite.LONG_FORM`)."""

_MOST_REPORTS = 1000
_MOST_GRAPHS = 20

OBSERVED = "its rows are observed, which Spark itself has to see"
STREAMING = "it is a stream"
ONLY_SPARK = "Spark plans its queries itself"


class SessionActions:
    """Runs the actions of a cell, or of a whole session.

    Parameters
    ----------
    options : JobOptions, optional
        By default ``retain="session"``, and the defaults otherwise.
    frames : KeptFrames, optional
        What such actions have read; by default what all of the SparkContext's have.
    graph_name : str, optional
        Of their graphs; by default a graph has the name of its action.
    """

    def __init__(
        self,
        options: JobOptions | None = None,
        listener: ActionListener | None = None,
        frames: KeptFrames | None = None,
        graph_name: str = "",
    ) -> None:
        self._options, self._own_frames = options or JobOptions(retain="session"), frames
        self._graph_name = graph_name
        self._listener, self._durable = listener, store_for(self._options)
        self.reports: deque[ActionReport] = deque(maxlen=_MOST_REPORTS)
        """Oldest first."""

    def run(self, call: ActionCall) -> Any:
        """Carry out an action, and return what plain PySpark returns."""
        report = ActionReport(call.method, call.text, call.location)
        question = self._asked(call)
        if not isinstance(question, AskedAnswer):
            answer = self.carry_out(call, report)
            if question is not None:
                say_not_known(call, question)
            return answer
        if question.known is not None:
            answer, known = question.give(), question.known
            self._frames(call).budget.note(time.monotonic() - report.began, known.seconds)
            report = replace(report, kept_at=known.made_at, saved_seconds=known.seconds, kernel=known.kernel)
            self._note(replace(report, note=question.note))
            return answer
        answer = self.carry_out(question.call, report)
        question.keep(answer, time.monotonic() - report.began)
        return answer

    def read(self, call: ReadCall) -> DataFrame:
        """Make a DataFrame of files; schemas inferred before are reused (`known_schemas`)."""
        return read_files(call, self._durable) if self._options.retain == "session" else call.run_plainly()

    def cached(self, df: DataFrame, text: str) -> None:
        """Let a cache that was just asked for find its rows in the durable store, or be stored there (rule 10)."""
        caches = self._caches(df.sparkSession.sparkContext)
        if caches is None:
            return
        try:
            with withheld_log():
                caches.cached(df, text)
        except SPARKS_ERRORS as error:  # Spark fills the cache itself
            _LOG.warning("The rows of %s are neither stored nor found: %s", text, error)

    def _caches(self, sc: SparkContext) -> DurableCaches | None:
        return durable_caches(sc, self._durable) if self._options.retain == "session" else None

    def _frames(self, call: ActionCall) -> KeptFrames:
        return self._own_frames or KeptFrames.of(call.df.sparkSession.sparkContext)

    def _asked(self, call: ActionCall) -> AskedAnswer | Exception | None:
        """Return the answer that an action asks for; None if it has no key, or the error if the look-up failed."""
        if self._options.retain != "session":
            return None
        try:
            with withheld_log():
                return asked(call, self._durable)
        except Exception as error:  # the action itself raises what is wrong
            if is_from_signal(error):
                raise
            return error

    def carry_out(self, call: ActionCall, report: ActionReport | None = None) -> Any:
        """Carry out an action without asking whether its answer is known; return what plain PySpark returns."""
        report = report or ActionReport(call.method, call.text, call.location)
        sc = call.df.sparkSession.sparkContext
        texts, caches = TextReads(sc, action_kind(call.method), self._frames(call).budget), self._caches(sc)
        if caches is not None:
            told = (cache_found(text, one.made_at, is_own=one.kernel == KERNEL) for text, one in caches.found())
            report = replace(report, note="; ".join(told))
        try:
            with withheld_log():
                graph: ActionGraph | str = self._graph(call, texts)
        except PlainCallError:
            return _run_plainly(call)
        except Exception as error:  # rule 3
            if is_from_signal(error):  # rule 8
                self._note(report, error)
                raise
            return self._answer_plainly(call, replace(report, reason=str(error)), error)
        except BaseException as interrupt:
            self._note(report, interrupt)
            raise
        try:
            if isinstance(graph, str):
                return self._leave_to_spark(call, replace(report, reason=graph))
            return self._drive(call, graph, report, texts)
        finally:
            with _noting(call):
                seconds = time.monotonic() - report.began
                self._frames(call).budget.note(seconds)
                texts.ended(seconds)
                if caches is not None:
                    caches.store_filled()

    def _graph(self, call: ActionCall, texts: TextReads) -> ActionGraph | str:
        """Compile an action's query; return the reason if it has no stages for us."""
        kind = action_kind(call.method)
        if kind is None:
            return ONLY_SPARK
        if call.df.isStreaming:
            return STREAMING
        df = kind.query(call)
        if is_observed(df.sparkSession.sparkContext, execution_of(df).analyzed()):
            return OBSERVED
        if self._listener is not None:
            self._listener.action_began(call)
        stages: Any = CLASSES.shared_instance(df.sparkSession.sparkContext._gateway, "SingleStages")
        if stages.asksForMergedPartitions(execution_of(df)):
            return str(PartitionsAskedError())
        if not kind.has_effects and stages.takesFirstRows(execution_of(df)):
            return ONE_STAGE
        if self._options.retain == "session":
            texts.of(df)
        if not texts.pay_alone and stages.surely(execution_of(df)):
            return ONE_STAGE
        graph = self._compiled(call, df, texts)
        return ONE_STAGE if graph.is_single_stage and not texts.are_columns else graph

    def _compiled(self, call: ActionCall, df: DataFrame, texts: TextReads) -> ActionGraph:
        """Compile a query; later actions find what it keeps by its key."""
        sc = df.sparkSession.sparkContext
        frames, durable = self._frames(call), durable_rows(sc, self._durable)
        sources, unused = texts.query, dict[str, str]()
        while True:
            program, query = self._program(call, df), NO_QUERY
            if self._options.retain == "session":
                frames.leave_to_spark(df.sparkSession)
                frames.recall(program, call.df, durable)
                query = LineQuery(frames.within_reach(sc), sources, _kind_of(call).stops_early)
            graph = ActionGraph(program, self._graph_name or call.method, self._options, query, unused)
            if not frames.revise(graph, durable):
                return graph
            sources, unused = texts.of(df), graph.unused

    def _program(self, call: ActionCall, df: DataFrame) -> Program:
        """Return the cell's program, whose calls label the operators, with the query as its only result."""
        program = call.program()
        program.spark, program.results, program.asked = df.sparkSession, {"result": df}, program.frame_of(call.df)
        return program

    def _without_keeping(self, call: ActionCall, graph: ActionGraph) -> ActionGraph:
        """Compile again, as plain Spark plans it, a query whose job has failed (rule 5)."""
        program = self._program(call, graph.query)
        return ActionGraph(program, self._graph_name or call.method, self._options)

    def _leave_to_spark(self, call: ActionCall, report: ActionReport) -> Any:
        try:
            with self._watched(call) as work:
                answer = _run_plainly(call)
        except BaseException as error:
            self._note(report, error)
            raise
        if not is_lazy(answer) or report.reason != ONLY_SPARK or work.is_followed:
            return self._noted(call, replace(report, work=work), answer)
        return answer

    def _drive(self, call: ActionCall, graph: ActionGraph, report: ActionReport, texts: TextReads) -> Any:
        if graph.is_single_stage:  # it reads kept columns, or keeps some
            try:
                return self._answer(call, graph, replace(report, reason=ONE_STAGE), texts)
            finally:
                graph.release()
        failed, given_up = graph, ""

        def again(_: Job, error: BaseException) -> Job | None:
            nonlocal graph, given_up
            if graph is not failed or not (graph.boundaries or texts.are_columns):
                return None
            given_up = not_kept([*(boundary.name for boundary in failed.boundaries), *texts.names], error)
            texts.give_up()
            graph = self._without_keeping(call, graph)
            return graph.run(wait=False)

        try:
            job = carry_out(_line(call), lambda: graph.run(wait=False), lambda job: self._tell(call, graph, job), again)
        except NotDeployedError as refusal:  # rule 3
            return self._answer_plainly(call, replace(report, reason=str(refusal.__cause__)), refusal.__cause__)
        except BaseException as raised:
            if isinstance(raised, SPARKS_ERRORS):
                _finished(call, graph).tell_of_failure(query_name(call), raised)
            self._note(replace(report, is_driven=True, graph=graph), raised)
            raise
        sc = graph.spark.sparkContext
        frames = self._frames(call)
        if given_up:  # else it fails in plain Spark, too
            frames.give_up(failed)
            report = replace(report, note="; ".join(filter(None, [report.note, given_up])))
        try:
            answer = self._answer(call, graph, _driven(report, graph, job), texts, job)
            with _noting(call):
                frames.budget.note(0.0, job.saved_seconds)
                count, durable = answer if call.method == "count" else None, durable_rows(sc, self._durable)
                frames.note(graph, job, call.df, time.monotonic() - report.began, count, durable)
        finally:
            graph.release()
        return answer

    def _answer(
        self, call: ActionCall, graph: ActionGraph, report: ActionReport, texts: TextReads, job: Job | None = None
    ) -> Any:
        """Run the last stage of a query, after its job if there are others, and return what the action returns."""
        try:
            query = _finished(call, graph)
            with withheld_log(), self._watched(call) as work, _last_stage_of(call, graph):
                answer = _kind_of(call).answer(call, query)
            remarks: list[str] = []
            with _noting(call):
                if job is not None and work.events is not None:
                    graph.add_last_stage(job, work.events, call.location.called_from or call.location)
                remarks = [] if job is None else graph.remarks(job)
            report = replace(report, work=work, note="; ".join(filter(None, [texts.note, report.note, *remarks])))
            answer = self._noted(call, report, answer)
        except BaseException as error:
            may_repeat = not _kind_of(call).has_effects and not is_cancelled(error)
            found = graph.found_durable()
            if isinstance(error, SPARKS_ERRORS) and may_repeat and (texts.are_columns or found):
                note = not_read([one.what for one in found], error) if found else not_kept(texts.names, error)
                texts.give_up()
                answer = self._answer_plainly(call, replace(report, note=note))
                if found:  # and what plain Spark computes has not failed
                    with _noting(call):
                        self._give_up_durable(call, graph)
                return answer
            if isinstance(error, SPARKS_ERRORS):
                release_log(error)
                add_note(error, failed_in(str(call.location), graph.last_vertex.name))
            self._note(report, error)
            raise
        return answer

    def _give_up_durable(self, call: ActionCall, graph: ActionGraph) -> None:
        """Neither read nor keep again what a query has read of a store (rule 9)."""
        sc, found = graph.spark.sparkContext, graph.found_durable()
        rows = durable_rows(sc, self._durable)
        self._frames(call).give_up(graph)
        for result in found:
            if rows is not None:
                rows.drop_if_damaged(result)
        retained_results(sc).drop(lambda one: one in found)

    def _answer_plainly(self, call: ActionCall, report: ActionReport, error: BaseException | None = None) -> Any:
        """Make an action as it is after ours has failed or refused it.

        The user is told of a failure if plain Spark does not fail; of a rule of ours, only the report tells.
        """
        try:
            with self._watched(call):
                answer = _run_plainly(call)
        except BaseException as raised:
            self._note(replace(report, note=""), raised)
            raise
        if error is not None and not isinstance(error, UserError):
            _line(call).say_plain(error)
        return self._noted(call, report, answer)

    @contextmanager
    def _watched(self, call: ActionCall) -> Iterator[CallWork]:
        """Let the listener follow and cancel what Spark runs for the action itself in a block."""
        sc = call.df.sparkSession.sparkContext
        work = CallWork(sc)
        if self._listener is None or sc._jsc is None:  # stopped: the call says so
            yield work
            return
        try:
            with work.entered():
                self._listener.work_started(call, work)
                try:
                    yield work
                except BaseException as error:
                    if is_from_signal(error) or not isinstance(error, Exception):
                        work.end()
                    raise
        except Exception as error:
            if work.is_cancelled:
                raise ActionCancelledError(call.text, str(call.location)) from error
            raise

    def _tell(self, call: ActionCall, graph: ActionGraph, job: Job) -> None:
        if self._listener is None:
            return
        try:
            self._listener.job_started(call, graph, job)
        except Exception as error:
            if is_from_signal(error):
                raise
            raise NotDeployedError(call.text) from error

    def _noted(self, call: ActionCall, report: ActionReport, answer: Any) -> Any:
        """Report an action that has ended, and return its answer."""
        kind = action_kind(call.method)
        if kind is None or not kind.hands_rows_out:
            self._note(report)
            return answer
        report = replace(report, note="; ".join(filter(None, [report.note, ROWS_ON_DEMAND])))
        return self._handed_out(answer, self._note(report))

    def _handed_out(self, rows: Iterator[Any], report: ActionReport) -> Iterator[Any]:
        """Hand rows out as they are asked for (rule 11)."""
        started = time.monotonic()
        try:
            yield from rows
        except GeneratorExit:  # nobody wants the rest
            raise
        except BaseException as error:
            self._rows_done(report, started, error)
            raise
        self._rows_done(report, started)

    def _rows_done(self, report: ActionReport, started: float, error: BaseException | None = None) -> None:
        note = report.note.removesuffix(ROWS_ON_DEMAND).removesuffix("; ")
        seconds = report.seconds + time.monotonic() - started
        done = replace(report, note=note, status=_status_after(error), seconds=seconds)
        for place in [place for place, one in enumerate(self.reports) if one is report]:
            self.reports[place] = done
        if self._listener is not None:
            self._listener.rows_done(report, done)

    def _note(self, report: ActionReport, error: BaseException | None = None) -> ActionReport:
        report = replace(report, seconds=time.monotonic() - report.began, status=_status_after(error))
        if self._listener is not None:
            self._listener.action_done(report)
        self.reports.append(report)
        if len(self.reports) > _MOST_GRAPHS:  # a graph holds a job, which holds what it keeps
            self.reports[-1 - _MOST_GRAPHS] = replace(self.reports[-1 - _MOST_GRAPHS], graph=None)
        return report


def _status_after(error: BaseException | None) -> str:
    if error is None:
        return "FINISHED"
    is_ended = isinstance(error, (KeyboardInterrupt, ActionCancelledError))
    return "CANCELED" if is_ended or is_from_signal(error) or is_cancelled(error) else "FAILED"


def _run_plainly(call: ActionCall) -> Any:
    try:
        return call.run_plainly()
    except SPARKS_ERRORS as error:
        add_note(error, failed_in(str(call.location), call.text))
        raise


@contextmanager
def _noting(call: ActionCall) -> Iterator[None]:
    """Note what later actions may use of one that is over. If that fails, its answer or error stands."""
    try:
        yield
    except Exception as error:
        if is_from_signal(error):
            raise
        if call.df.sparkSession.sparkContext._jsc is not None:  # else there is nothing for later ones
            print(lines_visible(not_noted(call.text, str(call.location), error)), file=sys.stderr)


def _finished(call: ActionCall, graph: ActionGraph) -> FinishedQuery:
    try:
        return FinishedQuery(graph.query, graph.last_stage, java_call(call))
    except Exception as error:
        raise ActionFailedError(call.text, str(call.location), error) from error


@contextmanager
def _last_stage_of(call: ActionCall, graph: ActionGraph) -> Iterator[None]:
    """Make Spark keep the user's line with the last stage and its query, instead of the JVM's stack up to py4j.

    It also keeps the stage's place in the run of the others.
    """
    sc = graph.spark.sparkContext
    before = sc.getLocalProperty(_LONG_CALL_SITE)
    sc.setLocalProperty(_LONG_CALL_SITE, f"{call.text} ({call.location})")
    if graph.jobs:
        sc.setLocalProperty(PROPERTY, str(StagePlace.of(graph.jobs[-1].group, graph.last_vertex, "result")))
    try:
        yield
    finally:
        sc.setLocalProperty(_LONG_CALL_SITE, before)  # type: ignore[arg-type] # None removes it
        if graph.jobs:
            sc.setLocalProperty(PROPERTY, None)  # type: ignore[arg-type]


def _line(call: ActionCall) -> Line:
    return Line(call.text, str(call.location), java_call(call))


def _kind_of(call: ActionCall) -> ActionKind:
    kind = action_kind(call.method)
    assert kind is not None
    return kind


def _driven(report: ActionReport, graph: ActionGraph, job: Job) -> ActionReport:
    return replace(
        report,
        is_driven=True,
        graph=graph,
        stages=len(graph.job_graph.vertices),
        reused=len(job.reused()),
        saved_seconds=job.saved_seconds,
    )
