"""An encyclopaedia: articles (text, one a line) and the links between them (CSV)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from tests.benchmarks.notebooks.data.tables import generator, write_large_csv, write_lines

ARTICLES, WORDS, LINKS = 8_000, 8_000, 200_000
COMMON = "the of and to in a is that for it as was with be by on not he his but at are this have from or had an".split()  # noqa: SIM905
SYLLABLES = "ba co di fu ga ha je ki lo mu na po qui ra so ti vu xe ya zo".split()  # noqa: SIM905


def make(folder: Path) -> None:
    """Write the files."""
    r = generator("articles")
    shapes = r.integers(0, len(SYLLABLES), (WORDS, 4))
    lengths = r.integers(2, 5, WORDS)
    made = ["".join(SYLLABLES[k] for k in shape[:n]) for shape, n in zip(shapes, lengths, strict=True)]
    words = np.array(COMMON + made, dtype=object)
    lines = []
    for number in range(ARTICLES):
        n = int(r.integers(60, 220))
        chosen = words[(r.pareto(0.8, n) * 20).astype(int) % len(words)]
        text = " ".join(chosen)
        sentences = [part.strip().capitalize() for part in text.replace(" of ", ". Of ").split(".") if part.strip()]
        lines.append(f"{number}\tArticle {number}\t" + ". ".join(sentences) + f", {1800 + number % 220}.")
    write_lines(lines, folder / "articles" / "articles.txt")
    links = pd.DataFrame(
        {
            "src": r.integers(0, ARTICLES, LINKS),
            "dst": (r.pareto(1.0, LINKS) * 400).astype(int) % ARTICLES,
            "section": r.integers(0, 12, LINKS),
        }
    )
    write_large_csv(links, folder / "articles" / "links.csv")
