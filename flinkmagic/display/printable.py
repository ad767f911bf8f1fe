"""Text from data, prepared for display: visible, measured, wrapped and escaped.

Everything that a user, a file or a plan named goes through `visible` before it reaches a picture, a page or a
terminal, and through the escape of the place where it lands (`xml`, `dot`). No other module escapes anything.

Widths are estimates, meant to be a little too large: a picture is laid out here and drawn by a browser whose fonts
are unknown. The sans-serif table is that of a wide face (DejaVu Sans), the monospace one 0.61 em.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Literal

Face = Literal["sans", "mono"]

BOLD = 1.1
"""How many times as wide bold letters of the sans-serif face are."""
_JOINERS = "\u200c\u200d"
_MAX_MARKS = 3
"""Combining marks kept on one letter; more of them climb over the neighbouring lines."""

_NARROW = frozenset("iIjl.,:;'|!")
_SLIM = frozenset(' ftr()[]{}/\\-"`*')
_WIDE = frozenset("mMW@%—…")
_MARKUP = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"}


def visible(text: str) -> str:
    """Return `text` with every character written out that would be invisible or would move others.

    Control characters become their Unicode pictures (NUL: ␀, newline: ␊); direction overrides, zero-width and
    other format characters, lone surrogates and unassigned characters become ``⟨U+202E⟩``; piles of combining
    marks are cut. Letters of right-to-left scripts stay as they are.
    """
    if text.isascii() and text.isprintable():
        return text
    shown: list[str] = []
    marks = 0
    for char in unicodedata.normalize("NFC", text):
        marks = marks + 1 if unicodedata.combining(char) else 0
        if marks <= _MAX_MARKS:
            shown.append(_visible_char(char))
    return "".join(shown)


@lru_cache(maxsize=4096)
def _visible_char(char: str) -> str:
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if char in _JOINERS:
        return char
    category = unicodedata.category(char)
    if category in ("Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"):
        return f"⟨U+{code:04X}⟩"
    return " " if category == "Zs" else char


def lines_visible(text: str) -> str:
    """Return `text` as `visible` does, keeping its line breaks (for tooltips and blocks of code)."""
    if text.isascii() and text.isprintable():
        return text
    return "\n".join(visible(line) for line in text.split("\n"))


def xml(text: str) -> str:
    """Escape visible text for element content or a quoted attribute of XML and HTML."""
    return "".join(_MARKUP.get(char, char) for char in text)


def dot(text: str) -> str:
    """Return visible text as a quoted DOT string in which nothing is an escape, an entity or HTML."""
    plain = text.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')
    return '"' + plain.replace("\n", "\\n") + '"'


@lru_cache(maxsize=4096)
def _em(char: str, face: Face) -> float:
    if unicodedata.combining(char) or char in _JOINERS:
        return 0.0
    if unicodedata.east_asian_width(char) in ("W", "F"):
        return 1.05
    if face == "mono":
        return 0.61
    if char in _NARROW:
        return 0.34
    if char in _SLIM:
        return 0.42
    if char in _WIDE:
        return 1.0
    return 0.72 if char.isupper() else 0.63


def width(text: str, size: float, face: Face = "sans", *, bold: bool = False) -> float:
    """Estimate how wide `text` is in pixels at font size `size`."""
    return size * sum(_em(char, face) for char in text) * (BOLD if bold and face == "sans" else 1.0)


def shorten(text: str, limit: float, size: float, face: Face = "sans") -> str:
    """Return `text`, cut with an ellipsis where it is wider than `limit` pixels."""
    if width(text, size, face) <= limit:
        return text
    room = limit - size * _em("…", face)
    used = 0.0
    for index, char in enumerate(text):
        used += size * _em(char, face)
        if used > room:
            return text[:index].rstrip() + "…"
    return text


def wrap(text: str, limit: float, size: float, face: Face = "sans", max_lines: int = 2) -> list[str]:
    """Break `text` into at most `max_lines` lines of at most `limit` pixels; the last may end in an ellipsis.

    Breaks are chosen where code breaks well: before a dot that follows a bracket, after a comma or a space, after an
    opening bracket or a path separator; a word with no such place is cut at the end of the line.
    """
    lines: list[str] = []
    rest = text.strip()
    while rest and len(lines) < max_lines - 1 and width(rest, size, face) > limit:
        at = _break_at(rest, limit, size, face)
        lines.append(rest[:at].rstrip())
        rest = rest[at:].lstrip()
    if rest:
        lines.append(shorten(rest, limit, size, face))
    return lines or [""]


def _break_at(text: str, limit: float, size: float, face: Face) -> int:
    used, fits = 0.0, 0
    for index, char in enumerate(text):
        used += size * _em(char, face)
        if used > limit:
            break
        fits = index + 1
    fits = max(fits, 1)
    best, best_rank = fits, 0.0
    for index in range(1, fits + 1):
        rank = _break_rank(text, index) * (0.4 + index / fits)
        if rank > best_rank:
            best, best_rank = index, rank
    return best


def _break_rank(text: str, index: int) -> float:
    """Return how good it is to break before `text[index]`: 0 = not at all."""
    before = text[index - 1]
    after = text[index] if index < len(text) else " "
    if after == "." and before in ")]":
        return 3.0
    if before in " ,;" or after == " ":
        return 2.0
    if before in "([{/_=|&":
        return 1.0
    return 0.0
