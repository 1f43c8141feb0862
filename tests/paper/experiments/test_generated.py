"""Numbers in Markdown are those of the results."""

import re
from pathlib import Path

import pytest

from pres.errors import SourceNotFoundError
from pres.paper.experiments.evidence import EvidenceFolder
from pres.paper.experiments.generated import regenerated, take_over, update
from pres.paper.experiments.registry import EXPERIMENTS
from tests.paper.experiments.small import LITTLE, reproduced

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "docs" / "results"
KEPT = RESULTS / "quick"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_has_drifted_from_the_kept_results(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert regenerated(text, RESULTS) == text, (
        "python -m pres.paper.experiments.generated brings the page up to date"
    )


def test_the_kept_results_are_all_there_and_on_a_page() -> None:
    assert set(EvidenceFolder(KEPT).names()) == set(EXPERIMENTS)
    page = (ROOT / "docs" / "reproduce.md").read_text()
    assert set(re.findall(r"<!-- generated: quick/([\w-]+) -->", page)) >= set(EXPERIMENTS)
    for name in EXPERIMENTS:
        evidence = EvidenceFolder(KEPT).read(name)
        assert evidence.failed == {} and evidence.table.rows, name
        assert (KEPT / "evidence" / f"{name}.parquet").exists()
        assert (evidence.figures == ()) == (
            name in ("table-datasets", "rates", "table1-other-rate", "steps", "table2", "speed")
        )
        for figure in evidence.figures:
            assert any((KEPT / "figures" / figure).with_suffix(end).exists() for end in (".svg", ".png"))


def test_blocks_are_replaced_and_the_rest_stays(tmp_path: Path) -> None:
    reproduced([LITTLE], tmp_path / "runs")
    taken = take_over(tmp_path / "runs", tmp_path / "kept")
    assert taken == ["little"]
    assert [path.name for path in (tmp_path / "kept" / "tiny" / "figures").iterdir()] == ["little.svg"]
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- generated: tiny/little -->\n<!-- end -->\nafter <!-- generated: no\n")
    assert update([page], tmp_path / "kept") == [page]
    text = page.read_text()
    table = EvidenceFolder(tmp_path / "runs").read("little").table
    assert table.markdown() in text and text.startswith("before\n") and text.endswith("no\n")
    assert update([page], tmp_path / "kept") == []
    page.write_text(text.replace("JODIE", "TGN", 1))
    assert update([page], tmp_path / "kept") == [page] and page.read_text() == text


def test_a_name_without_results_is_said(tmp_path: Path) -> None:
    (tmp_path / "quick" / "evidence").mkdir(parents=True)
    with pytest.raises(SourceNotFoundError, match="nothing for 'generated: table9'"):
        regenerated("<!-- generated: quick/table9 -->\n<!-- end -->", tmp_path)
