"""A page of its own: one file of HTML that loads nothing, and in which nothing runs.

The page says so to the browser, too (its Content-Security-Policy): no script, no style or picture from elsewhere.
"""

from __future__ import annotations

from flinkmagic.display.page import escaped

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
"""What a browser lets the page do, whatever is in it: show the pictures in it, with the styles of its tags."""

_STYLE = ":root { color-scheme: light dark; }"
"""Text and background are the browser's own, of its theme; a picture has a background of its own."""


def document(title: str, body: str, style: str) -> str:
    """Return a page of any title; in the body, which is HTML, what came from data is escaped."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f'<meta name="viewport" content="width=device-width">\n<title>{escaped(title)}</title>\n'
        f"<style>{_STYLE}{style}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )
