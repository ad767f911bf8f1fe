"""Keeps a session's state on a line, and restores it in a clone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from flinkmagic.capturing.driver import capture_reader
from flinkmagic.jvm.java import text_map


@dataclass(frozen=True)
class SessionSnapshot:
    """The parts of the session that a write depends on, as they were on the write's own line.

    Temporary views and functions are not part of it: the write's analysed plan holds what they were.
    """

    conf: Mapping[str, str]
    """The session's SQL configuration."""
    catalog: str
    database: str
    """The current namespace, its parts joined by dots."""
    hadoop: Mapping[str, str] = field(default_factory=dict)
    """What was set of the Hadoop configuration, which all sessions of the context share."""

    @classmethod
    def of_facts(cls, facts: bytes) -> SessionSnapshot:
        """Return the state that `capture_reader.session_facts` tells of."""
        told = capture_reader.as_json(facts)
        return cls(told["conf"], told["catalog"], ".".join(told["namespace"]), told["hadoop"])

    def apply_to(self, jconf: Any) -> None:
        """Bring the SQL configuration of a *clone* of the session to this state; never that of the user's own."""
        current = text_map(jconf.getAllConfs())
        for key in current.keys() - self.conf.keys():
            jconf.unsetConf(key)
        for key, value in self.conf.items():
            if current.get(key) != value:
                jconf.setConfString(key, value)
        self.apply_hadoop_to(jconf)

    def apply_hadoop_to(self, jconf: Any) -> None:
        """Make a clone of the session use the Hadoop settings of this state, whatever was set since.

        A session's entries go before those of the shared Hadoop configuration. An entry cannot say that nothing is set:
        what was set only later gets Hadoop's own default, or none, which Hadoop takes for the default of a truth value.
        """
        now = capture_reader.hadoop_settings()
        later = {key for key in now.keys() - self.hadoop.keys() if key not in self.conf}
        before = {**capture_reader.hadoop_defaults(sorted(later)), **self.hadoop}
        for key in before.keys() - self.conf.keys():
            value = before[key]
            if value is None and now[key].lower() in ("true", "false"):
                value = ""
            if value is not None and value != now.get(key):
                jconf.setConfString(key, value)


def read_conf(jsession: Any) -> dict[str, str]:
    """Return the SQL configuration of a Java session, in one gateway call."""
    return text_map(jsession.sessionState().conf().getAllConfs())
