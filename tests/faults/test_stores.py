"""Stores with a bit flipped, cut or emptied in any of their files: never other numbers, never a traceback."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import pres
from pres.cli import commands
from pres.data.stream import COLUMNS
from pres.errors import PresError

Mutation = Callable[[Path, random.Random], None]


def flip(path: Path, chance: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


def scramble(path: Path, chance: random.Random) -> None:
    content = bytearray(path.read_bytes())
    start = chance.randrange(len(content))
    content[start : start + 64] = chance.randbytes(len(content[start : start + 64]))
    path.write_bytes(content)


def cut(path: Path, chance: random.Random) -> None:
    path.write_bytes(path.read_bytes()[: chance.randrange(path.stat().st_size)])


def lengthen(path: Path, chance: random.Random) -> None:
    path.write_bytes(path.read_bytes() + chance.randbytes(chance.randrange(1, 99)))


def empty(path: Path, chance: random.Random) -> None:
    path.write_bytes(b"")


def remove(path: Path, chance: random.Random) -> None:
    path.unlink()


def exchange(path: Path, chance: random.Random) -> None:
    """Put another file of the store in its place."""
    other = chance.choice(sorted(one for one in path.parent.iterdir() if one != path))
    path.write_bytes(other.read_bytes())


MUTATIONS: tuple[Mutation, ...] = (flip, flip, flip, cut, scramble, lengthen, empty, remove, exchange)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with everything that one can have."""
    folder = tmp_path_factory.mktemp("stores")
    n = 400
    rows = [f"u{k % 17},i{k * 7 % 23},{(k * 31) % n},{k / 8},{'abc'[k % 3]},{k % 2}" for k in range(n)]
    (folder / "a.csv").write_text("\n".join(["src,dst,t,w,c,y", *rows]))
    named: dict[str, Any] = {"src": "src", "dst": "dst", "t": "t", "x": "w", "categories": "c", "label": "y"}
    with pytest.warns(pres.errors.Notice, match="sorted by time"):
        pres.write_store(
            *(folder / "a.csv", folder / "s"), **named, bipartite=True, node_features=torch.eye(40).tolist()
        )
    return folder / "s"


def mutated(store: Path, place: Path, each: int) -> Iterator[tuple[str, Path]]:
    """Yield copies of a store, in each of which one file was mutated; each mutation of each file so often."""
    for path in sorted(store.iterdir()):
        for number, mutation in enumerate(MUTATIONS * each):
            copy = place / "s"
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(store, copy)
            mutation(copy / path.name, random.Random(f"{path.name} {number}"))
            if not (copy / path.name).exists() or (copy / path.name).read_bytes() != path.read_bytes():
                yield f"{path.name}: {mutation.__name__} {number}", copy


def same(found: pres.EventStream, wanted: pres.EventStream) -> bool:
    columns = [(getattr(found, name), getattr(wanted, name)) for name in COLUMNS]
    assert found.index is not None and wanted.index is not None
    columns += zip(found.index, wanted.index, strict=True)
    facts = [(one.num_nodes, one.num_src, one.directed, one.info.category_levels) for one in (found, wanted)]
    return facts[0] == facts[1] and all(
        (ours is None) == (theirs is None) and (ours is None or torch.equal(ours, theirs))
        for ours, theirs in columns
    )


def test_no_mutation_of_a_store_gives_other_numbers(
    store: Path, tmp_path: Path, long: bool, tell: Callable[[str], None]
) -> None:
    wanted, refused, cases = pres.open_store(store), 0, 0
    assert {path.name for path in store.iterdir()} >= {"x.npy", "row.npy", "node_x.npy", "category-0.parquet"}
    for what, copy in mutated(store, tmp_path, each=2 if long else 1):
        cases += 1
        try:
            found = pres.open_store(copy)
        except PresError as error:
            refused += 1
            assert len(str(error).splitlines()) == 1 and str(copy) in str(error), what
        else:
            assert same(found, wanted), what
    tell(
        f"{cases} mutations of the {len(list(store.iterdir()))} files of a store, {refused} refused, 0 others"
    )
    assert refused >= 0.99 * cases and (not long or cases >= 300)


def test_a_command_says_in_one_line_that_a_store_is_damaged(
    store: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    long: bool,
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    for number, (what, copy) in enumerate(mutated(store, tmp_path, each=1)):
        if long or number % 20 == 0:
            code = commands.run(["diagnose", str(copy), "--json"])
            printed, said = capfd.readouterr()
            assert code == 1 and printed == "" and len(said.splitlines()) == 1, (what, said)
            assert said.startswith("error: ") and "unexpected" not in said.partition("damaged")[0], (
                what,
                said,
            )
