"""Colours and signs of states and roles.

State colours are the Okabe-Ito set, which people with any common colour blindness can tell apart; a state is also
always shown by a sign of its own (a drawn icon, a letter-like glyph in text) and by its word. Colours are those of
the static pictures; the widget's style sheet repeats them as CSS variables for both themes.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StateStyle:
    """How a state looks: `fill` for areas, `ink` for text on white, `glyph` in text, `icon` as a 12x12 path."""

    word: str
    fill: str
    ink: str
    glyph: str
    icon: str


_RING = "M6 1a5 5 0 1 0 0 10a5 5 0 1 0 0-10z"

STATES: dict[str, StateStyle] = {
    "CREATED": StateStyle(
        "created", "#c9ced6", "#5b6470", "○", f"{_RING}M6 2.6a3.4 3.4 0 1 1 0 6.8a3.4 3.4 0 1 1 0-6.8z"
    ),
    "SCHEDULED": StateStyle(
        "scheduled",
        "#e69f00",
        "#8a5a00",
        "◔",
        f"{_RING}M6 2.4a3.6 3.6 0 1 1 0 7.2a3.6 3.6 0 1 1 0-7.2zM5.4 3.4h1.3v2.5l1.8 1.1l-.7 1.1l-2.4-1.5z",
    ),
    "DEPLOYING": StateStyle("deploying", "#f0e442", "#6b6300", "◑", "M6 1l4.6 5H7.6v5H4.4V6H1.4z"),
    "INITIALIZING": StateStyle("initializing", "#56b4e9", "#1b6a99", "◕", f"{_RING}M6 2.6v6.8a3.4 3.4 0 1 0 0-6.8z"),
    "RUNNING": StateStyle("running", "#0072b2", "#0072b2", "▶", "M2.6 1.1l8 4.9l-8 4.9z"),
    "FINISHED": StateStyle("finished", "#009e73", "#00765a", "✓", "M1.2 6.6l1.7-1.7l2 2l4.3-4.7l1.7 1.6l-6 6.5z"),
    "CANCELING": StateStyle(
        "canceling", "#e3b5cf", "#8e4b73", "◌", "M1.5 5h2.4v2H1.5zM4.8 5h2.4v2H4.8zM8.1 5h2.4v2H8.1z"
    ),
    "CANCELED": StateStyle("canceled", "#a8608c", "#8e4b73", "⊘", "M2 2h8v8H2z"),
    "FAILED": StateStyle(
        "failed",
        "#d55e00",
        "#b34700",
        "✗",
        "M2.6 1.2L6 4.6l3.4-3.4l1.4 1.4L7.4 6l3.4 3.4l-1.4 1.4L6 7.4l-3.4 3.4l-1.4-1.4L4.6 6L1.2 2.6z",
    ),
}
"""By the name of Flink's ExecutionState, in the order of a task's life."""

_SQUARE = ((0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0))
_HALF = ((0.0, 0.5), (1.0, 0.5), (1.0, 1.0), (0.0, 1.0))
_DIAMOND = ((0.5, 0.0), (1.0, 0.5), (0.5, 1.0), (0.0, 0.5))

CELLS: dict[str, tuple[tuple[float, float], ...]] = {
    "CREATED": ((0.35, 0.35), (0.65, 0.35), (0.65, 0.65), (0.35, 0.65)),
    "SCHEDULED": ((0.0, 0.7), (1.0, 0.7), (1.0, 1.0), (0.0, 1.0)),
    "DEPLOYING": _HALF,
    "INITIALIZING": _HALF,
    "RUNNING": ((0.0, 0.0), (1.0, 0.5), (0.0, 1.0)),
    "FINISHED": _SQUARE,
    "CANCELING": _DIAMOND,
    "CANCELED": _DIAMOND,
    "FAILED": (
        (0.0, 0.0), (0.3, 0.0), (0.5, 0.3), (0.7, 0.0), (1.0, 0.0), (0.66, 0.5), (1.0, 1.0), (0.7, 1.0), (0.5, 0.7),
        (0.3, 1.0), (0.0, 1.0), (0.34, 0.5),
    ),
}  # fmt: skip
"""The outline of a subtask's cell in a grid, in a square of side 1: a shape for each stage of its life."""

ATTENTION = (
    "FAILED",
    "CANCELING",
    "CANCELED",
    "RUNNING",
    "INITIALIZING",
    "DEPLOYING",
    "SCHEDULED",
    "CREATED",
    "FINISHED",
)
"""States by how much readers want to know of them: the first that occurs speaks for several subtasks."""

JOB_GLYPHS: dict[str, str] = {
    "INITIALIZING": "○", "CREATED": "○", "RUNNING": "▶", "FAILING": "✗", "FAILED": "✗", "CANCELLING": "◌",
    "CANCELED": "⊘", "FINISHED": "✓", "RESTARTING": "↻", "SUSPENDED": "‖", "RECONCILING": "◑",
}  # fmt: skip
"""By the name of Flink's JobStatus."""

JOB_STYLES: dict[str, str] = {
    "RUNNING": "RUNNING", "FAILING": "FAILED", "FAILED": "FAILED", "CANCELLING": "CANCELING", "CANCELED": "CANCELED",
    "FINISHED": "FINISHED", "RESTARTING": "SCHEDULED", "SUSPENDED": "CANCELED", "RECONCILING": "INITIALIZING",
}  # fmt: skip
"""Which state's colours and sign a JobStatus is shown with; one that is not here looks like CREATED."""


@dataclass(frozen=True)
class RoleStyle:
    """How a node's part in the graph looks: word, colour of its stripe, 16x16 outline icon."""

    word: str
    color: str
    icon: str


ROLES: dict[str, RoleStyle] = {
    "source": RoleStyle(
        "Source",
        "#2f6f9f",
        "M2.5 4c0-1.4 11-1.4 11 0v8c0 1.4-11 1.4-11 0zM2.5 4c0 1.4 11 1.4 11 0M2.5 8c0 1.4 11 1.4 11 0",
    ),
    "operator": RoleStyle("Operator", "#6b7686", "M3 3h10v10H3zM6 8h4"),
    "join": RoleStyle(
        "Join",
        "#7a5195",
        "M6 3.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9zM10 3.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9z",
    ),
    "union": RoleStyle("Union", "#7a5195", "M3 3v5a5 5 0 0 0 10 0V3"),
    "sink": RoleStyle("Sink", "#b3541e", "M8 2v7M5 6.5L8 9.5l3-3M3 11v2.5h10V11"),
    "iteration": RoleStyle("Iteration", "#4b6b3c", "M12.5 6A5 5 0 1 0 13 9M13 3v3.3h-3.3"),
}

MARK = "#f5b83d"
"""Behind the sign of what has lost time; its ink is `INK`."""
MARK_ICON = "M11 3l4.6 9H6.4zM10.4 5.8h1.2v3.2h-1.2zM10.4 9.9h1.2v1.2h-1.2z"
"""A triangle with an exclamation mark, in a pill that is 15 high."""

INK = "#1f2733"
MUTED = "#5d6673"
LINE = "#d4dae2"
EDGE = "#8894a5"
CARD = "#ffffff"
SURFACE = "#f6f8fa"
CLUSTER = "#edf1f6"

SANS = "-apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Noto Sans', 'DejaVu Sans', Arial, sans-serif"
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace"
