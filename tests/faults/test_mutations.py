"""Files of runs that change on the disk: what is read is what was written, or is refused in one line."""

from __future__ import annotations

import random
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import pres
from pres.errors import Notice, PresError
from pres.paper.report import contents
from pres.training import folder
from pres.training.config import read_config
from pres.training.opened import open_run
from tests.faults.child import Case, draw_nothing, run, train
from tests.faults.outcome import FILES, bits, outcome

Use = Callable[[Path], Any]


@pytest.fixture(scope="module", autouse=True)
def no_pictures() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folder, "draw_learning_curve", draw_nothing)
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("finished") / "run"
    train(Case(str(out)))
    return out


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was killed in its second epoch, with all states that there can be."""
    place = tmp_path_factory.mktemp("killed")
    case = Case(str(place / "run"), batch=6, options={"checkpoint_minutes": 0})
    assert run(case, place / "told")[0] < 0
    assert (place / "run" / "last-previous.safetensors").exists()
    return place / "run"


def opened(out: Path) -> Any:
    """The weights that every command uses, and the events."""
    found = open_run(out)
    return bits(found.model.state_dict()), found.events.fingerprint()


def reported(out: Path) -> Any:
    """What a report tells, but for pictures, which are no numbers."""
    found = contents.gather(out)
    return found.runs, [page.epochs for page in found.pages], [told.settings for told in found.told]


USES: dict[str, Use] = {
    "load": lambda out: outcome(pres.load_run(out)),
    "open": opened,
    "report": reported,
    "settings": lambda out: read_config(out / "config.json"),
}


def resumed(out: Path) -> Any:
    return outcome(train(Case(str(out), resume=True)))


def flipped(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content)
    if changed:
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def zeroed(content: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(content) + 1)
    return content[:start] + bytes(len(content[start : start + 512])) + content[start + 512 :]


def cut(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content) or 1)]


MUTATIONS: dict[str, Callable[[bytes, random.Random], bytes | None]] = {
    "flipped": flipped,
    "cut": cut,
    "emptied": lambda content, chance: b"",
    "zeroed": zeroed,
    "doubled": lambda content, chance: content + content,
    "gone": lambda content, chance: None,
}


def of(out: Path, use: Use) -> Any:
    """What comes of using a run, or the line that refuses it."""
    with warnings.catch_warnings(action="ignore", category=Notice):
        try:
            return use(out)
        except PresError as error:
            assert "\n" not in str(error)
            return str(error)


@pytest.mark.parametrize("which", ["finished", "killed"])
def test_no_changed_file_of_a_run_gives_other_numbers(
    which: str, request: pytest.FixtureRequest, tmp_path: Path, long: bool, tell: Callable[[str], None]
) -> None:
    whole: Path = request.getfixturevalue(which)
    uses = USES if which == "finished" else {"resume": resumed}
    shutil.copytree(whole, tmp_path / "whole" / "run")
    expected = {name: of(tmp_path / "whole" / "run", use) for name, use in uses.items()}
    assert not any(isinstance(found, str) for found in expected.values())
    chance, refused, number = random.Random(which), 0, 0
    names = sorted(path.name for path in whole.iterdir())
    assert set(names) <= FILES
    wanted = 400 if long else 3 * len(names)
    place = tmp_path / "run"
    while number < wanted:
        name, how = names[number % len(names)], list(MUTATIONS)[number // len(names) % len(MUTATIONS)]
        shutil.copytree(whole, place)
        damage(place / name, how, chance)
        for use, work in uses.items():
            found = of(place, work)
            if isinstance(found, str):
                refused += 1
            else:
                assert found == expected[use], (name, how, use)
        shutil.rmtree(place)
        number += 1
    tell(f"{number} mutations, {refused} of {number * len(uses)} uses refused")
    assert refused > number // 5


@pytest.mark.parametrize("how", ["flipped", "emptied", "gone"])
@pytest.mark.parametrize(
    ("which", "name", "says"),
    [
        ("killed", "last.safetensors", "The run goes on from the state before it, at epoch 2, batch 2"),
        ("finished", "last.safetensors", "The run goes on from the state before it, at epoch 2, batch 1"),
        ("finished", "best.safetensors", "The run goes on from the state before it, at epoch 2, batch 1"),
        ("finished", "run.json", "The test is done again"),
    ],
)
def test_a_damaged_file_is_said_and_the_run_goes_on_to_the_same_end(
    which: str, name: str, says: str, how: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    shutil.copytree(request.getfixturevalue(which), tmp_path / "run")
    expected = outcome(pres.load_run(request.getfixturevalue("finished")))
    damage(tmp_path / "run" / name, how)
    if (name, how) == ("run.json", "gone"):  # then it was never finished
        assert resumed(tmp_path / "run") == expected
        return
    with pytest.warns(Notice, match=rf"{name}.*{says}"):
        assert resumed(tmp_path / "run") == expected
    assert outcome(pres.load_run(tmp_path / "run")) == expected


def test_a_best_state_that_no_older_state_does_without_is_refused(killed: Path, tmp_path: Path) -> None:
    shutil.copytree(killed, tmp_path / "run")
    damage(tmp_path / "run" / "best.safetensors", "flipped")
    with pytest.raises(PresError, match="The state before it is of no use either: train anew"):
        resumed(tmp_path / "run")


def damage(path: Path, how: str, chance: random.Random | None = None) -> None:
    changed = MUTATIONS[how](path.read_bytes(), chance or random.Random(0))
    if changed is None:
        path.unlink()
    else:
        path.write_bytes(changed)
