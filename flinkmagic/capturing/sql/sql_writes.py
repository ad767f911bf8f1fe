"""Takes over ``SparkSession.sql``: defers a statement that writes a query's rows, and runs any other once it may.

Spark's parser says what a text is, and Spark's analyser makes the same command of ``INSERT INTO t SELECT …`` as of
``insertInto``: it is analysed, and maybe refused, on its own line, and put off. What is no command over one query
(MERGE, UPDATE, DELETE, CALL, a script) runs on its line, after what it touches, and is noted.

PySpark's own ``sql`` formats the text and binds the arguments; in place of the Java session it talks to a stand-in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from flinkmagic.capturing.call_arguments import Args, Kwargs, argument
from flinkmagic.capturing.driver.sql_reader import SqlNode, nodes_of, parsed
from flinkmagic.capturing.sql.sql_effects import SqlEffects, changes_rows, immediate_plan, parts_of
from flinkmagic.capturing.writes import write_commands
from flinkmagic.capturing.writes.command_facts import facts_of
from flinkmagic.capturing.writes.deferred_write import WriteFacts
from flinkmagic.capturing.writes.pending import Effects
from flinkmagic.capturing.writes.tables import table_target
from flinkmagic.capturing.writes.targets import Target
from flinkmagic.capturing.writes.writer_calls import WriterCall, is_transactional
from flinkmagic.jvm.java import dataset_of, items, java_class, option, simple_name

if TYPE_CHECKING:
    from flinkmagic.capturing.recorder import Recorder

_MAY_CHANGE = re.compile(
    r"insert|create|replace|execute|begin|merge|update|delete|truncate|load|call|\$\{", re.IGNORECASE
)
"""A text without any of these words changes no rows; ``${…}`` inserts the value of a setting."""

_INSERTS = frozenset(
    {"AppendData", "InsertIntoStatement", "OverwriteByExpression", "OverwritePartitionsDynamic", "UnresolvedInsert"}
)
_MAKES_TABLE = frozenset({"CreateTableAsSelect", "ReplaceTableAsSelect"})
_DEFERRABLE = _INSERTS | _MAKES_TABLE | {"InsertIntoDir"}


def sql_session(recorder: Recorder, args: Args, kwargs: Kwargs, text: str) -> Any:
    """Return the session on which PySpark's ``sql`` is called: the user's own if the call touches nothing."""
    spark = args[0]
    given = argument(args, kwargs, 1, "sqlQuery", "")
    fields = [value for name, value in kwargs.items() if name not in ("sqlQuery", "args")]
    if not recorder.pending and not fields and isinstance(given, str) and not _MAY_CHANGE.search(given):
        return spark
    frames = [value for value in fields if isinstance(value, DataFrame)]
    statement = Statement(recorder, spark, text, frames)
    jsession = _SessionStandIn(spark._jsparkSession, sql=statement.run)
    return _SessionStandIn(spark, statement=statement, _jsparkSession=jsession)


def sql_answer(spark: Any, result: DataFrame) -> tuple[DataFrame, Statement | None]:
    """Return what the user gets for what PySpark's ``sql`` returned, and the statement unless it touched nothing."""
    session: Any = result.sparkSession
    if not isinstance(session, _SessionStandIn):
        return result, None
    return DataFrame(result._jdf, spark), session.statement


class _SessionStandIn:
    """Replaces a session, or its Java half, while PySpark's ``sql`` runs: what it is not given is the original's."""

    def __init__(self, original: Any, **given: Any) -> None:
        self._original = original
        vars(self).update(given)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


class Statement:
    """One call of ``sql``."""

    def __init__(self, recorder: Recorder, spark: Any, text: str, frames: Sequence[DataFrame]) -> None:
        self.is_query = False
        """Whether it was a query, which has done nothing but list files."""
        self.is_deferred = False
        """Whether it was a write that was put off."""
        self._recorder = recorder
        self._pending = recorder.pending
        self._spark = spark
        self._text = text
        self._frames = frames

    def run(self, sql: str, arguments: Any = None) -> Any:
        """Return what the Java session's ``sql`` answers."""
        plan = parsed(self._spark, sql, arguments)
        nodes = nodes_of(plan)
        self.is_query = not any(node.is_statement for node in nodes)
        inner = self._immediate(nodes)
        deferred = plan if inner is None else inner
        of_deferred = nodes if inner is None else nodes_of(inner)
        effects = SqlEffects(self._recorder, self._spark).of(nodes) if self._pending else Effects()
        if _is_deferrable(of_deferred):
            writes_of = self._recorder.writes
            if writes_of.must_run("sql"):
                return self._run(sql, arguments, nodes)
            answers: list[Any] = []

            def run() -> bool:
                answers.append(self._run(sql, arguments, nodes))
                return False

            if writes_of.arrange(self._text, lambda: self._defer(deferred, of_deferred, effects), run):
                self.is_deferred = True
                return self._spark._jsparkSession.emptyDataFrame()
            if answers:
                return answers[0]
        self._recorder.settle(effects)
        return self._run(sql, arguments, nodes)

    def _run(self, sql: str, arguments: Any, nodes: Sequence[SqlNode]) -> Any:
        jsession, is_done = self._spark._jsparkSession, False
        is_change = changes_rows(nodes, self._spark)
        try:
            result = jsession.sql(sql) if arguments is None else jsession.sql(sql, arguments)
            is_done = True
            return result
        finally:
            # A script that fails has run up to the failure.
            if is_change and (is_done or nodes[0].kind == "CompoundBody"):
                self._recorder.writes.note_immediate(self._text)

    def _immediate(self, nodes: Sequence[SqlNode]) -> Any:
        """Return the statement that an ``EXECUTE IMMEDIATE`` without parameters is."""
        node = nodes[0]
        if node.kind != "UnresolvedExecuteImmediate" or not (
            node.plan.args().isEmpty() and node.plan.targetVariables().isEmpty()
        ):
            return None
        return immediate_plan(self._spark, node, nodes)

    def _defer(self, plan: Any, nodes: Sequence[SqlNode], effects: Effects) -> bool:
        """Defer what a statement writes; return False if it has to run on its line."""
        spark, recorder = self._spark, self._recorder
        targets = list(self._targets(nodes))
        if any(is_transactional(spark, str(target.table).split(".")[0]) for target in targets):
            return False
        # The query is analysed now, which lists files; so is the table of an INSERT, which has to exist.
        recorder.settle(Effects(reads=effects.reads, unknown=effects.unknown))
        made = [write.facts.target for write in self._pending.writes if write.facts.defines]
        needed = [target for target in targets if any(each.overlaps(target) for each in made)]
        if needed and nodes[0].kind not in _MAKES_TABLE:
            recorder.settle(Effects(reads=tuple(each.as_source() for each in needed)))
        found = [self._facts(command) for command in _commands(write_commands.analysed(spark, plan))]
        if any(facts is None or facts.runs_now for _, _, facts in found):
            return False
        for df, command, facts in found:
            assert facts is not None
            recorder.calls.record(
                "sql", self._text, recorder.location(), [*self._frames, *recorder.calls.viewed([df])], df
            )
            recorder.writes.defer(df, command, facts, self._text, f"{spark._jsparkSession._target_id}.sql")
        return True

    def _targets(self, nodes: Sequence[SqlNode]) -> Iterator[Target]:
        """Return the tables that a statement writes to, or makes."""
        for node in nodes:
            is_made = node.owner >= 0 and nodes[node.owner].kind in _MAKES_TABLE
            named = node.kind in ("UnresolvedIdentifier", "PlanWithUnresolvedIdentifier")
            if not (node.is_target or (is_made and named)):
                continue
            parts = parts_of(self._spark, node)
            if parts is not None:
                yield table_target(self._spark, parts)

    def _facts(self, command: Any) -> tuple[DataFrame, Any, WriteFacts | None]:
        spark = self._spark
        df = DataFrame(dataset_of(spark._jvm, spark._jsparkSession, command.query()), spark)
        call = WriterCall(None, "sql", lambda: command, lambda: None)
        if simple_name(command) == "InsertIntoDataSourceDirCommand":
            call = _saves_files(spark, df, command)
            command = write_commands.analysed(spark, call.command(spark, df))
        return df, command, facts_of(spark, df, call, command)


def _is_deferrable(nodes: Sequence[SqlNode]) -> bool:
    """Return whether a statement only writes rows: one write, or an INSERT into each of several tables."""
    statements = [node.kind for node in nodes if node.is_statement]
    return bool(statements) and (
        statements[0] in _DEFERRABLE if len(statements) == 1 else set(statements) <= {"InsertIntoStatement"}
    )


def _commands(analysed: Any) -> Iterator[Any]:
    """Return the commands of an analysed statement: several if it inserts into several tables."""
    if simple_name(analysed) == "Union":
        for child in items(analysed.children()):
            yield from _commands(child)
    else:
        yield analysed


def _saves_files(spark: Any, df: DataFrame, command: Any) -> WriterCall:
    """Return the save that ``INSERT OVERWRITE DIRECTORY`` becomes when it runs."""
    storage = command.storage()
    uris = java_class(spark._jvm, "org.apache.spark.sql.catalyst.catalog.CatalogUtils")
    path = uris.URIToString(storage.locationUri().get())
    jwrite = df._jdf.write().format(command.provider()).options(storage.properties())
    jwrite = jwrite.mode("overwrite" if command.overwrite() else "errorifexists")
    make = lambda: jwrite.saveCommand(option(spark._jvm, path))  # noqa: E731
    return WriterCall(jwrite, "save", make, lambda: jwrite.save(path), path=path)
