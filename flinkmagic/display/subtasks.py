"""Subtasks inside a node: numbered chips if there are few, a grid of cells if there are many.

Each state has a cell of its own shape, not only of its own colour. A grid is drawn as one path for each state, so a
vertex of ten thousand subtasks is nine elements.
"""

from __future__ import annotations

import math

from flinkmagic.display import palette
from flinkmagic.display.scene import Element, box, element, moved, number, tooltip
from flinkmagic.display.snapshot import STATE_NAMES, NodeView

MAX_CHIPS = 16
CHIP_WIDTH, MAX_CHIP_WIDTH, CHIP_HEIGHT, CHIP_GAP = 44.0, 64.0, 22.0, 6.0
CHIPS_IN_ROW = 8
MAX_GRID_WIDTH = 400.0


def chips(parallelism: int) -> bool:
    """Return whether that many subtasks are shown one by one."""
    return parallelism <= MAX_CHIPS


def cell_pitch(parallelism: int) -> float:
    """Return the distance between two cells of a grid."""
    for limit, pitch in ((128, 14.0), (400, 11.0), (1600, 8.0), (4096, 6.0)):
        if parallelism <= limit:
            return pitch
    return 4.0


def columns(parallelism: int) -> int:
    """Return how many cells or chips are in a row."""
    if chips(parallelism):
        rows = math.ceil(parallelism / CHIPS_IN_ROW)
        return math.ceil(parallelism / rows)
    pitch = cell_pitch(parallelism)
    return min(int(MAX_GRID_WIDTH / pitch), math.ceil(math.sqrt(parallelism * 3)))


def subtasks_size(parallelism: int) -> tuple[float, float]:
    """Return width and height of the chips or of the grid."""
    across = columns(parallelism)
    down = math.ceil(parallelism / across)
    if chips(parallelism):
        return across * (CHIP_WIDTH + CHIP_GAP) - CHIP_GAP, down * (CHIP_HEIGHT + CHIP_GAP) - CHIP_GAP
    pitch = cell_pitch(parallelism)
    return across * pitch, down * pitch


def chip_width(parallelism: int, width: float) -> float:
    """Return how wide each chip is in a row `width` wide."""
    across = columns(parallelism)
    return min(MAX_CHIP_WIDTH, (width + CHIP_GAP) / across - CHIP_GAP)


def chip_center(parallelism: int, subtask: int, width: float) -> float:
    """Return the distance of the middle of a subtask's chip from the left of a row `width` wide."""
    one = chip_width(parallelism, width)
    return subtask % columns(parallelism) * (one + CHIP_GAP) + one / 2


def draw_subtasks(node: NodeView, x: float, y: float, width: float) -> Element:
    """Draw a vertex's subtasks as chips or as a grid, at most `width` wide."""
    states = node.states or bytes(node.parallelism)
    group = moved(x, y, class_="fm-subtasks", data_vertex=node.vertex_id)
    across = columns(node.parallelism)
    if not chips(node.parallelism):
        pitch = cell_pitch(node.parallelism)
        grid = element("g", class_="fm-grid", data_across=across, data_pitch=pitch)
        return group.add(grid.add(*_grid(states, across, pitch)))
    one = chip_width(node.parallelism, width)
    for subtask in range(node.parallelism):
        left, top = subtask % across * (one + CHIP_GAP), subtask // across * (CHIP_HEIGHT + CHIP_GAP)
        group.add(_chip(node, subtask, STATE_NAMES[states[subtask]], one, (left, top)))
    return group


def _chip(node: NodeView, subtask: int, state: str, width: float, at: tuple[float, float]) -> Element:
    style = palette.STATES[state]
    return moved(
        *at,
        tooltip(f"{node.title} ({subtask + 1}/{node.parallelism})\n{style.word}"),
        box(0, 0, width, CHIP_HEIGHT, rx=5, fill=palette.SURFACE, stroke=style.fill,
            stroke_width=1.2 if state == "CREATED" else 1.8, class_="fm-chip"),
        moved(7, 5, element("path", d=style.icon, fill=style.ink, fill_rule="evenodd", class_="fm-state-icon")),
        element("text", str(subtask + 1), x=width - 9, y=15, font_size=11, font_weight="600", text_anchor="end",
                fill=palette.INK, class_="fm-chip-text"),
        class_="fm-subtask", data_part=str(subtask), data_state=state,
    )  # fmt: skip


def _grid(states: bytes, across: int, pitch: float) -> list[Element]:
    shapes = {name: [] for name in STATE_NAMES}  # type: dict[str, list[str]]
    side = pitch - max(1.0, pitch * 0.16)
    for index, code in enumerate(states):
        name = STATE_NAMES[code]
        shapes[name].append(cell(name, index % across * pitch, index // across * pitch, side))
    return [
        element("path", tooltip(palette.STATES[name].word), d="".join(cells), fill=palette.STATES[name].fill,
                class_="fm-cells", data_state=name)
        for name, cells in shapes.items()
        if cells
    ]  # fmt: skip


def cell(state: str, x: float, y: float, side: float) -> str:
    """Return the outline of one cell: each state's own shape, `side` wide."""
    points = [f"{number(x + u * side)} {number(y + v * side)}" for u, v in palette.CELLS[state]]
    return f"M{'L'.join(points)}z"
