"""Runs that are killed at every step of their storage and at random: they go on, and end bit-identical."""

from __future__ import annotations

import dataclasses
import itertools
import random
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from pres.storage import take
from pres.training.folder import RunFolder
from tests.faults.child import INTERRUPTED, REFUSED, Case, run
from tests.faults.outcome import again, end

Tell = Callable[[str], None]
SIGNALS = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)
FEWEST = 30  # steps of a run that goes on, if only its test is left
KINDS = [
    {"model": model, "smoothing": smoothing, "scan": scan}
    for scan, smoothing, model in itertools.product((False, True), (False, True), ("tgn", "jodie", "apan"))
]


def killed(case: Case, told: Path) -> bool:
    """Whether a process that trains was ended by the case's signal, of which it says nothing else."""
    code, said = run(case, told)
    assert code in (0, -case.signal, INTERRUPTED), (case, code, said)
    assert code != INTERRUPTED or case.signal != signal.SIGKILL
    return code != 0


def test_a_run_killed_at_any_step_of_its_storage_ends_bit_identical(
    tmp_path: Path, long: bool, tell: Tell
) -> None:
    told = tmp_path / "told"
    whole = Case(str(tmp_path / "whole" / "run"))
    code, said = run(whole, told)
    assert code == 0
    steps, expected = said.split()[-2], end(whole, told)
    assert len(steps) >= 50
    kills = 0
    for number in SIGNALS if long else SIGNALS[:1]:
        for step in range(1, len(steps) + 1):
            if not long and steps[max(step - 2, 0)] == "w":  # a wait for the disk changes nothing there
                continue
            case = Case(str(tmp_path / f"{number}-{step}" / "run"), step=step, signal=number)
            kills += killed(case, told)
            if long and not RunFolder(case.out).finished:  # twice; to go on has fewer steps
                kills += killed(again(dataclasses.replace(case, step=1 + step % FEWEST)), told)
            assert end(dataclasses.replace(case, step=None), told) == expected, case
    tell(f"{kills} kills at {len(steps)} steps of storage")
    assert kills >= len(steps.replace("w", ""))


def test_a_killed_run_is_not_written_over_and_says_how_it_goes_on(tmp_path: Path) -> None:
    told = tmp_path / "told"
    case = Case(str(tmp_path / "a" / "run"), batch=2)
    assert killed(case, told)
    code, said = run(dataclasses.replace(case, batch=None), told)
    assert code == REFUSED and "not finished. Go on with 'pres train --resume" in said


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(map(str, kind.values())))
def test_a_run_killed_at_random_ends_bit_identical(
    kind: dict[str, object], tmp_path: Path, long: bool, tell: Tell
) -> None:
    if not long and kind not in (KINDS[3], KINDS[7]):  # TGN with PRES, JODIE with the preset
        pytest.skip("with --long")
    told, kills, wanted = tmp_path / "told", 0, 20 if long else 3
    whole = Case(str(tmp_path / "whole" / "run"), **kind)  # type: ignore[arg-type]
    assert run(whole, told)[0] == 0
    expected = end(whole, told)
    chance = random.Random(str(kind))
    for number in itertools.count():
        case = dataclasses.replace(whole, out=str(tmp_path / str(number) / "run"))
        while not RunFolder(case.out).finished and kills < wanted:
            step, batch = chance.randint(1, 150), chance.randint(1, 6)
            by_step, minutes = chance.random() < 0.5, chance.choice([0, 10])
            killing = dataclasses.replace(
                case,
                step=step if by_step else None,
                batch=None if by_step else batch,
                signal=chance.choice(SIGNALS),
                options={"checkpoint_minutes": minutes},
            )
            kills += killed(again(killing), told)
        assert end(case, told) == expected, case
        if kills >= wanted:
            break
    tell(f"{kills} kills of {number + 1} runs")


def test_one_process_writes_a_run(tmp_path: Path) -> None:
    told = tmp_path / "told"
    case = Case(str(tmp_path / "a" / "run"), batch=2)
    assert killed(case, told)
    lock = take(Path(case.out) / ".lock", Path(case.out))
    code, said = run(dataclasses.replace(case, resume=True, batch=None), told)
    assert code == REFUSED and "is being written by process" in said
    lock.release()
    end(dataclasses.replace(case, batch=None), told)
