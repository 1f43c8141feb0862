"""Files that nobody wants to be given: valid ones, broken in every way a disk or a person can break them."""

import gzip
import io
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
import zstandard

ROWS = 60
COLUMNS = ("src", "dst", "t", "f0", "label")
NAMED: dict[str, Any] = {
    "src": "src",
    "dst": "dst",
    "t": "t",
    "x": ["f0"],
    "label": "label",
    "bipartite": False,
}
_CELLS = ("", " ", "nan", "inf", "-inf", "NULL", "soon", "1e999", "99999999999999999999", "0x1F", "1,5", "é",
          "\0", '"', "''", "2024-13-45", "1_000", "--1", "∞", "1.5.2", "x" * 5000)  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One file, and how it is read."""

    what: str
    ending: str
    content: bytes
    options: dict[str, Any] = field(default_factory=lambda: dict(NAMED))


def cases(seed: int) -> Iterator[Case]:
    """Yield some five hundred malformed files."""
    rng = random.Random(seed)
    yield from _bad_cells()
    yield from _bad_lines(rng)
    yield from _bad_bytes(rng)
    yield from _bad_tables()
    yield from _wrong_endings()
    yield from _random_bytes(rng)


def rows() -> list[list[str]]:
    """Return the cells of a valid table, without the header."""
    return [[str(k % 7), str((k * 5) % 11), str(k // 2), f"{k / 8}", str(k % 2)] for k in range(ROWS)]


def text(cells: list[list[str]], separator: str = ",", header: tuple[str, ...] = COLUMNS) -> bytes:
    return "\n".join(separator.join(row) for row in [list(header), *cells]).encode() + b"\n"


def valid() -> dict[str, bytes]:
    """Return the same table in every format, by ending."""
    numbers = {name: np.array([float(row[i]) for row in rows()]) for i, name in enumerate(COLUMNS)}
    numbers |= {name: numbers[name].astype(np.int64) for name in ("src", "dst", "label")}
    parquet, npz, npy = io.BytesIO(), io.BytesIO(), io.BytesIO()
    pl.DataFrame(numbers).write_parquet(parquet)
    np.savez_compressed(npz, **numbers)  # type: ignore[arg-type]
    records = np.empty(ROWS, dtype=[(name, values.dtype) for name, values in numbers.items()])
    for name, values in numbers.items():
        records[name] = values
    np.save(npy, records)
    return {
        ".csv": text(rows()),
        ".tsv": text(rows(), "\t"),
        ".csv.gz": gzip.compress(text(rows()), mtime=0),
        ".csv.zst": zstandard.compress(text(rows())),
        ".parquet": parquet.getvalue(),
        ".npz": npz.getvalue(),
        ".npy": npy.getvalue(),
    }


def _bad_cells() -> Iterator[Case]:
    """One cell that cannot be used, in each column, in the first, a middle and the last row."""
    for place, name in enumerate(COLUMNS):
        for cell in _CELLS:
            row = (0, ROWS // 2, ROWS - 1)[len(cell) % 3]
            broken = rows()
            broken[row][place] = cell
            yield Case(f"{cell[:10]!r} in {name}, row {row + 1}", ".csv", text(broken))
    for cell in ("-1", "99999999999", "u7", "1.5"):
        broken = rows()
        broken[3][0] = cell
        yield Case(f"{cell} among dense ids", ".csv", text(broken), NAMED | {"ids": "dense"})


def _bad_lines(rng: random.Random) -> Iterator[Case]:
    """Rows cut, lengthened, doubled, torn by quotes and by other separators."""
    breaks: dict[str, Callable[[bytes], bytes]] = {
        "too many fields": lambda line: line + b",1,2",
        "too few fields": lambda line: line.rsplit(b",", 3)[0],
        "an open quote": lambda line: b'"' + line,
        "a quote in the middle": lambda line: line.replace(b",", b',"', 1),
        "another separator": lambda line: line.replace(b",", b";"),
        "a tab": lambda line: line.replace(b",", b"\t", 2),
        "a blank line": lambda line: b"\n" + line,
        "a comment": lambda line: b"# " + line,
        "a second header": lambda line: ",".join(COLUMNS).encode() + b"\n" + line,
        "a very long line": lambda line: line + b"9" * 200_000,
        "NUL bytes": lambda line: line.replace(b",", b"\0"),
        "bad UTF-8": lambda line: b"\xff\xfe" + line,
        "a lone return": lambda line: line.replace(b",", b"\r", 1),
    }
    for what, broken in breaks.items():
        for _ in range(4):
            lines = text(rows()).split(b"\n")
            place = rng.randrange(len(lines) - 1)
            lines[place] = broken(lines[place])
            yield Case(f"{what} in line {place + 1}", ".csv", b"\n".join(lines))
    plain = text(rows()).decode()
    for encoding in ("utf-16", "utf-16-le", "utf-32", "cp037"):
        yield Case(f"encoded in {encoding}", ".csv", plain.encode(encoding))


def _bad_bytes(rng: random.Random) -> Iterator[Case]:
    """Every format cut short, with bytes flipped, dropped, inserted and overwritten."""
    for ending, content in valid().items():
        for share in (0.02, 0.2, 0.5, 0.8, 0.97):
            yield Case(f"cut to {share:.0%}", ending, content[: max(1, int(len(content) * share))])
        yield Case("without its last byte", ending, content[:-1])
        yield Case("without its first bytes", ending, content[3:])
        yield Case("twice", ending, content + content)
        for _ in range(12):
            flipped = bytearray(content)
            for _ in range(rng.choice((1, 3, 20))):
                flipped[rng.randrange(len(flipped))] ^= 1 << rng.randrange(8)
            yield Case("flipped bits", ending, bytes(flipped))
        for _ in range(5):
            start = rng.randrange(len(content) - 40)
            yield Case("a hole", ending, content[:start] + content[start + 40 :])
            yield Case("zeros", ending, content[:start] + bytes(40) + content[start + 40 :])
            yield Case("noise", ending, content[:start] + rng.randbytes(40) + content[start + 40 :])


def _bad_tables() -> Iterator[Case]:
    """Tables that are whole, but not tables of events."""
    lines = text(rows())
    headless = lines.split(b"\n", 1)[1]
    one, same_time = rows()[:1], [[*row[:2], "5", *row[3:]] for row in rows()]
    for ending in (".csv", ".tsv", ".txt", ".csv.gz", ".csv.zst", ".parquet", ".npz", ".npy"):
        yield Case("nothing", ending, b"")
        yield Case("a line break", ending, b"\n")
        yield Case("compressed nothing", ending, gzip.compress(b"", mtime=0))
    for what, content in {
        "a header only": text([]),
        "blank lines only": b"\n" * 50,
        "no header": headless,
        "a single event": text(one),
        "all at one time": text(same_time),
        "other columns": text(rows(), header=("a", "b", "c", "d", "e")),
        "a column twice": text(rows(), header=("src", "dst", "t", "f0", "f0")),
        "nameless columns": text(rows(), header=("", "", "", "", "")),
        "a shorter header": text(rows(), header=("src", "dst", "t")),
        "a name with a line break": text(rows(), header=('"s\nrc"', "dst", "t", "f0", "label")),
        "a name without an end": text(rows(), header=("x" * 100_000, "dst", "t", "f0", "label")),
    }.items():
        yield Case(what, ".csv", content)
        yield Case(what, ".csv.gz", gzip.compress(content, mtime=0))
        yield Case(f"{what}, columns to be guessed", ".csv", content, {})


def _wrong_endings() -> Iterator[Case]:
    """Each format under the name of each other, and under names that mean nothing."""
    for ending, content in valid().items():
        for other in (".csv", ".csv.gz", ".csv.zst", ".parquet", ".npz", ".npy", ".xlsx", ".json", ""):
            if other != ending:
                yield Case(f"{ending} called '{other}'", other, content)


def _random_bytes(rng: random.Random) -> Iterator[Case]:
    magic = {
        ".parquet": b"PAR1",
        ".npy": b"\x93NUMPY\x01\x00",
        ".npz": b"PK\x03\x04",
        ".csv.gz": b"\x1f\x8b\x08",
    }
    for ending in (".csv", ".csv.gz", ".csv.zst", ".parquet", ".npz", ".npy"):
        for size in (1, 7, 300, 5000):
            noise = rng.randbytes(size)
            yield Case(f"{size} random bytes", ending, noise)
            yield Case(f"{size} random bytes behind a signature", ending, magic.get(ending, b"") + noise)
