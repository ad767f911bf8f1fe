"""Pictures for notebooks: HTML that needs neither JavaScript nor a style sheet, MIME types of it, and whole pages."""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from flinkmagic import amounts
from flinkmagic.display import palette, printable
from flinkmagic.display.collapse import LARGE, collapse
from flinkmagic.display.findings import Finding, FindingsView
from flinkmagic.display.layout_engine import engine_available
from flinkmagic.display.picture import Picture, draw_picture, to_svg
from flinkmagic.display.queries import query_lines
from flinkmagic.display.snapshot import KIND_TITLES, GraphKind, GraphView, JobSnapshot
from flinkmagic.display.text import progress_line, to_text
from flinkmagic.display.timeline import draw_timeline
from flinkmagic.errors.usage import LayoutEngineNotFoundError

MAX_BOXES = 250
"""Pictures of more boxes are left out of notebooks: they would add megabytes that no one can read."""

_PRE = "margin:3px 0;white-space:pre-wrap;overflow-wrap:anywhere"
_FONT = f"font-family:{palette.SANS.replace(chr(39), '')}"

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
"""What a browser lets the page do, whatever is in it: show the pictures in it, with the styles of its tags."""

_PAGE_STYLE = ":root { color-scheme: light dark; }"
"""Text and background are the browser's own, of its theme; a picture has a background of its own."""


def to_html(
    views: GraphView | Sequence[GraphView],
    *,
    open_kinds: Collection[str] = ("job",),
    summary: str = "",
    snapshot: JobSnapshot | None = None,
    notes: Sequence[str] = (),
    more: Sequence[tuple[str, str]] = (),
) -> str:
    """Return pictures under headings that open and close; those of `open_kinds` are open.

    Each picture is an <img> that carries its SVG in itself: inside one a browser runs no script and loads nothing.
    `summary` and `notes` are shown above as text; with `snapshot` so are a progress line and its streaming queries; its
    timeline is the last of several pictures, followed by its findings, and its errors are shown below. `more` are
    further sections of a whole page: their headings as text, and their HTML.
    """
    several = _several(views)
    parts = [f'<div style="{_FONT};font-size:13px;line-height:1.5">']
    if summary:
        parts.append(f"<div><strong>{escaped(several[0].name)}</strong>: {escaped(summary)}</div>")
    if snapshot is not None:
        parts.append(f'<pre style="margin:0;white-space:pre-wrap">{escaped(progress_line(snapshot))}</pre>')
    parts += [f"<div>{escaped(note)}</div>" for note in notes]
    if snapshot is not None:
        parts += _queries(snapshot)
    sections = list(zip([view.kind for view in several], _pictures(several), strict=True))
    if len(several) == 1:
        parts.append(sections[0][1])
    else:
        for kind, picture in [*sections, *_timeline(views, snapshot)]:
            parts.append(section(KIND_TITLES[kind], picture, is_open=kind in open_kinds))
        if snapshot is not None and snapshot.findings is not None:
            found = findings_html(snapshot.findings)
            parts.append(section(snapshot.findings.title, found, is_open="findings" in open_kinds))
        parts += [section(title, content) for title, content in more]
    if snapshot is not None:
        parts += _errors(snapshot)
    parts.append("</div>")
    return "".join(parts)


def section(title: str, content: str, *, is_open: bool = False) -> str:
    """Return a heading, given as text, that opens and closes what is below it."""
    heading = f'<summary style="cursor:pointer;padding:4px 0;font-weight:600">{escaped(title)}</summary>'
    return f"<details{' open' if is_open else ''}>{heading}{content}</details>"


CELL = "padding:2px 10px 2px 0;text-align:left;vertical-align:top"
"""The style of a table's cells. It names no colour: a front end has those of its theme."""


def table_row(tag: str, cells: Sequence[str], style: str = CELL) -> str:
    """Return a row of a table, of texts; the tag is that of its cells."""
    inside = "".join(f'<{tag} style="{style}">{escaped(cell)}</{tag}>' for cell in cells)
    return f"<tr>{inside}</tr>"


def findings_html(view: FindingsView) -> str:
    """Return what lost a job's time, each with its line and its cure."""
    return "".join(
        [*(f"<div>{escaped(note)}</div>" for note in (view.path, view.none) if note), *map(_finding, view.found)]
    )


def _finding(one: Finding) -> str:
    place = " · ".join(part for part in (one.where, one.operator) if part)
    code = f'<pre style="{_PRE}">{escaped(one.code.strip())}</pre>' if one.code else ""
    framed = f"{_PRE};border:1px solid {palette.EDGE};border-radius:5px;padding:4px 8px"
    return (
        f'<div style="margin:8px 0;padding-left:10px;border-left:4px solid {palette.MARK}">'
        f"<div><strong>{escaped(one.what)}</strong> · {escaped(one.cost)}</div><div>{escaped(place)}</div>{code}"
        f"<div>{escaped(one.basis)}</div>"
        f'<pre style="{framed}">{escaped(one.cure)}</pre></div>'
    )


SMALLEST_SCALE = 0.7
"""Pictures shrink to the available width, but not below this scale: their smallest words would be unreadable."""


def _image(drawn: Picture, words: str) -> str:
    """Return a picture as an <img> element with a data URI, which can be scrolled."""
    data = base64.b64encode(drawn.root.to_svg().encode("utf-8")).decode("ascii")
    style = f"max-width:max(100%,{SMALLEST_SCALE * drawn.width:.0f}px);height:auto;display:block"
    image = f'<img alt="{escaped(words)}" src="data:image/svg+xml;base64,{data}" style="{style}"/>'
    return f'<div style="overflow-x:auto;padding:6px 0">{image}</div>'


def mime_bundle(
    views: GraphView | Sequence[GraphView],
    *,
    summary: str = "",
    snapshot: JobSnapshot | None = None,
    notes: Sequence[str] = (),
) -> Mapping[str, str]:
    """Return what a notebook stores: ``image/svg+xml``, ``text/html``, ``text/plain``.

    The SVG and the text show the job graph (the first view if it is missing). If nothing can lay out pictures, the
    bundle holds the tree as text and says what to install.
    """
    several = _several(views)
    shown = next((view for view in several if view.kind == "job"), several[0])
    plain = [to_text(shown), *notes]
    if snapshot is not None:
        plain += [progress_line(snapshot), *query_lines(snapshot.queries)]
        plain += [f"✗ {printable.visible(error.where)} {printable.visible(error.message)}" for error in snapshot.errors]
    if not engine_available():
        why = str(LayoutEngineNotFoundError())
        return {"text/plain": "\n".join([*plain, why])}
    return {
        "image/svg+xml": to_svg(shown),
        "text/html": to_html(several, open_kinds=[shown.kind], summary=summary, snapshot=snapshot, notes=notes),
        "text/plain": "\n".join(plain),
    }


def _several(views: GraphView | Sequence[GraphView]) -> list[GraphView]:
    """Return the views as they are stored in a notebook: a large job graph is drawn small."""
    several = [views] if isinstance(views, GraphView) else list(views)
    return [collapse(view) if view.kind == "job" and len(view.nodes) > LARGE else view for view in several]


def _pictures(views: Sequence[GraphView]) -> list[str]:
    """Return the pictures as HTML; they are laid out simultaneously, each in a process of its own."""
    with ThreadPoolExecutor(max_workers=4) as pool:
        return list(pool.map(_picture, views))


def _picture(view: GraphView) -> str:
    if len(view.nodes) > MAX_BOXES:
        return f"<div>{escaped(view.summary)}: too many for a picture that is kept in a notebook.</div>"
    return _image(draw_picture(view), f"{view.title} of {view.name}. {view.summary}")


def _timeline(views: GraphView | Sequence[GraphView], snapshot: JobSnapshot | None) -> Iterator[tuple[GraphKind, str]]:
    """Yield when the tasks ran, if any has begun."""
    job = next((view for view in views if view.kind == "job"), None) if not isinstance(views, GraphView) else None
    if snapshot is None or job is None or all(task.start_ms is None for task in snapshot.tasks):
        return
    drawn = draw_timeline(job, snapshot)
    if drawn is None:
        told = amounts.count(len(snapshot.tasks), "task attempt")
        yield "timeline", f"<div>{told}: too many for a picture that is kept in a notebook.</div>"
    else:
        yield "timeline", _image(drawn, f"{KIND_TITLES['timeline']} of {job.name}")


def _queries(snapshot: JobSnapshot) -> list[str]:
    lines = query_lines(snapshot.queries)
    style = "margin:6px 0 0;white-space:pre-wrap;overflow-wrap:anywhere"
    return [f'<pre style="{style}">{escaped(chr(10).join(lines))}</pre>'] if lines else []


def _errors(snapshot: JobSnapshot) -> list[str]:
    parts = []
    for error in snapshot.errors:
        where = f"<strong>{escaped(error.where)}</strong>: " if error.where else ""
        parts.append(f'<div style="margin-top:6px">✗ {where}{escaped(error.message)}</div>')
        if error.traceback:
            parts.append(f'<pre style="margin:2px 0 0 18px;white-space:pre-wrap">{escaped(error.traceback)}</pre>')
    return parts


def document(title: str, body: str, style: str) -> str:
    """Return a page of its own: one file of HTML that loads nothing, and in which nothing runs.

    The page says so to the browser, too (its Content-Security-Policy): no script, no style or picture from elsewhere.
    Its title is any text; in the body, which is HTML, what came from data is escaped.
    """
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f'<meta name="viewport" content="width=device-width">\n<title>{escaped(title)}</title>\n'
        f"<style>{_PAGE_STYLE}{style}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def escaped(text: str) -> str:
    """Return text from data as HTML."""
    return printable.xml(printable.lines_visible(text))
