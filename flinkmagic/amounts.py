"""Formats counts, durations, sizes and long texts for people, in the same way in pictures and messages."""

from __future__ import annotations

import time


def count(number: int, noun: str, plural: str | None = None) -> str:
    """Return ``"1 task"``, ``"17 tasks"``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def duration(ms: float | None) -> str:
    """Return a span of time as people write it: ``"340 ms"``, ``"4.2 s"``, ``"3 min 05 s"``."""
    if ms is None:
        return "–"
    if ms < 1000:
        return f"{ms:.0f} ms"
    if ms < 59_950:
        return f"{ms / 1000:.1f} s"
    minutes, seconds = divmod(round(ms / 1000), 60)
    if minutes < 60:
        return f"{minutes} min {seconds:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min"


def size(number_of_bytes: float | None) -> str:
    """Return an amount of data: ``"512 B"``, ``"1.4 MiB"``."""
    if number_of_bytes is None:
        return "–"
    amount = float(number_of_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def age(seconds: float) -> str:
    """Return how long ago something was, in its largest unit: ``"5 s"``, ``"3 min"``, ``"2 d"``."""
    for length, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def moment(at: float) -> str:
    """Return when something was, by the local clock, with the day if that is not today: ``"14:02"``."""
    then = time.localtime(at)
    return time.strftime("%H:%M" if then[:3] == time.localtime()[:3] else "%Y-%m-%d %H:%M", then)


def magnitude(number: int | None) -> str:
    """Return a count in three digits: ``950``, ``12.3 K``, ``6.0 M``; empty if there is none."""
    if number is None:
        return ""
    if number < 1000:
        return str(number)
    amount = float(number)
    for unit in ("K", "M", "G"):
        amount /= 1000
        if amount < 999.5:
            return f"{amount:.1f} {unit}" if amount < 99.95 else f"{amount:.0f} {unit}"
    return f"{amount / 1000:.1f} T"


def cut(text: str, length: int) -> str:
    """Return `text`, cut with an ellipsis where it has more than `length` characters."""
    return text if len(text) <= length else text[: length - 1] + "…"
