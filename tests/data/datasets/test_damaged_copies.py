"""Damaged copies of every public layout: each load gives a stream or one clear line, and leaves no mess."""

import gzip
import random
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from pres.data.datasets.load import load
from pres.data.datasets.registry import Counts
from pres.data.stream import EventStream
from pres.errors import PresError
from tests.data.datasets.test_renet import ICEWS, PARTS
from tests.data.datasets.test_snap import TEXT
from tests.data.datasets.test_tgb import COIN, COMMENT, FLIGHT, REVIEW
from tests.data.datasets.test_tgl import GDELT, write_gdelt
from tests.data.datasets.toy import COUNTS, DST, LABEL, SRC, Publish, T, X, write_dgb, write_jodie, write_tgl

COPIES = 30  # of each layout


def write_parquet(data: Path) -> None:
    pl.DataFrame({"src": SRC, "dst": DST, "t": T, "label": LABEL}).write_parquet(data / "wikipedia.parquet")
    features = pl.DataFrame(X, schema={"f0": pl.Float32, "f1": pl.Float32}, orient="row")
    features.write_parquet(data / "wikipedia_features.parquet")


def write_parts(folder: Path) -> None:
    folder.mkdir()
    for part, text in PARTS.items():
        (folder / f"{part}.txt").write_text(text)


def write_zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("tgbl-coin-v2/tgbl-coin_edgelist_v2.csv", COIN)


LAYOUTS: dict[str, tuple[str, Counts, Callable[[Path], object]]] = {
    "jodie": ("wikipedia", COUNTS, lambda data: write_jodie(data / "wikipedia.csv")),
    "tgl": ("wikipedia", COUNTS, lambda data: write_tgl(data / "WIKI")),
    "tgl with node features": ("gdelt", GDELT, lambda data: write_gdelt(data / "GDELT")),
    "tgb": (
        "tgbl-review",
        Counts(3, 3, edge_features=(1,)),
        lambda data: (data / "tgbl-review_edgelist_v2.csv").write_text(REVIEW),
    ),
    "tgb comments": (
        "tgbl-comment",
        Counts(2, 2, edge_features=(2,)),
        lambda data: (data / "tgbl-comment_edgelist.csv").write_text(COMMENT),
    ),
    "tgb flights": (
        "tgbl-flight",
        Counts(2, 2, edge_features=(16,), node_features=20),
        lambda data: (data / "tgbl-flight_edgelist_v2.csv").write_text(FLIGHT),
    ),
    "tgb zip": (
        "tgbl-coin",
        Counts(3, 3, edge_features=(1,)),
        lambda data: write_zip(data / "tgbl-coin-v2.zip"),
    ),
    "dgb": ("wikipedia", COUNTS, lambda data: write_dgb(data / "wikipedia", "wikipedia")),
    "renet": ("icews18", ICEWS, lambda data: write_parts(data / "ICEWS18")),
    "snap": ("uci", Counts(3, 4), lambda data: (data / "CollegeMsg.txt").write_text(TEXT)),
    "snap gz": (
        "uci",
        Counts(3, 4),
        lambda data: (data / "CollegeMsg.txt.gz").write_bytes(gzip.compress(TEXT.encode(), mtime=0)),
    ),
    "parquet": ("wikipedia", COUNTS, write_parquet),
}


def cut_short(path: Path, chance: random.Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: chance.randrange(len(content))])


def flip(path: Path, chance: random.Random) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(chance.choice([1, 1, 2, 20])):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(bytes(content))


def insert(path: Path, chance: random.Random) -> None:
    content = path.read_bytes()
    place = chance.randrange(len(content))
    junk = chance.choice(
        [b"\n", b",", b'"', b"\xff\xfe", b"\0" * 9, b"-", b"e999", b"nan", b"99999999999999999999"]
    )
    path.write_bytes(content[:place] + junk + content[place:])


def remove(path: Path, chance: random.Random) -> None:
    path.unlink()


def narrow_or_widen(path: Path, chance: random.Random) -> None:
    """Give a table one column more or less, in the way of its format."""
    less = chance.random() < 0.5
    if path.suffix == ".npy":
        values = np.load(path)
        np.save(path, values[:, :-1] if less else np.hstack([values, values]))
    elif path.suffix == ".pt":
        tensor = torch.load(path, weights_only=True)
        torch.save(tensor[:, :-1] if less else torch.hstack([tensor, tensor]), path)
    elif path.suffix == ".parquet":
        frame = pl.read_parquet(path)
        frame = frame[:, :-1] if less else frame.with_columns(frame.to_series(0).alias("more"))
        frame.write_parquet(path)
    elif path.suffix in (".csv", ".txt"):
        mark = next(mark for mark in ("\t", ",", " ") if mark in path.read_text())
        lines = path.read_text().splitlines()
        k = chance.randrange(len(lines))
        for i in range(len(lines)) if chance.random() < 0.5 else [k]:
            lines[i] = lines[i].rpartition(mark)[0] if less else f"{lines[i]}{mark}7"
        path.write_text("\n".join(lines) + "\n")
    else:
        flip(path, chance)


DAMAGES = (cut_short, flip, insert, remove, narrow_or_widen)


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.filterwarnings("ignore::pres.errors.Notice")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_damaged_copy_gives_a_stream_or_one_line(
    layout: str, data: Path, cache: Path, tmp_path: Path, publish: Publish, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, counts, write = LAYOUTS[layout]
    publish(name, counts, parts={})
    write(data)
    whole = contents(data)
    unpacking = tmp_path / "unpacking"
    unpacking.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(unpacking))
    chance = random.Random(layout)  # the same damages every time
    refused = 0
    for number in range(COPIES):
        for path, content in whole.items():
            path.write_bytes(content)
        victim = chance.choice(sorted(whole))
        damage = DAMAGES[number % len(DAMAGES)]
        damage(victim, chance)
        before = contents(data)
        try:
            events = load(name, download=False, features=number % 4 > 0)
            assert isinstance(events, EventStream) and len(events) == counts.events
        except PresError as error:
            refused += 1
            assert str(error) and "\n" not in str(error)
        assert contents(data) == before, (damage, victim)
        assert not list(unpacking.iterdir())
        if cache.exists():  # it holds whole converted copies and nothing else
            assert [folder.name for folder in cache.iterdir()] == ["converted"]
            for copy in (cache / "converted").iterdir():
                assert copy.name.startswith(f"{name}-") and copy.suffix == ".safetensors"
    assert refused >= COPIES // 4
