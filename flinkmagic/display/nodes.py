"""The nodes of a picture: how large the box of each is, and how it is drawn.

A box shows, from top to bottom: the node's part in the graph and its parallelism; the operators, the user's words first
and Spark's second; in execution graphs its subtasks; and how far its subtasks are. It has the same size in every state,
so that painting never moves anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from flinkmagic import amounts
from flinkmagic.display import palette, printable
from flinkmagic.display.scene import Element, box, element, moved, tooltip
from flinkmagic.display.snapshot import STATE_NAMES, NodeView, OperatorLine, leading_state, state_counts
from flinkmagic.display.subtasks import draw_subtasks, subtasks_size

PAD = 14.0
STRIPE = 5.0
HEADER = 30.0
FOOTER = 27.0
CALL_SIZE, CALL_LINE = 12.5, 16.5
NOTE_SIZE, NOTE_LINE = 11.0, 15.0
ROW_GAP = 7.0
MIN_TEXT, MAX_TEXT = 150.0, 300.0
MAX_ROWS = 6
MARK_WIDTH = 34.0


@dataclass(frozen=True)
class Row:
    """One operator of a node: lines of the user's call, then a note."""

    title: tuple[str, ...]
    face: printable.Face
    note: str
    hint: str

    @property
    def height(self) -> float:
        return CALL_LINE * len(self.title) + (NOTE_LINE if self.note else 0.0)

    @property
    def width(self) -> float:
        title = max(printable.width(line, CALL_SIZE, self.face, bold=True) for line in self.title)
        return max(title, printable.width(self.note, NOTE_SIZE))


@dataclass(frozen=True)
class MeasuredNode:
    """A node, measured."""

    node: NodeView
    rows: tuple[Row, ...]
    width: float
    height: float
    with_subtasks: bool


def measure(node: NodeView, *, with_subtasks: bool = False) -> MeasuredNode:
    """Choose the lines of a node and its size; of its operators only one is shown beside its subtasks."""
    lines: Sequence[OperatorLine] = node.operators or (OperatorLine(operator=node.name),)
    if with_subtasks:
        lines = [_summary_line(node)]
    rows = _rows(lines)
    text = max(MIN_TEXT, _header_width(node), *(row.width for row in rows))
    height = HEADER + sum(row.height for row in rows) + ROW_GAP * len(rows) + FOOTER
    if with_subtasks:
        grid_width, grid_height = subtasks_size(node.parallelism)
        text = max(text, grid_width)
        height += grid_height + ROW_GAP
    return MeasuredNode(node, rows, round(text + 2 * PAD + STRIPE), round(height), with_subtasks)


def _summary_line(node: NodeView) -> OperatorLine:
    """Return the operator that represents a box, with the physical operators of the whole chain behind it."""
    main = node.main_operator
    chain = " → ".join(line.operator for line in node.operators if line.operator)
    return replace(main, operator=chain) if main.title != main.operator and chain else main


def _rows(lines: Sequence[OperatorLine]) -> tuple[Row, ...]:
    if len(lines) <= MAX_ROWS:
        return tuple(map(_row, lines))
    hidden = lines[1 : 2 - MAX_ROWS]
    names = "\n".join(_hint(line) for line in hidden)
    more = Row((f"… {amounts.count(len(hidden), 'more operator')}",), "sans", "", names)
    return (_row(lines[0]), more, *map(_row, lines[2 - MAX_ROWS :]))


def _row(line: OperatorLine) -> Row:
    face: printable.Face = "mono" if line.call and line.title == line.call else "sans"
    room = MAX_TEXT if face == "mono" else MAX_TEXT / printable.BOLD
    title = printable.wrap(printable.visible(line.title), room, CALL_SIZE, face)
    note = printable.shorten(printable.visible(line.subtitle), MAX_TEXT, NOTE_SIZE)
    return Row(tuple(title), face, note, _hint(line))


def _hint(line: OperatorLine) -> str:
    """Return the whole text of an operator, for its tooltip."""
    place = f"{line.where}: {line.code.strip()}" if line.code else line.where
    parts = [line.name, line.phrase, line.call, line.operator, place]
    if line.variable:
        parts.append(f"variable {line.variable}")
    parts.append(line.text)
    return "\n".join(part for part in parts if part)


def _header_width(node: NodeView) -> float:
    word = printable.width(palette.ROLES[node.role].word.upper(), 10.5) * 1.12 + 24
    pills = sum(_pill_width(text) + 6 for text in _pills(node))
    return word + 14 + pills


def _pills(node: NodeView) -> list[str]:
    return [*map(printable.visible, node.badges), f"×{node.parallelism:,}"]


def _pill_width(text: str) -> float:
    return printable.width(text, 10.5, bold=True) + 14


def draw(measured: MeasuredNode, x: float, y: float, *, far_title: bool = False) -> Element:
    """Draw a node with its upper left corner at (x, y)."""
    node = measured.node
    state = leading_state(node.states)
    group = moved(
        x, y,
        tooltip(_hint_of_node(node)),
        class_="fm-node", data_id=node.id, data_vertex=node.vertex_id, data_state=state,
    )  # fmt: skip
    group.add(*_frame(measured, state), *_header(measured))
    at = HEADER
    for row in measured.rows:
        group.add(_draw_row(row, at))
        at += row.height + ROW_GAP
    if measured.with_subtasks:
        group.add(draw_subtasks(node, STRIPE + PAD, at, measured.width - STRIPE - 2 * PAD))
    group.add(draw_footer(node, measured.width, measured.height), _mark(measured))
    return group.add(*_far_title(measured)) if far_title else group


def _mark(measured: MeasuredNode) -> Element | None:
    """Return the sign on the upper border of what has lost time; the widget draws the same (``static/graph.js``)."""
    marks = measured.node.marks
    if not marks:
        return None
    width = MARK_WIDTH
    return moved(
        measured.width - PAD - width, -10,
        tooltip("\n".join(marks)),
        box(0, 0, width, 15, rx=7.5, fill=palette.MARK, stroke=palette.CARD, stroke_width=1.5, class_="fm-mark-pill"),
        element("path", d=palette.MARK_ICON, fill=palette.INK, fill_rule="evenodd", class_="fm-mark-ink"),
        element("text", str(len(marks)), x=width - 7, y=11.3, font_size=10.5, font_weight="700", text_anchor="end",
                fill=palette.INK, class_="fm-mark-ink"),
        class_="fm-mark",
    )  # fmt: skip


def _far_title(measured: MeasuredNode) -> list[Element]:
    """Return the node's title as large as it fits, for looking at a large graph from afar."""
    size, line = 25.0, 29.0
    room = measured.height - 16
    if measured.with_subtasks:
        room -= subtasks_size(measured.node.parallelism)[1] + FOOTER
    title = printable.visible(measured.node.title)
    lines = printable.wrap(title, (measured.width - 30) / 1.1, size, max_lines=max(1, int(room / line)))
    return [
        element("text", text, x=STRIPE + PAD, y=8 + line * (index + 0.8), font_size=size, font_weight="600",
                fill=palette.INK, class_="fm-far-title")
        for index, text in enumerate(lines)
    ]  # fmt: skip


def _hint_of_node(node: NodeView) -> str:
    facts = [f"{name}: {value}" for name, value in node.facts]
    facts += [node.cost.words()[0]] if node.cost is not None else []
    facts += node.marks
    return "\n".join([node.name, f"parallelism {node.parallelism}", *node.badges, *facts])


def _frame(measured: MeasuredNode, state: str) -> list[Element]:
    width, height = measured.width, measured.height
    style = palette.STATES[state]
    begun = state != "CREATED"
    role = palette.ROLES[measured.node.role]
    stripe = f"M8 0a8 8 0 0 0-8 8V{height - 8:g}a8 8 0 0 0 8 8H{STRIPE + 3:g}V0z"
    return [
        box(0, 0, width, height, rx=8, fill=palette.CARD, class_="fm-card"),
        element("path", d=stripe, fill=role.color, class_=f"fm-stripe fm-role-{measured.node.role}"),
        box(STRIPE, 0, 10, height, fill=palette.CARD, class_="fm-card-in"),
        box(
            0, 0, width, height, rx=8, fill="none", class_="fm-border",
            stroke=style.fill if begun else palette.LINE, stroke_width=2 if begun else 1.2,
        ),
    ]  # fmt: skip


def _header(measured: MeasuredNode) -> list[Element]:
    role = palette.ROLES[measured.node.role]
    left = STRIPE + PAD
    parts = [
        moved(
            left - 1, 7,
            element("path", d=role.icon, fill="none", stroke=role.color, stroke_width=1.5, stroke_linecap="round",
                    stroke_linejoin="round", class_=f"fm-role-icon fm-role-{measured.node.role}"),
        ),
        element("text", role.word.upper(), x=left + 21, y=19, font_size=10.5, font_weight="600", letter_spacing="0.7",
                fill=role.color, class_=f"fm-role-word fm-role-{measured.node.role}"),
    ]  # fmt: skip
    right = measured.width - PAD + 2
    for text in reversed(_pills(measured.node)):
        width = _pill_width(text)
        right -= width
        strong = not text.startswith("×")
        parts.append(box(right, 6, width, 18, rx=9, fill="#fdf0d5" if strong else palette.CLUSTER,
                         class_="fm-badge" if strong else "fm-pill"))  # fmt: skip
        parts.append(element("text", text, x=right + width / 2, y=18.8, font_size=10.5, font_weight="600",
                             text_anchor="middle", fill="#7a4f00" if strong else palette.MUTED,
                             class_="fm-badge-text" if strong else "fm-pill-text"))  # fmt: skip
        right -= 6
    return parts


def _draw_row(row: Row, top: float) -> Element:
    left = STRIPE + PAD
    group = element("g", tooltip(row.hint), class_="fm-row")
    y = top + CALL_LINE - 4
    for line in row.title:
        face = palette.MONO if row.face == "mono" else palette.SANS
        group.add(element("text", line, x=left, y=y, font_size=CALL_SIZE, font_family=face, font_weight="600",
                          fill=palette.INK, class_="fm-call"))  # fmt: skip
        y += CALL_LINE
    if row.note:
        group.add(element("text", row.note, x=left, y=y - 1.5, font_size=NOTE_SIZE, fill=palette.MUTED,
                          class_="fm-note"))  # fmt: skip
    return group


def draw_footer(node: NodeView, width: float, height: float) -> Element:
    """Draw a node's footer: how far its subtasks are, and their costs, as sign, words and a bar of shares."""
    states = node.states
    left, right = STRIPE + PAD, width - PAD
    state = leading_state(states)
    style = palette.STATES[state]
    y = height - FOOTER
    foot = element("g", class_="fm-foot", data_state=state)
    sign = element("path", d=style.icon, fill=style.ink, fill_rule="evenodd", class_="fm-state-icon")
    words = footer_words(node, width)
    foot.add(
        moved(left, y + 2.5, sign),
        element("text", words, x=left + 18, y=y + 12.5, font_size=NOTE_SIZE, font_weight="600", fill=style.ink,
                class_="fm-state-text"),
        box(left, height - 8, right - left, 3, rx=1.5, fill=palette.CLUSTER, class_="fm-track"),
    )  # fmt: skip
    at = left
    for name in BAR_ORDER:
        share = states.count(STATE_NAMES.index(name)) / max(len(states), 1) * (right - left)
        if share:
            foot.add(box(at, height - 8, share, 3, fill=palette.STATES[name].fill, class_="fm-bar", data_state=name))
            at += share
    return foot


BAR_ORDER = (
    "FINISHED",
    "RUNNING",
    "INITIALIZING",
    "DEPLOYING",
    "SCHEDULED",
    "CANCELING",
    "CANCELED",
    "FAILED",
)


def footer_words(node: NodeView, width: float) -> str:
    """Return the words under a node of some width: how far its subtasks are, or their costs."""
    if node.cost is not None:
        room, choices = width - STRIPE - 2 * PAD - 18, node.cost.words()
        return next((words for words in choices if printable.width(words, NOTE_SIZE) <= room), choices[-1])
    return footer_text(node.states, node.parallelism)


def footer_text(states: bytes, parallelism: int) -> str:
    """Return the words under a node: ``"4 subtasks"``, ``"2 of 4 finished · 1 running"``, ``"1 failed · …"``."""
    counts = state_counts(states)
    if not counts or set(counts) == {"CREATED"}:
        return amounts.count(parallelism, "subtask")
    if len(counts) == 1:
        (name,) = counts
        return f"{amounts.count(parallelism, 'subtask')} {palette.STATES[name].word}"
    parts = [f"{counts.get('FINISHED', 0):,} of {parallelism:,} finished"]
    speaker = next(name for name in palette.ATTENTION if name in counts and name != "FINISHED")
    if speaker != "CREATED":
        where = 0 if speaker in ("FAILED", "CANCELED", "CANCELING") else 1
        parts.insert(where, f"{counts[speaker]:,} {palette.STATES[speaker].word}")
    return " · ".join(parts)
