"""The register of kinds of malformed input, and what they are made of.

Each kind is a function of random numbers that fills a folder and returns the arguments of one command, which
must be refused. The files are made by their own writers here, from tables made at random.
"""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from pathlib import Path

import polars as pl

Kind = Callable[[random.Random, Path], list[str]]
KINDS: dict[str, Kind] = {}
HEAVY: set[str] = set()  # kinds of which few cases are made: a case takes a second or more
NAMED = ["--src", "src", "--dst", "dst", "--time", "t"]


def kind(made: Kind) -> Kind:
    """Take a kind in."""
    KINDS[made.__name__] = made
    return made


def heavy(made: Kind) -> Kind:
    """Take a kind in of which few cases are made."""
    HEAVY.add(made.__name__)
    return kind(made)


def table(rng: random.Random, **columns: list[str]) -> dict[str, list[str]]:
    """Return the columns of a valid log of some 20 to 90 rows, as text."""
    n = rng.randrange(20, 90)
    plain = {
        "src": [f"{rng.choice('uv')}{rng.randrange(9)}" for _ in range(n)],
        "dst": [f"i{rng.randrange(12)}" for _ in range(n)],
        "t": [str(3 * k + rng.randrange(3)) for k in range(n)],
        "w": [f"{rng.gauss(0, 1):.4f}" for _ in range(n)],
        "kind": [rng.choice(["a", "b", "c"]) for _ in range(n)],
        "y": [str(rng.randrange(2)) for _ in range(n)],
    }
    return plain | columns


def lines(columns: dict[str, list[str]], mark: str = ",") -> list[str]:
    return [mark.join(row) for row in [list(columns), *zip(*columns.values(), strict=True)]]


def text(columns: dict[str, list[str]], mark: str = ",") -> bytes:
    return ("\n".join(lines(columns, mark)) + "\n").encode()


def diagnose(folder: Path, name: str, content: bytes, *options: str) -> list[str]:
    (folder / name).write_bytes(content)
    return ["diagnose", name, *(options or NAMED)]


def with_cell(rng: random.Random, column: str, cells: list[str]) -> bytes:
    """Return the text of a table with one cell replaced by one of these."""
    columns = table(rng)
    columns[column][rng.randrange(len(columns[column]))] = rng.choice(cells)
    return text(columns)


def parquet(frame: pl.DataFrame) -> bytes:
    file = io.BytesIO()
    frame.write_parquet(file)
    return file.getvalue()


def with_values(rng: random.Random, column: str, values: list[pl.Series]) -> bytes:
    """Return the Parquet file of a table with one column replaced by one of these, repeated."""
    n, chosen = rng.randrange(5, 30), rng.choice(values)
    columns = {"src": [1, 2] * n, "dst": [3, 4] * n, "t": list(range(2 * n)), "w": [0.5] * (2 * n)}
    frame = pl.DataFrame(columns)
    return parquet(frame.with_columns(pl.concat([chosen] * (2 * n)).head(2 * n).alias(column)))
