"""Films and what people think of them: ratings, films, tags (CSV)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from tests.benchmarks.notebooks.data.tables import generator, pick, write_large_csv

RATINGS, MOVIES, USERS, TAGS = 350_000, 3_000, 5_000, 30_000
GENRES = ["Action", "Adventure", "Animation", "Comedy", "Crime", "Drama", "Horror", "Romance", "Sci-Fi", "Thriller"]


def make(folder: Path) -> None:
    """Write the files."""
    r = generator("movies")
    years = r.integers(1950, 2019, MOVIES)
    movies = pd.DataFrame(
        {
            "movieId": np.arange(1, MOVIES + 1),
            "title": [f"Film {number}, The ({year})" for number, year in enumerate(years, 1)],
            "genres": ["|".join(sorted(r.choice(GENRES, r.integers(1, 4), replace=False))) for _ in range(MOVIES)],
        }
    )
    write_large_csv(movies, folder / "movies" / "movies.csv")
    users = (r.pareto(1.5, RATINGS) * 900).astype(int) % USERS + 1
    films = (r.pareto(1.0, RATINGS) * 150).astype(int) % MOVIES + 1
    once = ~pd.DataFrame({"u": users, "m": films}).duplicated().to_numpy()
    quality = r.normal(3.4, 0.6, MOVIES + 1)
    stars = np.clip(np.round((quality[films] + r.normal(0, 0.9, RATINGS)) * 2) / 2, 0.5, 5)
    ratings = pd.DataFrame(
        {"userId": users, "movieId": films, "rating": stars, "timestamp": r.integers(946684800, 1546300800, RATINGS)}
    )[once]
    write_large_csv(ratings, folder / "movies" / "ratings.csv")
    words = [
        "funny",
        "dark",
        "classic",
        "boring",
        "twist",
        "based on a book",
        "visually appealing",
        "slow",
        "space",
        "war",
    ]
    tags = pd.DataFrame(
        {
            "userId": r.integers(1, USERS + 1, TAGS),
            "movieId": (r.pareto(1.0, TAGS) * 150).astype(int) % MOVIES + 1,
            "tag": [
                word.title() if upper else word
                for word, upper in zip(pick(r, words, TAGS), r.random(TAGS) < 0.2, strict=True)
            ],
        }
    )
    write_large_csv(tags, folder / "movies" / "tags.csv")
