"""What README and docs show in Python runs as shown, in order, page by page."""

import inspect
import pydoc
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, MutableMapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import pres
from pres.cli.commands import app
from pres.data.datasets.registry import DATASETS
from pres.models.registry import MODELS
from pres.smoothing import SmoothingSettings
from pres.training import FitConfig
from tests.waiting import PATIENCE

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL)


@pytest.fixture
def registries_as_they_were() -> Iterator[None]:
    """Take out again what a page registers."""
    registries: list[MutableMapping[str, Any]] = [DATASETS, MODELS, SmoothingSettings.known]  # type: ignore[list-item]
    before = [dict(registry) for registry in registries]
    yield
    for registry, entries in zip(registries, before, strict=True):
        registry.clear()
        registry.update(entries)


WITH_CODE = [page for page in PAGES if python_blocks(page)]


def test_readme_and_tutorial_have_code() -> None:
    assert {"README.md", "tutorial.md"} <= {page.name for page in WITH_CODE}


@pytest.mark.usefixtures("registries_as_they_were")
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


def run_example(example: Path, *arguments: str) -> str:
    """Return what an example prints."""
    command = [sys.executable, str(example), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


EXAMPLES = [path for path in sorted((ROOT / "examples").glob("*.py")) if path.name != "demo.py"]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs_as_it_is(example: Path) -> None:
    assert run_example(example).strip()


def test_the_demo_is_one_table_three_sentences_and_a_picture(tmp_path: Path) -> None:
    printed = run_example(
        ROOT / "examples/demo.py", "--out", str(tmp_path), "--events", "12000", "--epochs", "1"
    )
    lines = printed.splitlines()
    assert len(lines) <= 25
    heads = ("EdgeBank", "popularity", "JODIE ", "JODIE-scan")
    rows = [[cell.strip() for cell in re.split(r"\s{2,}", line)] for line in lines if line.startswith(heads)]
    assert [row[:2] for row in rows] == [
        ["EdgeBank (no memory)", "-"],
        ["popularity (no memory)", "-"],
        ["JODIE", "200"],
        ["JODIE", "200"],  # the preset's batch for so short a stream
        ["JODIE-scan, preset large", "200"],
    ]
    assert all(0.3 < float(row[2]) < 1 for row in rows)  # AP
    assert all(float(row[3]) > 0 and float(row[4]) > 0 for row in rows[2:])  # seconds, speed-up
    sentences = [line for line in lines if line.startswith(("Memory:", "Large batch:", "Preset:"))]
    assert len(sentences) == 3 and all(line.endswith(".") for line in sentences)
    gain = 100 * (float(rows[2][2]) - float(rows[1][2]))
    said = re.search(r"b = 200 is ([+-][\d.]+) points", sentences[0])
    assert said is not None and float(said[1]) == pytest.approx(gain, abs=0.2)
    picture = tmp_path / "demo.png"
    assert str(picture) in printed and picture.read_bytes().startswith(b"\x89PNG")


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_architecture_page_has_the_layers_of_the_import_contract() -> None:
    page = (ROOT / "docs/architecture.md").read_text()
    (shown,) = re.findall(r"<!-- layers -->\n(.*?)<!-- end -->", page, flags=re.DOTALL)
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    rows = [re.findall(r"`(\w+)`", line) for line in shown.splitlines()[2:]]
    assert rows == [layer.replace("pres.", "").split(" | ") for layer in layers]


REFERENCE = re.findall(r"^::: ([\w.]+)", (ROOT / "docs/reference.md").read_text(), flags=re.MULTILINE)


@pytest.mark.parametrize("name", REFERENCE)
def test_a_name_of_the_reference_has_a_docstring(name: str) -> None:
    documented = pydoc.locate(name)
    assert documented is not None, f"there is no {name}"
    assert (documented.__doc__ or "").strip()


def test_the_reference_has_every_public_name() -> None:
    shown = {name.removeprefix("pres.") for name in REFERENCE}
    modules = {name for name in pres.__all__ if inspect.ismodule(getattr(pres, name))}
    assert set(pres.__all__) - modules - shown <= {"Notice", "PresError", "build_model"}


def commands_shown() -> list[tuple[str, str]]:
    """Return the lines of `pres` that pages show, by page; lab notes record what was, and are left out."""
    found = set()
    for page in PAGES:
        text = "" if page.name == "lab-notes.md" else page.read_text()
        lines = re.findall(r"^pres ([a-z].*)$", text, flags=re.MULTILINE)
        found |= {
            (page.name, line.partition(" #")[0]) for line in lines + re.findall(r"`pres ([a-z][^`]*)`", text)
        }
    return sorted(found)


@pytest.fixture(scope="module")
def help_of() -> Callable[[str], str]:
    runner = CliRunner(env={"COLUMNS": "300", "TERM": "dumb"})
    return cache(lambda command: runner.invoke(app, [*command.split(), "--help"]).output)


@pytest.mark.parametrize(("page", "line"), [pair for pair in commands_shown() if " --" in pair[1]])
def test_a_command_has_the_flags_that_a_page_shows(
    page: str, line: str, help_of: Callable[[str], str]
) -> None:
    words = line.split()
    command = " ".join(words[:2]) if words[0] == "theory" else words[0]
    flags = {word.partition("=")[0] for word in words if word.startswith("--")}
    assert flags <= set(re.findall(r"--[a-z-]+", help_of(command))), page


def test_the_training_page_has_every_setting() -> None:
    page = (ROOT / "docs/training.md").read_text()
    section = page[page.index("## Settings") :].split("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE)) == set(FitConfig.model_fields)
