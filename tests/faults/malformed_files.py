"""Files that are no tables: text, compressed and binary ones."""

from __future__ import annotations

import gzip
import io
import random
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import zstandard

from tests.faults.kinds import (
    NAMED,
    diagnose,
    heavy,
    kind,
    lines,
    parquet,
    table,
    text,
)


@kind
def row_with_more_fields(rng: random.Random, folder: Path) -> list[str]:
    rows = lines(table(rng))
    rows[rng.randrange(1, len(rows))] += "," * rng.randrange(1, 9) + "1"
    return diagnose(folder, "a.csv", "\n".join(rows).encode())


@kind
def quote_without_an_end(rng: random.Random, folder: Path) -> list[str]:
    rows = lines(table(rng))
    place = rng.randrange(1, len(rows) - 1)
    rows[place] = '"' + rows[place]
    return diagnose(folder, "a.csv", "\n".join(rows).encode())


@kind
def nul_in_the_header(rng: random.Random, folder: Path) -> list[str]:
    content = bytearray(text(table(rng)))
    content[rng.randrange(8)] = 0
    return diagnose(folder, "a.csv", bytes(content))


@kind
def other_encoding(rng: random.Random, folder: Path) -> list[str]:
    encoding = rng.choice(["utf-16", "utf-16-be", "utf-32", "cp500", "latin-1"])
    columns = table(rng)
    columns["äöü"] = ["ß"] * len(columns["t"])
    content = text(columns).decode().encode(encoding)
    return diagnose(folder, "a.csv", content, *NAMED, "--x", "no")


@kind
def bytes_that_are_no_text(rng: random.Random, folder: Path) -> list[str]:
    rows = text(table(rng)).split(b"\n")
    rows[rng.randrange(1, len(rows))] = (
        rng.choice([b"\xff", b"\xc3(", b"\xed\xa0\x80", b"\xf8\x88"]) + b",i1,9,0,a,1"
    )
    return diagnose(folder, "a.csv", b"\n".join(rows))


@kind
def page_instead_of_a_table(rng: random.Random, folder: Path) -> list[str]:
    pages = [
        b"<!DOCTYPE html>\n<html><body>404 Not Found</body></html>\n",
        b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n",
        b'{"src": 1, "dst": 2, "t": 3}\n{"src": 2, "dst": 3, "t": 4}\n',
        b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n",
        b"Access denied.\n",
        b"---\n- src: 1\n  dst: 2\n",
    ]
    ending = rng.choice([".csv", ".tsv", ".txt"])
    return diagnose(folder, f"a{ending}", rng.choice(pages) * rng.randrange(1, 4), *NAMED)


@kind
def header_that_is_wrong(rng: random.Random, folder: Path) -> list[str]:
    columns = table(rng)
    body = text(columns).split(b"\n", 1)[1]
    header = rng.choice(
        [b"", b"src,src,t,w,kind,y\n", b",,,,,\n", b"a,b,c,d,e,f\n", b"src;dst;t\n", b"1,2,3,4,5,6\n"]
    )
    return diagnose(folder, "a.csv", header + body)


@kind
def too_little(rng: random.Random, folder: Path) -> list[str]:
    columns = table(rng)
    one = {name: values[:1] for name, values in columns.items()}
    same = columns | {"t": ["7"] * len(columns["t"])}
    none: dict[str, list[str]] = {name: [] for name in columns}
    content = rng.choice([b"", b"\n" * 40, b" \n\t\n", text(one), text(same), text(none)])
    return diagnose(folder, "a.csv", content)


@heavy
def too_many_columns(rng: random.Random, folder: Path) -> list[str]:
    names = ["src", "dst", "t", *(f"f{i}" for i in range(rng.choice([10_000, 200_000, 1_000_000])))]
    row = ",".join(["1"] * len(names))
    return diagnose(folder, "a.csv", f"{','.join(names)}\n{row}\n{row}\n".encode())


@heavy
def line_without_an_end(rng: random.Random, folder: Path) -> list[str]:
    return diagnose(folder, "a.csv", bytes([rng.choice(b"a1;, ")]) * (rng.randrange(20, 60) << 20))


@heavy
def compressed_bomb(rng: random.Random, folder: Path) -> list[str]:
    content = b"src,dst,t\n" + b"1,2,3\n" * 15_000_000 if rng.random() < 0.5 else b"\0" * (200 << 20)
    if rng.random() < 0.5:
        return diagnose(folder, "a.csv.gz", gzip.compress(content, 9, mtime=0))
    return diagnose(folder, "a.csv.zst", zstandard.compress(content))


@kind
def broken_compression(rng: random.Random, folder: Path) -> list[str]:
    columns = table(rng)
    columns = {name: values * 60 for name, values in columns.items()}
    if rng.random() < 0.5:
        ending, content = ".csv.gz", bytearray(gzip.compress(text(columns), mtime=0))
    else:
        ending, content = (
            ".csv.zst",
            bytearray(zstandard.ZstdCompressor(write_checksum=True).compress(text(columns))),
        )
    damage = rng.randrange(3)
    if damage == 0:
        content = content[: rng.randrange(20, len(content) - 20)]
    elif damage == 1:
        content[rng.randrange(len(content) // 4, len(content) // 2)] ^= 1 << rng.randrange(8)
        content[-6 if ending.endswith("gz") else -2] ^= 64  # and its checksum
    else:
        content[:2] = rng.randbytes(2)
    return diagnose(folder, f"a{ending}", bytes(content))


@kind
def other_format_than_its_name(rng: random.Random, folder: Path) -> list[str]:
    good = parquet(pl.DataFrame({"src": [1, 2], "dst": [3, 4], "t": [1, 2]}))
    name = rng.choice(["a.csv", "a.npz", "a.npy", "a.tsv", "a.xlsx", "a.json", "a", "a.feather"])
    return diagnose(folder, name, good)


@kind
def damaged_parquet(rng: random.Random, folder: Path) -> list[str]:
    good = bytearray(parquet(pl.DataFrame({k: list(map(str, v)) for k, v in table(rng).items()})))
    damage = rng.randrange(4)
    if damage == 0:
        good[-8:-4] = rng.choice([0, 2**31 - 1, 2**32 - 1, len(good) * 9]).to_bytes(4, "little")
    elif damage == 1:
        good = good[: rng.randrange(4, len(good) - 8)]
    elif damage == 2:
        good[-4:] = b"PARE"
    else:
        good = good[:4] + good[-8:]
    return diagnose(folder, "a.parquet", bytes(good))


def _npy(header: bytes, body: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + body


@kind
def damaged_npy(rng: random.Random, folder: Path) -> list[str]:
    headers = [
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 3)}\n",
        b"{'descr': '|O', 'fortran_order': False, 'shape': (3, 3)}\n",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 3)}\n",
        b"{'descr': '<f8', 'fortran_order': False}\n",
        b"__import__('os').abort()\n",
        b"(" * 60_000 + b"\n",
        b"{'descr': '<c16', 'fortran_order': False, 'shape': (1, 3)}\n",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': ()}\n",
    ]
    return diagnose(folder, "a.npy", _npy(rng.choice(headers), rng.randbytes(64)))


@kind
def damaged_npz(rng: random.Random, folder: Path) -> list[str]:
    file, n = io.BytesIO(), rng.randrange(3, 20)
    shapes: dict[str, tuple[int, ...]] = {"src": (n,), "dst": (n,), "t": (n,)}
    shapes[rng.choice(["src", "dst", "t"])] = rng.choice([(n + 1,), (n, 2, 2), (0,), ()])
    np.savez(file, **{name: np.zeros(shape) for name, shape in shapes.items()})  # type: ignore[arg-type]
    content = bytearray(file.getvalue())
    if rng.random() < 0.5:
        content[rng.randrange(30, 200)] ^= 255
    return diagnose(folder, "a.npz", bytes(content))


@kind
def npz_with_an_object(rng: random.Random, folder: Path) -> list[str]:
    file, n = io.BytesIO(), rng.randrange(3, 9)
    np.savez(
        file,
        src=np.arange(n),
        dst=np.arange(n),
        t=np.array([object()] * n, dtype=object) if n % 2 else np.array([{}] * n),
    )
    return diagnose(folder, "a.npz", file.getvalue())


@kind
def zip_with_a_lie(rng: random.Random, folder: Path) -> list[str]:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(rng.choice(["t.npy", "../t.npy", "t"]), rng.randbytes(50))
    return diagnose(folder, "a.npz", file.getvalue())
