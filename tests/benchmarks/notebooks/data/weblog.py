"""A web server's access logs: text files, one a day."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from tests.benchmarks.notebooks.data.tables import generator, pick, write_lines

DAYS, LINES_A_DAY, HOSTS, PAGES = 12, 28_000, 6_000, 900


def make(folder: Path) -> None:
    """Write the files."""
    r = generator("weblog")
    domains = pick(r, ["example.com", "campus.example.edu", "dial.example.net", "proxy.example.org"], HOSTS)
    numbers = r.integers(1, 255, (HOSTS, 4))
    hosts = np.array(
        [
            f"host{number}.{domain}" if number % 3 else ".".join(map(str, address))
            for number, (domain, address) in enumerate(zip(domains, numbers, strict=True))
        ],
        dtype=object,
    )
    suffixes = pick(r, [".html", ".html", ".gif", ".jpg", "/", ".txt", ".php?id=7"], PAGES)
    sections = pick(r, ["shuttle", "history", "images", "software", "news", "facts", "cgi-bin"], PAGES)
    pages = np.array(
        [f"/{one}/page{n}{end}" for n, (one, end) in enumerate(zip(sections, suffixes, strict=True))], dtype=object
    )
    for day in range(DAYS):
        n = LINES_A_DAY
        seconds = np.sort(r.integers(0, 86400, n))
        stamps = pd.to_datetime(np.datetime64("1995-07-01", "s") + day * 86400 + seconds).strftime(
            "%d/%b/%Y:%H:%M:%S -0400"
        )
        chosen = np.minimum((r.pareto(0.9, n) * 30).astype(int), 10**6) % PAGES
        status = pick(r, [200, 304, 302, 404, 403, 500], n, [86, 8, 3.5, 2, 0.2, 0.3])
        sizes = np.where(
            (status == 304) | (r.random(n) < 0.01), "-", (np.exp(r.normal(8.5, 1.6, n))).astype(int).astype(str)
        )
        columns = zip(
            hosts[(r.pareto(1.1, n) * 60).astype(int) % HOSTS],
            stamps,
            pick(r, ["GET", "GET", "GET", "GET", "HEAD", "POST"], n),
            np.where(status == 404, "/missing" + pages[chosen], pages[chosen]),
            status,
            sizes,
            r.random(n),
            strict=True,
        )
        lines = [
            f'{host} - - [{stamp}] "{method} {page} HTTP/1.0" {code} {size}' if whole > 0.0005 else f"{host} - - broken"
            for host, stamp, method, page, code, size, whole in columns
        ]
        write_lines(lines, folder / "weblog" / f"access_{day + 1:02d}.log")
