"""The script that follows the calls of a step counts them; the architecture page names their files."""

import re
from pathlib import Path

import pytest

import pres
from benchmarks.entered import CASES, entered, step_of
from pres.errors import nearest
from pres.sampling import TemporalBatches

PAGE = (Path(__file__).parent.parent / "docs/architecture.md").read_text()
STEP: str = re.findall(r"<!-- step -->\n(.*?)<!-- end -->", PAGE, flags=re.DOTALL)[0]
READ: str = STEP.partition("\n\n")[0]
SCANNED: str = STEP.partition("\n\n")[2].partition("A step also enters")[0]
ALSO: str = STEP.partition("A step also enters")[2]


def files_in(text: str) -> list[str]:
    return re.findall(r"`([a-z_]+/?[a-z_]+\.py)`", text)


def test_functions_are_counted_once_and_lambdas_not_at_all() -> None:
    def twice() -> None:
        for name in ("adm", "mun"):
            nearest(name, ["adam", "muon"])
        (lambda: None)()

    assert entered(twice) == {"errors.py": ["nearest"]}


def test_files_come_in_the_order_in_which_they_are_entered() -> None:
    events = pres.load("synthetic", num_events=200)
    found = entered(lambda: list(TemporalBatches(events, 100)))
    assert next(iter(found)) == "sampling/batches.py" and "data/stream.py" in found
    assert found["sampling/batches.py"][0] == "TemporalBatches.__init__"


@pytest.mark.parametrize("case", CASES)
def test_the_architecture_page_names_every_file_that_a_step_enters(case: str) -> None:
    found = set(entered(step_of(case.split()[0], **CASES[case])))
    assert found <= {*files_in(READ), *files_in(SCANNED), *files_in(ALSO)}
    if case == "tgn":
        assert len(files_in(READ)) == 10 and set(files_in(READ)) <= found
    else:
        instead = {row.split("|")[2].strip(" `") for row in SCANNED.splitlines() if row.startswith("| ")}
        assert instead - {"file"} <= found


def test_the_ten_files_of_a_step_hold_few_functions() -> None:
    """The bound is there to come down: a step is to be read, not searched."""
    found = entered(step_of("tgn"))
    assert sum(len(found[file]) for file in files_in(READ)) <= 47


@pytest.mark.parametrize(("case", "files", "functions"), [("tgn", 19, 94), ("tgn scan", 20, 104)])
def test_a_step_enters_no_more_files_and_functions_than_now(case: str, files: int, functions: int) -> None:
    found = entered(step_of(case.split()[0], **CASES[case]))
    assert len(found) <= files and sum(map(len, found.values())) <= functions
