"""Describes the arguments of a simulation once: `flinkmagic simulate` and `%flinksim` take the same ones."""

from __future__ import annotations

from typing import Any

from flinkmagic.options import COUNT, STRATEGY, typed

RESTART_STRATEGY = "fixed-delay:3:1s"

SIMULATION_ARGUMENTS: dict[str, dict[str, Any]] = {
    "--task-managers": {"type": typed(COUNT), "default": 1, "metavar": "N", "help": "how many executors there are (1)"},
    "--slots": {"type": typed(COUNT), "default": 4, "metavar": "N", "help": "how many slots each has (4)"},
    "--seed": {"type": int, "default": 0, "metavar": "N", "help": "the seed of all chance (0)"},
    "--task-seconds": {
        "action": "append",
        "default": [],
        "metavar": "[NAME=]SECONDS",
        "help": "about how long a task works (1, or after a real run as long as it took); with a NAME, the tasks of "
        "that vertex or operator; repeatable",
    },
    "--fail": {
        "action": "append",
        "default": [],
        "metavar": "VERTEX:SUBTASK@TIME",
        "help": 'such as "Map:2@1.5s", or "1:2@1.5s" by the number [1] of the vertex in text; repeatable',
    },
    "--lose-task-manager": {
        "action": "append",
        "default": [],
        "metavar": "NAME@TIME[+TIME]",
        "help": "such as tm-1@2s, or tm-1@2s+5s if a new one comes five seconds later; repeatable",
    },
    "--faults": {"type": int, "default": 0, "metavar": "N", "help": "how many random faults occur"},
    "--restart": {
        "type": typed(STRATEGY),
        "default": RESTART_STRATEGY,
        "metavar": STRATEGY.metavar,
        "help": f"of failed tasks: {STRATEGY.expected} (%(default)s)",
    },
}
"""Flags, and how argparse takes each."""


def asked_for(options: Any) -> dict[str, Any]:
    """Return what was given for each of them, by the keywords of `simulation_options`."""
    names = (flag.removeprefix("--").replace("-", "_") for flag in SIMULATION_ARGUMENTS)
    return {name: getattr(options, name) for name in names}
