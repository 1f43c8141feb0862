"""What would fill the memory, or take for ever, is refused in one line, and what is only large is read."""

import gzip
import io
import resource
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import zstandard

import pres
from pres.data.tabular import limits
from pres.errors import UnreadableSourceError

NAMED: dict[str, Any] = {"src": "src", "dst": "dst", "t": "t", "bipartite": False}
HEADER = b"src,dst,t\n"


def refused(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(UnreadableSourceError) as caught:
        pres.read(path, **NAMED)
    assert str(path) in str(caught.value) and len(str(caught.value).splitlines()) == 1
    return str(caught.value)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_million_columns_are_refused(tmp_path: Path, ending: str) -> None:
    count = 1_000_000 if ending == ".csv" else 10_001
    names = ["src", "dst", "t", *(f"f{i}" for i in range(count - 3))]
    if ending == ".csv":
        content = (",".join(names) + "\n" + ",".join(["1"] * count) + "\n").encode()
    else:
        file = io.BytesIO()
        pl.DataFrame({name: [1, 2] for name in names}).write_parquet(file)
        content = file.getvalue()
    assert f"has {count:,} columns, and at most 10,000 are read" in refused(tmp_path / f"a{ending}", content)


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    rows, line = HEADER + b"1,2,3\n" * 20_000_000, b"1" * (100 << 20)
    said = "unpacks to more than 400 times its size, as no table of events does"
    assert said in refused(tmp_path / "a.csv.gz", gzip.compress(rows, mtime=0))
    assert said in refused(tmp_path / "a.csv.zst", zstandard.compress(rows))
    assert "has no line break in its first 16 MiB" in refused(
        tmp_path / "b.csv.gz", gzip.compress(line, mtime=0)
    )
    unsized = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    assert said in refused(tmp_path / "b.csv.zst", unsized.compress(line) + unsized.flush())
    assert "has no line break in its first 16 MiB" in refused(tmp_path / "b.csv", line)


def test_blocks_of_a_frame_are_counted_without_unpacking(tmp_path: Path) -> None:
    path, content = tmp_path / "a.zst", np.random.default_rng(0).integers(0, 9, 10 * limits._ZST_BLOCK)
    for sized in (True, False):
        compressor = zstandard.ZstdCompressor(write_content_size=sized, level=1)
        path.write_bytes(compressor.compress(content.astype(np.uint8).tobytes()))
        assert limits._zst_blocks(path) == 10
    path.write_bytes(path.read_bytes()[:4])
    assert limits._zst_blocks(path) == 0


def test_what_does_not_fit_the_memory_is_said_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1 << 20, 1 << 20))
    rows = 100_000
    frame = pl.DataFrame({"src": range(rows), "dst": range(rows), "t": range(rows)})
    frame.write_parquet(tmp_path / "a.parquet")
    frame.write_csv(tmp_path / "a.csv")
    np.savez_compressed(tmp_path / "a.npz", src=range(rows), dst=range(rows), t=range(rows))
    for ending in (".parquet", ".csv", ".npz"):
        with pytest.raises(UnreadableSourceError, match=r"read at once, they take .*`pres store` reads it"):
            pres.read(tmp_path / f"a{ending}", **NAMED)
    pres.write_store(tmp_path / "a.csv", tmp_path / "s", **NAMED)  # which reads it in parts
    assert len(pres.open_store(tmp_path / "s")) == rows
