"""Malformed input is refused in one line, soon, and with little memory."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.malformed_inputs import KINDS, names, results

SECONDS, BYTES = 20, 2 << 30  # of processor time, and of resident memory


def test_malformed_input_is_one_line(tmp_path: Path, long: bool, tell: Callable[[str], None]) -> None:
    assert len(KINDS) >= 40
    cases = names(each=25, heavy=4) if long else names(each=1, heavy=1)
    found = results(tmp_path / "case", cases)
    bad = [
        one
        for one in found
        if one["code"] not in (1, 2)
        or len(one["said"]) != 1
        or one["said"][0].startswith("error: unexpected ")
        or one["seconds"] > SECONDS
        or one["peak"] > BYTES
    ]
    slowest, largest = max(one["seconds"] for one in found), max(one["peak"] for one in found)
    tell(
        f"{len(found):,} cases of {len(KINDS)} kinds, {len(bad)} failures; at most {slowest:.1f} s and "
        f"{largest / 2**30:.2f} GiB"
    )
    assert not bad, bad[:9]
    assert [one["case"] for one in found] == cases and (not long or len(cases) >= 1_000)


def test_a_case_that_ends_its_process_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    died = "import os; os.abort()"
    monkeypatch.setattr("tests.faults.malformed_inputs.sys.executable", str(tmp_path / "python"))
    (tmp_path / "python").write_text(f"#!/bin/sh\nexec /usr/bin/env python3 -c '{died}'\n")
    (tmp_path / "python").chmod(0o755)
    (found,) = results(tmp_path / "case", ["too_little:0"])
    assert found["case"] == "too_little:0" and "ended with" in found["code"]
