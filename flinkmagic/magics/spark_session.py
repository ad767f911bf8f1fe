"""Finds the SparkSession that a cell belongs to."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from flinkmagic.display.printable import lines_visible
from flinkmagic.errors.capturing import SparkConnectSessionError
from flinkmagic.jvm.contexts import kept_for_context
from flinkmagic.jvm.java import is_connect, is_stopped
from flinkmagic.local_spark import local_session, other_python

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell
    from pyspark import SparkContext


def cell_session(shell: InteractiveShell) -> SparkSession:
    """Return the session that the user's `spark` names, else the active one, else start a local one.

    A session that is started is bound to `spark`, as in the PySpark shell, and the user is told.

    Raises
    ------
    SparkConnectSessionError
        If `spark` is a Spark Connect session: it has no SparkContext to deploy on.
    JavaNotFoundError
        If a local session is needed and no Java can run it.
    """
    session = running_session(shell)
    if session is not None:
        if shell.user_ns.get("spark") is None:
            shell.user_ns["spark"] = session
        return session
    session = local_session()
    shell.user_ns["spark"] = session
    print(
        f"No SparkSession was running: started a local one, `spark` "
        f"(Spark {session.version}, {session.sparkContext.master}).",
        file=sys.stderr,
    )
    return session


@kept_for_context
def say_other_python(sc: SparkContext) -> None:
    """Say once for each SparkContext that its workers run another Python, if they do."""
    told = other_python(sc)
    if told is not None:
        print(lines_visible(told), file=sys.stderr)


def running_session(shell: InteractiveShell) -> SparkSession | None:
    """Return the session that the user's `spark` names, else the active one; None if neither runs.

    Raises
    ------
    SparkConnectSessionError
        If `spark` is a Spark Connect session.
    """
    named = shell.user_ns.get("spark")
    if is_connect(named):
        raise SparkConnectSessionError()
    session = named if isinstance(named, SparkSession) else SparkSession.getActiveSession()
    return session if session is not None and not is_stopped(session) else None
