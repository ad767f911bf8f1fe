"""Runs before and after a PySpark call of the user's while it is captured."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pyspark import RDD
from pyspark.sql import DataFrame

from flinkmagic.capturing.call_arguments import Args, Kwargs, argument, frames_in, strings_in
from flinkmagic.capturing.capture_listener import ActionCall, ReadCall
from flinkmagic.capturing.driver.impurity import impure_function, impure_reason
from flinkmagic.capturing.hooks.current_capture import as_pysparks
from flinkmagic.capturing.source_code.source_reader import user_frame
from flinkmagic.capturing.sql import commands
from flinkmagic.capturing.sql.cached_data import view_cache_effects
from flinkmagic.capturing.sql.sql_writes import sql_answer, sql_session
from flinkmagic.capturing.writes.pending import Cause, Effects
from flinkmagic.capturing.writes.targets import Source, Target, sources_of
from flinkmagic.capturing.writes.writer_calls import (
    DeferringTableWriter,
    DeferringWriter,
    StandIn,
    WriterCall,
    path_option,
)
from flinkmagic.jvm.java import execution_of

if TYPE_CHECKING:
    from flinkmagic.capturing.recorder import Recorder
    from flinkmagic.capturing.writes.captured_session import CapturedSession

_CUTS = frozenset({"checkpoint", "localCheckpoint"})
"""Calls that run and return a DataFrame."""


class Hook:
    """Lets a call through as it is."""

    only_pending = False
    """Whether the call matters only while writes are pending."""
    runs_users_code = False
    """Whether the call runs code of the cell, such as a generator argument: calls of that code are noticed too."""

    def __init__(self, method: str, original: Callable[..., Any]) -> None:
        self.method = method
        self.original = original

    def made(self, hooked: Any) -> None:
        """Run once, when the function that replaces the method is made."""

    def before(self, recorder: Recorder, args: Args, kwargs: Kwargs) -> None:
        """Run before the call; an exception raised here replaces the call."""

    def arguments(self, recorder: Recorder, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
        """Return the arguments that the method is called with."""
        return args, kwargs

    @as_pysparks
    def call(self, recorder: Recorder, args: Args, kwargs: Kwargs) -> Any:
        """Make the call."""
        return self.original(*args, **kwargs)

    def after(self, recorder: Recorder, args: Args, kwargs: Kwargs, result: Any) -> Any:
        """Run after a call that returned; return what the user gets."""
        return result

    def finish(self, args: Args) -> None:
        """Run at the end, also if the call raised."""


class LazyCall(Hook):
    """A call that makes a DataFrame and reads nothing: it is recorded."""

    def after(self, recorder: Recorder, args: Args, kwargs: Kwargs, result: Any) -> Any:
        inputs = list(frames_in((*args, *kwargs.values())))
        outputs = result if isinstance(result, list) else [result]
        made = [df for df in outputs if isinstance(df, DataFrame) and all(df is not i for i in inputs)]
        if made or is_grouped(result):
            frame = user_frame()
            text = self.text(recorder, frame, args, kwargs)
            if is_grouped(result):
                recorder.calls.grouped_text[result] = text
            inputs += self.hidden_inputs(recorder, made)
            for df in made:
                recorder.calls.record(self.method, text, recorder.source.location(frame), inputs, df)
        return result

    def text(self, recorder: Recorder, frame: Any, args: Args, kwargs: Kwargs) -> str:
        text = recorder.source.call_text(frame, self.method, args[1:], kwargs)
        grouped = recorder.calls.grouped_text.get(args[0]) if args and is_grouped(args[0]) else None
        return text if grouped is None else f"{grouped}.{text}"

    def hidden_inputs(self, recorder: Recorder, made: Sequence[DataFrame]) -> list[DataFrame]:
        """Return DataFrames that a call consumes without getting them as arguments."""
        return []


class Action(LazyCall):
    """A call that runs immediately on the rows of its DataFrames, or may: it is not known to be lazy."""

    def before(self, recorder: Recorder, args: Args, kwargs: Kwargs) -> None:
        frames = list(frames_in((*args, *kwargs.values())))
        recorder.calls.use(frames)
        if recorder.pending:
            runs_impure = _is_impure(frames) or any(map(impure_function, self.functions(args, kwargs)))
            recorder.settle(Effects(reads_of(frames), unknown=runs_impure, fresh=False))

    def functions(self, args: Args, kwargs: Kwargs) -> list[Callable[..., Any]]:
        """Return functions of the user's that the action runs on the rows."""
        if self.method not in ("foreach", "foreachPartition"):
            return []
        return [value for value in (*args[1:], *kwargs.values()) if callable(value)]

    def call(self, recorder: Recorder, args: Args, kwargs: Kwargs) -> Any:
        return _carried_out(self, recorder, args, kwargs)

    def after(self, recorder: Recorder, args: Args, kwargs: Kwargs, result: Any) -> Any:
        if self.method in _CUTS or not is_lazy(result):
            recorder.calls.ran()
        return super().after(recorder, args, kwargs, result)


class EagerDisplay(Hook):
    """`repr` of a DataFrame, which reads rows only if eager evaluation is on."""

    def before(self, recorder: Recorder, args: Args, kwargs: Kwargs) -> None:
        if self._reads_rows(recorder):
            recorder.calls.use(args[:1])
            recorder.calls.ran()
            if recorder.pending:
                recorder.settle(Effects(reads_of(args[:1]), fresh=False))

    def call(self, recorder: Recorder, args: Args, kwargs: Kwargs) -> Any:
        if not self._reads_rows(recorder):
            return super().call(recorder, args, kwargs)
        return _carried_out(self, recorder, args, kwargs)

    def _reads_rows(self, recorder: Recorder) -> bool:
        return bool(recorder.spark.conf.get("spark.sql.repl.eagerEval.enabled", "false") == "true")


class HandOver(Hook):
    """A call that runs nothing yet, but hands a DataFrame on: it is cached, or becomes a subquery."""

    def before(self, recorder: Recorder, args: Args, kwargs: Kwargs) -> None:
        recorder.calls.use(frames_in(args[:1]))


class Cached(HandOver):
    """`cache` and `persist`: Spark will keep the DataFrame's rows once something has read them."""

    def after(self, recorder: Recorder, args: Args, kwargs: Kwargs, result: Any) -> Any:
        if recorder.threads.is_own():
            text = recorder.source.call_text(user_frame(), self.method, args[1:], kwargs)
            recorder.listener.cached(args[0], text)
        return result


class JavaHalf(HandOver):
    """`_jdf`, asked for by code outside the DataFrame."""

    def computed(self, recorder: Recorder, df: DataFrame) -> None:
        """Run before machine learning, which trains and measures in the JVM, gets it."""
        if recorder.pending:
            recorder.settle(Effects(reads_of([df]), unknown=_is_impure([df]), fresh=False))


class Read(LazyCall):
    """A call that makes a DataFrame from paths, a table or a query: files are listed immediately."""

    prefix = ""

    def before(self, recorder: Recorder, args: Args, kwargs: Kwargs) -> None:
        if recorder.pending:
            targets = map(recorder.resolver.target, self.paths(args, kwargs))
            reads = tuple(Source(path=target.path, pattern=True) for target in targets)
            recorder.settle(Effects(reads))

    def paths(self, args: Args, kwargs: Kwargs) -> list[str]:
        """Return the paths that the call names."""
        return list(strings_in((*args[1:2], kwargs.get("path"), kwargs.get("name"))))

    def after(self, recorder: Recorder, args: Args, kwargs: Kwargs, result: Any) -> Any:
        if recorder.pending and isinstance(result, DataFrame) and recorder.settle(Effects(reads_of([result]))):
            result = self.original(*args, **kwargs)
        if recorder.awaited and isinstance(result, DataFrame):
            recorder.read(reads_of([result]))
        return super().after(recorder, args, kwargs, result)

    def text(self, recorder: Recorder, frame: Any, args: Args, kwargs: Kwargs) -> str:
        text = super().text(recorder, frame, args, kwargs)
        return text if text.startswith(self.prefix) else f"{self.prefix}.{text}"


class FileRead(Read):
    """A method of `DataFrameReader` that takes paths, or was given one by `option("path", ...)`."""

    prefix = "read"

    def paths(self, args: Args, kwargs: Kwargs) -> list[str]:
        named = strings_in((*args[1:], kwargs.get("paths"))) if self.method in ("parquet", "orc") else ()
        paths = [*named, *super().paths(args, kwargs)]
        if not paths and (option := path_option(args[0]._jreader)) is not None:
            paths.append(option)
        return paths

    def call(self, recorder: Recorder, args: Args, kwargs: Kwargs) -> Any:
        if not recorder.threads.is_own():
            return super().call(recorder, args, kwargs)
        return recorder.listener.read(ReadCall(self.method, args[0], tuple(args[1:]), dict(kwargs), self.original))


class RddRead(Read):
    """A method of `SparkContext` that makes an RDD from paths, which Hadoop separates by commas."""

    def paths(self, args: Args, kwargs: Kwargs) -> list[str]:
        return [path for text in super().paths(args, kwargs) for path in text.split(",") if path]


class StreamRead(Read):
    """A method of `DataStreamReader` that takes a path."""

    prefix = "readStream"


class TableRead(Read):
    """`table(name)`: a table's folder is known before its files are listed, the rest once the DataFrame exists."""

    def before(self, recorder: Recorder, args: Args, kwargs: Kwargs) -> None:
        if recorder.pending:
            name = argument(args, kwargs, 1, "tableName", "")
            recorder.settle(commands.table_effects(recorder, str(name)))

    def hidden_inputs(self, recorder: Recorder, made: Sequence[DataFrame]) -> list[DataFrame]:
        return recorder.calls.viewed(made)


class ForeignRead(Read):
    """`jdbc` and `changes`: they read no files."""

    def before(self, recorder: Recorder, args: Args, kwargs: Kwargs) -> None:
        pass


class Sql(TableRead):
    """`SparkSession.sql`: a query, a write that is taken over, or a command that runs once it may."""

    def before(self, recorder: Recorder, args: Args, kwargs: Kwargs) -> None:
        pass

    def arguments(self, recorder: Recorder, args: Args, kwargs: Kwargs) -> tuple[Args, Kwargs]:
        text = self.text(recorder, user_frame(), args, kwargs)
        return (sql_session(recorder, args, kwargs, text), *args[1:]), kwargs

    def after(self, recorder: Recorder, args: Args, kwargs: Kwargs, result: Any) -> Any:
        df, statement = sql_answer(args[0], result)
        if statement is not None and statement.is_deferred:
            return df
        # A statement must not run twice; what it touches was settled before.
        after = super().after if statement is None or statement.is_query else super(Read, self).after
        return after(recorder, args, kwargs, df)


class TempView(Hook):
    """`createOrReplaceTempView` and the like: the view represents the DataFrame in later queries.

    Cached rows of the view that it replaces are released.
    """

    def before(self, recorder: Recorder, args: Args, kwargs: Kwargs) -> None:
        if recorder.pending and "Replace" in self.method:
            name = str(argument(args, kwargs, 1, "name"))
            recorder.settle(view_cache_effects(recorder, name, everywhere="Global" in self.method))

    def after(self, recorder: Recorder, args: Args, kwargs: Kwargs, result: Any) -> Any:
        recorder.calls.view(str(argument(args, kwargs, 1, "name")), args[0])
        return result


class Save(Hook):
    """A method of `DataFrameWriter` that writes: the write is taken over."""

    half = "_jwrite"
    """Where PySpark's writer keeps its Java half."""

    def before(self, recorder: Recorder, args: Args, kwargs: Kwargs) -> None:
        writer = args[0]
        frame = user_frame()

        def on_write(call: WriterCall) -> None:
            text = recorder.source.call_text(frame, self.method, args[1:], kwargs)
            recorder.writes.take(writer._df, call, text)

        setattr(writer, self.half, self.stand_in(recorder, writer, on_write))

    def stand_in(self, recorder: Recorder, writer: Any, on_write: Callable[[WriterCall], None]) -> Any:
        """Return what replaces the Java half."""
        return DeferringWriter(recorder.spark._jvm, writer._jwrite, on_write)

    def finish(self, args: Args) -> None:
        java_half = vars(args[0]).get(self.half)
        if isinstance(java_half, StandIn):
            setattr(args[0], self.half, java_half.jwrite)


class SaveToTable(Save):
    """A method of `DataFrameWriterV2` that writes."""

    half = "_jwriter"

    def stand_in(self, recorder: Recorder, writer: Any, on_write: Callable[[WriterCall], None]) -> Any:
        return DeferringTableWriter(writer._jwriter, recorder.tables.get(writer, ""), on_write)


class TableWriter(Hook):
    """`writeTo` and `mergeInto`: remembers the table's name for the call that writes."""

    def after(self, recorder: Recorder, args: Args, kwargs: Kwargs, result: Any) -> Any:
        recorder.tables[result] = str(argument(args, kwargs, 1, "table"))
        return result


class Command(Hook):
    """A call that reads or changes something immediately, as in a plain run.

    Parameters
    ----------
    effects : callable
        Returns, from the captured session and the call's arguments, what it reads and changes.
    """

    def __init__(self, method: str, original: Callable[..., Any], effects: Judge) -> None:
        super().__init__(method, original)
        self._effects = effects

    def before(self, recorder: Recorder, args: Args, kwargs: Kwargs) -> None:
        if recorder.pending:
            recorder.settle(self._effects(recorder, args, kwargs))


class Watched(Command):
    """A command that makes no DataFrame and writes none through PySpark: it matters only while writes are pending."""

    only_pending = True


Judge = Callable[["CapturedSession", Args, Kwargs], Effects]
Make = Callable[[str, Any], Hook]
Entry = tuple[Any, str, Make]
"""A class or module, its attribute, and what makes the hook from the attribute's name and value."""


def command(effects: Judge) -> Make:
    """Return what makes a `Command`."""
    return functools.partial(Command, effects=effects)


def watched(effects: Judge) -> Make:
    """Return what makes a `Watched`."""
    return functools.partial(Watched, effects=effects)


def anything(cause: Cause) -> Judge:
    """Return the judge of a call that may touch anything."""
    return lambda captured, args, kwargs: Effects(unknown=True, cause=cause)


def reads_at(place: int, name: str) -> Judge:
    """Return the judge of a call that reads the path which one of its arguments is."""
    return lambda captured, args, kwargs: Effects(reads=(_place(captured, args, kwargs, place, name).as_source(),))


def changes_at(place: int, name: str) -> Judge:
    """Return the judge of a call that changes what is at the path which one of its arguments is."""
    return lambda captured, args, kwargs: Effects(changes=(_place(captured, args, kwargs, place, name),))


def _place(captured: CapturedSession, args: Args, kwargs: Kwargs, place: int, name: str) -> Target:
    return captured.resolver.target(str(argument(args, kwargs, place, name)))


def _carried_out(hook: Hook, recorder: Recorder, args: Args, kwargs: Kwargs) -> Any:
    """Let the capture's listener carry out an action of the cell's own thread; make any other call as it is."""
    df = args[0] if args else None
    # An RDD runs nothing by itself; what is asked of it is the RDD's.
    if not recorder.threads.is_own() or not isinstance(df, DataFrame) or hook.method == "rdd":
        return hook.original(*args, **kwargs)
    frame = user_frame()
    return recorder.listener.act(
        ActionCall(
            method=hook.method,
            df=df,
            args=tuple(args[1:]),
            kwargs=dict(kwargs),
            original=hook.original,
            location=recorder.source.location(frame),
            text=recorder.source.call_text(frame, hook.method, args[1:], kwargs),
            program=recorder.so_far,
        )
    )


def is_grouped(value: Any) -> bool:
    return type(value).__name__ in ("GroupedData", "PandasCogroupedOps")


def is_lazy(value: Any) -> bool:
    """Return whether a value is computed only when its rows are asked for: DataFrame, RDD, pandas-on-Spark frame."""
    lazy = isinstance(value, (DataFrame, RDD)) or is_grouped(value)
    return lazy or type(value).__module__.startswith("pyspark.pandas.")


def _is_impure(frames: Sequence[DataFrame]) -> bool:
    return any(impure_reason(execution_of(df).analyzed()) is not None for df in frames)


def reads_of(frames: Sequence[DataFrame]) -> tuple[Source, ...]:
    """Return what DataFrames read, according to their analysed plans."""
    plans = (execution_of(df).analyzed() for df in frames)
    return tuple(dict.fromkeys(source for plan in plans for source in sources_of(plan)))
