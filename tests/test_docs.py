"""What README and docs show in Python runs as shown, in order, page by page."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import pres
from tests.waiting import PATIENCE

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL)


WITH_CODE = [page for page in PAGES if python_blocks(page)]


def test_readme_and_tutorial_have_code() -> None:
    assert {"README.md", "tutorial.md"} <= {page.name for page in WITH_CODE}


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.name)
def test_the_code_of_a_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if any("torch_geometric" in block for block in python_blocks(page)):
        pytest.importorskip("torch_geometric", reason="the page is about an extra")
    monkeypatch.chdir(tmp_path)
    rows = [f"u{i % 4},i{i % 3},{i},phone" for i in range(20)]
    (tmp_path / "clicks.csv").write_text("\n".join(["user,item,ts,device", *rows]))
    names: dict[str, object] = {}
    for _ in range(2 if page.name == "README.md" else 1):  # what is tried first can be tried again
        for block in python_blocks(page):
            exec(compile(block.replace("clicks.csv.gz", "clicks.csv"), page.name, "exec"), names)
    assert "events" in names


def test_what_the_tutorial_says_of_the_embedded_stream_is_so() -> None:
    tutorial = (ROOT / "docs" / "tutorial.md").read_text()
    events = pres.load("synthetic")
    assert repr(events) in tutorial
    lost = [load.lost_updates for load in pres.diagnose(events, [200, 3200]).loads.values()]
    assert f"At a batch of 200, {lost[0]:.0%}".replace("%", " %") in tutorial
    assert f"at 3,200, {lost[1]:.0%}".replace("%", " %") in tutorial


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_an_example_runs_as_it_is(example: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(example)], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
