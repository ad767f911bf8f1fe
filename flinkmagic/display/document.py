"""A page of its own: one file of HTML that loads nothing, and in which nothing runs."""

from __future__ import annotations

from flinkmagic.display import palette, printable

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
"""What a browser lets the page do, whatever is in it: show the pictures in it, with the styles of its tags."""


def document(title: str, body: str) -> str:
    """Return a page.

    Parameters
    ----------
    title : str
        Any text.
    body : str
        HTML, in which what came from data is escaped.
    """
    font = palette.SANS.replace("'", "")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{printable.xml(printable.visible(title))}</title></head>"
        f'<body style="margin:24px auto;max-width:1200px;padding:0 16px;font-family:{font};font-size:13px;'
        f'line-height:1.5;color:{palette.INK};background:{palette.CARD}">{body}</body></html>\n'
    )
