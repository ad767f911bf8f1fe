"""Makes keys of results, equal in two runs only where plain Spark would compute equal rows.

A key is made from

- the physical plan with expression ids renamed, in which Python functions are replaced by a fingerprint of their code
  (`code_fingerprint`), with return type and kind of evaluation, and literals by value:
  ``current_timestamp()`` is a literal once a plan is physical, so two runs never agree on it; on ``current_date()``
  they do until midnight;
- the files that the DataFrame listed, by path, length and modification time, local ones also by inode and change time;
- the SQL configuration and Hadoop's settings, all but what cannot affect rows (`IRRELEVANT`), and the versions of Spark
  and Python.

What depends on the order of rows only (``first``, which ``dropDuplicates`` takes of each group, ``collect_list``) has a
key in this process: plain Spark may give each of several rows, and these are some that it gave. An answer is that in
any process.

There is no key if the plan holds an expression that Spark calls nondeterministic otherwise (``rand``, ``uuid``,
``monotonically_increasing_id``, ``input_file_name``, a nondeterministic UDF), a source whose state cannot be
seen (version 2 sources, JDBC, Hive tables, RDDs that read files), or a Python function that is not known to be pure
(`functions.purity`) or cannot be compared.
``java/PlanKeys.java`` reads the plan, ``java/FileListings.java`` the files.
"""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError

from flinkmagic.functions.purity import impurity
from flinkmagic.functions.user_modules import CannotCompareError, ModuleSources
from flinkmagic.jvm.contexts import jvm_context, kept_for_context
from flinkmagic.jvm.java import java_list
from flinkmagic.reuse.code_fingerprint import fingerprint
from flinkmagic.reuse.java_classes import CLASSES

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark import SparkContext

    from flinkmagic.planning.stage_results import StageResult

_LOG = logging.getLogger(__name__)

IRRELEVANT = (
    "hive.metastore.warehouse.dir",
    "spark.sql.adaptive.",  # stages are ours to schedule: plans are not adaptive
    "spark.sql.autoBroadcastJoinThreshold",  # what it decides is in the plan
    "spark.sql.cache.",
    "spark.sql.codegen.",
    "spark.sql.debug.",
    "spark.sql.event.",
    "spark.sql.execution.broadcastHashJoin.",
    "spark.sql.inMemoryColumnarStorage.",
    "spark.sql.maxConcurrentOutputFileWriters",
    "spark.sql.maxPlanStringLength",
    "spark.sql.repl.",
    "spark.sql.sources.parallelPartitionDiscovery.",
    "spark.sql.streaming.",
    "spark.sql.ui.",
    "spark.sql.warehouse.dir",  # tables are in a plan by the paths of their files
)
"""How the names of settings begin that do not affect rows; any other setting is part of a key."""

SETTLED_S = 2.0
"""How long ago a file must have been changed so that its change time tells it from later changes."""


ChangedFile = Callable[[tuple[int, ...]], str]
"""`ResultKeys.changed_file`, or what remembers its answers: it looks at each file."""


@dataclass(frozen=True)
class ResultKey:
    """The identity of rows."""

    digest: str
    """Equal for equal rows."""
    portable: bool
    """Whether it means the same in another process."""
    files: tuple[int, ...] = ()
    """The lists of files that it was made from, for `ResultKeys.changed_file`."""
    settings: str = ""
    """Equal under equal settings, which are part of the digest."""
    is_durable: bool = False
    """Whether all that it was made from can be seen in any process, however much later (`durable_keys`); also if the
    rows are in one of the orders that plain Spark may give."""
    runs_python: bool = False
    """Whether Python functions are run."""
    fills_cache: bool = False
    """Whether the query reads a cache of the user's that is not filled yet."""


@dataclass(frozen=True)
class OpenKey:
    """The identity of rows without the files that they were made of."""

    digest: str
    """Equal for rows that the same plan makes of files, whichever these are."""
    reads: str
    """The lists of files in the order in which the plan names them, for `ResultKeys.states`."""


@dataclass(frozen=True)
class Growth:
    """How the files of rows have grown since earlier ones with the same open key."""

    added: Any
    """By file index what its list was, and the paths that were added, for ``AppendedRows``; None if a file of that time
    is no longer what it was."""
    files: int = 0
    """How many were added."""
    changed: str = ""
    """One that is no longer what it was, while others are; empty if they are other files altogether."""


@dataclass(frozen=True)
class NoKey:
    """Says why rows have no key."""

    reason: str


@dataclass(frozen=True)
class ListedFiles:
    """Files that a DataFrame has listed."""

    roots: tuple[str, ...]
    """The paths that they lie below, or that they are."""
    files: tuple[str, ...]
    """Each with its length and modification time, as `ResultKeys.listing` gives them."""
    is_filtered: bool = False
    """Whether the DataFrame leaves out files of the roots, as ``pathGlobFilter`` asks for."""


@dataclass(frozen=True)
class QueryFacts:
    """What an analysed query says."""

    digest: str
    """Equal for queries that give equal rows under equal settings; empty if that cannot be told."""
    files: tuple[ListedFiles, ...] = ()


class _Known:
    """What is known of a SparkContext's sessions."""

    def __init__(self) -> None:
        self.modules: dict[str, str] = {}
        """What their modules said when they were first read: the Python workers may hold that version."""
        self.settings: dict[int, str] = {}
        """The digests of settings, by the numbers of `SessionSettings.java`."""


@kept_for_context
def _known(sc: SparkContext) -> _Known:
    CLASSES.new_instance(sc._gateway, "PlanKeys").follow(jvm_context(sc))
    return _Known()


class ResultKeys:
    """Makes the keys of one moment: what a module says is looked up once.

    Parameters
    ----------
    relations : sequence of tuple of py4j.java_gateway.JavaObject
        The ``InMemoryRelation`` s of the job's own boundaries, each with the physical plan by which its rows are known.
    """

    def __init__(self, sc: SparkContext, relations: Sequence[tuple[JavaObject, JavaObject]] = ()) -> None:
        self._sc = sc
        self._keys: Any = CLASSES.new_instance(sc._gateway, "PlanKeys")
        known = _known(sc)
        self._settings = known.settings
        self._sources = ModuleSources(known.modules)
        for relation, plan in relations:
            self._keys.own(relation, plan)

    @functools.cached_property
    def _files(self) -> Any:
        return self._keys.listings()

    def of(self, plan: JavaObject, *more: str) -> ResultKey | NoKey:
        """Return the key of a physical plan's rows.

        Parameters
        ----------
        plan : py4j.java_gateway.JavaObject
            A ``SparkPlan``, as it was planned. The settings are those of the session that planned it.
        *more : str
            What else the key depends on, such as the names of columns that the plan itself does not hold.
        """
        return self._key(self._keys.keyOf, plan, more=more)

    def of_result(self, result: StageResult) -> ResultKey | NoKey:
        """Return the key of what a stage leaves behind."""
        return self.of(result.plan, *result.names)

    def open_of(self, result: StageResult, key: ResultKey) -> OpenKey | None:
        """Return the open key of what a stage leaves behind, which has a key; None if it is made of no files."""
        if not key.files:
            return None
        try:
            answer = json.loads(self._keys.openKeyOf(result.plan))
        except Py4JJavaError as error:
            _LOG.debug("rows have no open key: %s", error.java_exception)  # as in `_key`
            return None
        if "digest" not in answer:
            return None
        whole = json.dumps([answer["digest"], key.settings, *result.names])
        return OpenKey(hashlib.sha256(whole.encode()).hexdigest(), " ".join(map(str, answer["reads"])))

    def states(self, key: OpenKey) -> JavaObject:
        """Return the lists of files as they are now, to compare later ones with."""
        return self._files.states(key.reads)

    def growth(self, key: OpenKey, earlier: JavaObject) -> Growth:
        """Return what was added since `states` returned the lists of equal rows."""
        found = self._files.added(key.reads, earlier)
        if isinstance(found, str):
            return Growth(None, changed=found)
        return Growth(found, self.count([found]))

    def count(self, added: Iterable[JavaObject]) -> int:
        """Return how many files were added, by several `Growth.added`."""
        return int(self._files.count(java_list(self._sc._jvm, added)))

    def digests(self, key: OpenKey, earlier: Iterable[JavaObject]) -> list[JavaObject]:
        """Return for each time that `states` was called for equal rows, by file index, the digest of its list then."""
        return [self._files.digests(key.reads, states) for states in earlier]

    def of_answer(self, query_execution: JavaObject, *more: str) -> ResultKey | NoKey:
        """Return the key of what a query answers under the settings of its session; nothing is planned for it.

        What the user has cached counts as it is read now: by what it is made of, if it was asked for before it was
        filled, and neither files nor settings have changed since. A query that fills it has no key otherwise. What
        depends on the order of rows or on their places in partitions has a key, too: it tells whether plain Spark could
        give what it gave before.

        Parameters
        ----------
        *more : str
            What else the answer depends on, such as the action.
        """
        return self._key(self._keys.keyOfAnswer, query_execution, _settled_ms(), more=more)

    def of_cache(self, builder: JavaObject, session: JavaObject) -> ResultKey | NoKey:
        """Return the key of the rows that a cache of the user's is about to hold, by its ``CachedRDDBuilder``.

        It has none unless any process would put the same rows there.
        """
        return self._key(self._keys.keyOfCache, builder, session, _settled_ms(), more=("cache",))

    def of_query(self, query: JavaObject) -> QueryFacts:
        """Return what an analysed ``LogicalPlan`` says, by the rules of keys; nothing is planned for it."""
        try:
            answer = self._answer(lambda one: zlib.decompress(self._keys.keyOfQuery(one)), query)
        except Py4JJavaError as error:
            _LOG.debug("a query has no key: %s", error.java_exception)  # as in `_key`
            return QueryFacts("")
        files = (ListedFiles(tuple(one["roots"]), tuple(one["files"]), one["filtered"]) for one in answer["listed"])
        return QueryFacts(answer.get("digest", ""), tuple(files))

    def of_source(self, leaf: JavaObject, query_execution: JavaObject) -> str:
        """Return the key of a source's rows as a query reads them, by its ``LogicalRelation``; empty if it has none.

        It has none either if the files are no longer what was listed.
        """
        key = self._key(self._keys.keyOfRead, leaf, query_execution)
        return "" if isinstance(key, NoKey) or self.changed_file(key.files) else key.digest

    def of_read(self, query_execution: JavaObject) -> ResultKey | NoKey:
        """Return the key of what a query that only reads files reads, cached or not."""
        return self._key(self._keys.keyOfRead, query_execution.analyzed(), query_execution)

    def layout_of(self, plan: JavaObject) -> str:
        """Return a digest of how a plan's rows lie in partitions, and in which order; empty if there is none."""
        return str(self._keys.layoutOf(plan))

    def changed_file(self, files: tuple[int, ...]) -> str:
        """Return the first file that is no longer what a key's plans listed (`ResultKey.files`); empty if all are."""
        return str(self._keys.changedFile(" ".join(map(str, files)))) if files else ""

    def settled(self, key: ResultKey, began: float) -> bool:
        """Return whether the local files of this key were surely the same from a moment (`time.time`) to the key's own.

        Some file systems know only to one or two seconds when a file was changed.
        """
        if not key.files:
            return True
        return float(self._files.lastChange(java_list(self._sc._jvm, key.files))) / 1000 < began - SETTLED_S

    def listing(self, path: str) -> list[str] | None:
        """Return the files below a path, with lengths and modification times; None if there is nothing."""
        found: list[str] | None = json.loads(self._keys.listing(path))
        return found

    def _key(self, ask: Callable[..., str], *asked: JavaObject | int, more: Sequence[str] = ()) -> ResultKey | NoKey:
        try:
            answer = self._answer(ask, *asked)
        except Py4JJavaError as error:
            # A key is no more than a chance to save work; a plan that is nested too deeply gets none.
            return NoKey(f"its plan could not be read: {str(error.java_exception)[:200]}")
        if "digest" not in answer:
            return NoKey(answer["reason"])
        settings = self._settings_of(answer["settings"])
        whole = json.dumps([answer["digest"], settings, *more])
        digest = hashlib.sha256(whole.encode()).hexdigest()
        return ResultKey(
            digest,
            answer["portable"],
            tuple(answer["files"]),
            settings,
            answer["durable"],
            answer["python"],
            answer["fills"],
        )

    def _answer(self, ask: Callable[..., str | bytes], *asked: JavaObject | int) -> dict[str, Any]:
        """Return what is known of a plan; functions that are met for the first time are looked at."""
        answer: dict[str, Any] = json.loads(ask(*asked))
        if answer["unknown"]:
            self._look_at(answer["unknown"])
            answer = json.loads(ask(*asked))
        return answer

    def _look_at(self, digests: Sequence[str]) -> None:
        """Fingerprint functions."""
        for digest in digests:
            pickled = bytes(self._keys.function(digest))
            why = impurity(pickled)
            if why is not None:
                self._keys.know(digest, None, True, f"a Python function is not known to be pure: {why}")
                continue
            try:
                found = fingerprint(pickled, self._sources)
                self._keys.know(digest, found.digest, found.portable, None)
            except CannotCompareError as error:
                self._keys.know(digest, None, True, f"a Python function cannot be compared: {error}")

    def _settings_of(self, number: int) -> str:
        digest = self._settings.get(number)
        if digest is None:
            # Writes follow the Hadoop settings of their line, which are entries of the session; reads follow the
            # current ones.
            conf, hadoop = json.loads(self._keys.settings(number))
            digest = self._settings[number] = settings_digest(conf, self._sc.version, hadoop)
        return digest


def _settled_ms() -> int:
    return int(1000 * (time.time() - SETTLED_S))


def settings_digest(conf: Mapping[str, str], spark_version: str, hadoop: Mapping[str, str] | None = None) -> str:
    """Return a digest of the settings that can affect rows, of a session and of Hadoop, and of the versions."""
    shared = [(key, value) for key, value in sorted((hadoop or {}).items()) if not key.startswith(IRRELEVANT)]
    versions = [spark_version, list(sys.version_info[:3])]
    entries = sorted(relevant_settings(conf, hadoop or {}).items())
    return hashlib.sha256(json.dumps([entries, shared, versions]).encode()).hexdigest()


def relevant_settings(conf: Mapping[str, str], hadoop: Mapping[str, str]) -> dict[str, str]:
    """Return those of a session's settings, and of Hadoop's, that can affect rows."""
    relevant = {
        key: value
        for key, value in [*hadoop.items(), *conf.items()]
        if (key.startswith("spark.sql.") or not key.startswith("spark.")) and not key.startswith(IRRELEVANT)
    }
    # An entry without a value only hides what was set in Hadoop later (`SessionSnapshot.apply_hadoop_to`).
    return {key: value for key, value in relevant.items() if value}
