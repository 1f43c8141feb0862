"""The report: everything in one file, and a browser that finds nothing to complain of."""

import dataclasses
import json
import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

import pres
from pres.cli.commands import app
from pres.errors import OptionError, SourceNotFoundError, UnreadableSourceError
from pres.paper.report.contents import gather
from pres.paper.report.write import render, write_report
from pres.storage import read_json, write_json
from tests.cli.process import printed
from tests.paper.experiments.small import LITTLE, reproduced
from tests.paper.report.browser import CHROMIUM, Browser
from tests.training.runs import trained

TOO_LARGE = dataclasses.replace(LITTLE, name="too-large", vary=dict(LITTLE.vary) | {"batch_size": [100_000]})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("report") / "<i>runs"
    reproduced([LITTLE, TOO_LARGE], root, datasets=["synthetic"])
    return root


@pytest.fixture(scope="module")
def report(folder: Path) -> Path:
    return write_report(folder)


def test_it_holds_every_table_setting_environment_and_command(folder: Path, report: Path) -> None:
    text = report.read_text()
    evidence = json.loads((folder / "evidence" / "little.json").read_text())
    assert report == folder / "report.html"
    assert evidence["title"] in text and "pres reproduce little" in text
    for job in (folder / "jobs").iterdir():
        settings = json.loads((job / "job.json").read_text())["settings"]
        assert f"&#34;seed&#34;: {settings['seed']}" in text and str(settings["batch_size"]) in text
    assert "makes one batch of" in text  # why the others failed
    assert "numpy" in text and "Nothing could be measured" in text
    assert "<i>runs" not in text and "&lt;i&gt;runs" in text


def test_the_same_results_give_the_same_text_and_nothing_is_fetched(folder: Path, report: Path) -> None:
    text = report.read_text()
    assert render(folder) == text
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", text)


def test_a_folder_of_runs_has_a_report_too(tmp_path: Path) -> None:
    trained(tmp_path / "a" / "one")
    text = write_report(tmp_path, tmp_path / "shown.html").read_text()
    assert "a/one" in text and "pres train --config" in text and "data:image/png;base64," in text


def test_a_run_is_told_by_its_name_and_its_preset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = pres.load("synthetic", num_events=1_500)
    model = pres.JODIE(events, memory_dim=8, cell="scan")
    pres.fit(model, events, preset="large", batch_size=300, epochs=1, out=tmp_path / "one")
    monkeypatch.chdir(tmp_path / "one")
    contents = gather(Path())
    assert contents.folder == "one"
    names = [heading.title for heading in contents.runs.headings]
    told = dict(zip(names, contents.runs.shown()[0], strict=True))
    expected = {"run": "one", "b": "300", "step": "300", "preset": "large", "smoothing": "none"}
    assert told | expected == told
    assert contents.told[0].command == "pres train --config config.json --out ../one-again"
    assert "<strong>1</strong> run</li>" in render(Path())


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, with the report that the command line makes of it."""
    run = tmp_path_factory.mktemp("reported") / "mine"
    events = pres.load("synthetic", num_events=1_500)
    pres.fit(pres.JODIE(events, memory_dim=8), events, batch_size=100, epochs=2, out=run)
    assert json.loads(printed("report", run, "--json"))["report"] == str(run / "report.html")
    return run


def test_a_run_is_shown_with_its_curve_its_epochs_and_its_evaluation(evaluated: Path) -> None:
    contents = gather(evaluated)
    (page,) = contents.pages
    assert page.name == "mine" and page.curve is not None
    run = json.loads((evaluated / "run.json").read_text())
    assert [row[:2] for row in page.epochs.rows] == [(one["epoch"], one["loss"]) for one in run["history"]]
    kept = json.loads((evaluated / "evaluation.json").read_text())
    assert page.evaluation is not None and len(page.evaluation.rows) == 3 * 4
    assert len(kept["rows"]) == 3 * 4 * 3  # with groups, of which one has no events
    first, metrics = page.evaluation.rows[0], kept["rows"][0]["metrics"]
    assert first[:5] == ("JODIE", "random", 200, "all", 225)
    assert first[5:8] == (100 * metrics["ap"], 100 * metrics["auc"], metrics["mrr"])
    text = render(evaluated)
    assert "among 100." in text and "EdgeBank (window)" in text and "popularity" in text
    assert not page.grouped and "Seen: both" not in text


def test_a_kept_evaluation_is_shown_and_none_is_made_unasked(evaluated: Path, tmp_path: Path) -> None:
    run = tmp_path / "mine"
    shutil.copytree(evaluated, run)
    kept = run / "evaluation.json"
    write_json(kept, json.loads(json.dumps(read_json(kept)).replace("popularity", "wisdom of crowds")))
    printed("report", run)
    assert "wisdom of crowds" in (run / "report.html").read_text()
    kept.unlink()
    printed("report", run, "--no-evaluate")
    text = (run / "report.html").read_text()
    assert not kept.exists() and f"pres evaluate {run} --out {kept}" in text
    found = read_json(evaluated / "evaluation.json")
    for row in found["rows"]:
        row["metrics"] = row["metrics"] or found["rows"][0]["metrics"]
    write_json(kept, found)
    (page,) = gather(run).pages
    assert page.evaluation is not None and len(page.evaluation.rows) == 36
    assert {row[3] for row in page.evaluation.rows} == {"all", "seen", "unseen"}
    assert page.grouped
    write_json(kept, found | {"best_epoch": 7})  # of weights that the run had before it was trained on
    (page,) = gather(run).pages
    assert page.evaluation is None
    printed("report", run)
    assert read_json(kept)["best_epoch"] == read_json(run / "run.json")["best_epoch"]
    for content in ('{"rows": [{}]}', json.dumps(found)[:-9]):
        kept.write_text(content)
        with pytest.raises(UnreadableSourceError, match="damaged"):
            write_report(run)
    write_json(kept, {"rows": [{}]})
    with pytest.raises(UnreadableSourceError, match="damaged"):
        write_report(run)


def test_a_run_that_cannot_be_evaluated_is_reported_all_the_same(tmp_path: Path) -> None:
    trained(tmp_path / "a")
    write_json(path := tmp_path / "a" / "events.json", read_json(path) | {"origin": None})
    done = CliRunner().invoke(app, ["report", str(tmp_path / "a")], catch_exceptions=False)
    assert done.exit_code == 0 and "not evaluated: " in done.stderr
    assert "Learning curve" in (tmp_path / "a" / "report.html").read_text()


def test_one_run_has_a_report_that_calls_it_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "one"
    trained(run)
    monkeypatch.chdir(run)
    for folder, beside in ((run, tmp_path), (Path(), Path(".."))):
        text = write_report(folder).read_text()
        assert "<h1>Report of one</h1>" in text and ">one</td>" in text
        assert f"--out {beside / 'one-again'}</code>" in text


def test_a_run_that_is_not_finished_is_named_and_a_model_of_ones_own_has_no_command(tmp_path: Path) -> None:
    trained(tmp_path / "a")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    (tmp_path / "b" / "run.json").unlink()
    write_json(path := tmp_path / "a" / "config.json", read_json(path) | {"source": None})
    text = write_report(tmp_path).read_text()
    assert f"<li><code>{tmp_path / 'b'}</code></li>" in text
    assert "pres train" not in text


@pytest.mark.parametrize("content", ["{", "{}", '{"variant": 1, "config": 2}', "[]"])
def test_a_damaged_run_is_said_in_one_line(tmp_path: Path, content: str) -> None:
    trained(tmp_path / "a")
    (tmp_path / "a" / "run.json").write_text(content)
    with pytest.raises(UnreadableSourceError, match=r"a/run.json is damaged"):
        write_report(tmp_path)


def test_a_damaged_job_is_said_in_one_line(folder: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(folder, broken)
    job = next(broken.glob("jobs/*/result.json")).parent
    (job / "result.json").write_text("{}")
    with pytest.raises(UnreadableSourceError, match=f"{job.name}.*damaged: 'seconds'"):
        write_report(broken)


@pytest.mark.parametrize("name", ["learning.png", "config.json", "evaluation.json"])
def test_a_link_in_a_run_is_not_followed(tmp_path: Path, name: str) -> None:
    trained(tmp_path / "a")
    run, secret = tmp_path / "a", tmp_path / "secret"
    secret.write_text("{}")
    (run / name).unlink(missing_ok=True)
    (run / name).symlink_to(secret)
    with pytest.raises(UnreadableSourceError, match=rf"{name} is a link, and a report shows only what lies"):
        write_report(tmp_path)


def test_what_cannot_be_is_said(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFoundError, match="holds neither results"):
        write_report(tmp_path)
    with pytest.raises(SourceNotFoundError, match="is not a folder"):
        write_report(tmp_path / "nowhere")
    with pytest.raises(OptionError, match=r"written as .html"):
        write_report(tmp_path, tmp_path / "report.pdf")


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium to look with")
def test_a_browser_loads_sorts_and_enlarges_it_without_a_complaint(report: Path, tmp_path: Path) -> None:
    with Browser(tmp_path / "profile") as page:
        page.open(report)
        assert page.evaluate("document.querySelectorAll('table.sortable tbody tr').length") >= 12
        shown = "[...document.images].filter(i => i.src).every(i => i.complete && i.naturalWidth > 100)"
        assert page.evaluate(shown)
        assert page.evaluate("document.images.length") >= 2

        place = "[...document.querySelectorAll('#little th')].findIndex(h => h.innerText.startsWith('AP'))"
        column = f"[...document.querySelectorAll('#little tbody tr')].map(r => r.cells[{place}].innerText)"
        click = f"document.querySelectorAll('#little th button')[{place}].click()"
        before = page.evaluate(column)
        page.evaluate(click)
        rising = page.evaluate(column)
        page.evaluate(click)
        falling = page.evaluate(column)
        keys = f"[...document.querySelectorAll('#little tbody tr')].map(r => +r.cells[{place}].dataset.key)"
        values = page.evaluate(keys)
        assert values == sorted(values, reverse=True)
        assert rising == falling[::-1] and sorted(before) == sorted(rising)

        edge = "(node => node.getBoundingClientRect().right)"
        assert page.evaluate(
            f"[...document.querySelectorAll('th.number')].every(h => {edge}(h) - {edge}(h.firstChild) < 1)"
        )

        page.evaluate("document.querySelector('.zoom').click()")
        assert page.evaluate("document.getElementById('large').open")
        assert page.evaluate("document.querySelector('#large img').naturalWidth") > 100
        assert page.evaluate("document.querySelector('#large img').getBoundingClientRect().width") > 800
        page.evaluate("document.querySelector('#large img').click()")
        assert page.evaluate("document.querySelector('#large img').getBoundingClientRect().width") > 1600
        page.evaluate("document.querySelector('#large img').click()")
        assert not page.evaluate("document.getElementById('large').open")

        assert page.complaints() == []
        assert page.requests() == [report.resolve().as_uri()]


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium to look with")
def test_the_report_of_a_run_shows_its_curve_and_sorts(evaluated: Path, tmp_path: Path) -> None:
    with Browser(tmp_path / "profile") as page:
        page.open(evaluated / "report.html")
        assert page.evaluate("document.querySelector('#run-1 img').getBoundingClientRect().width") > 200
        rows = "[...document.querySelectorAll('#run-1 > .scroll tbody tr')].map(r => +r.cells[5].dataset.key)"
        assert len(page.evaluate(rows)) == 12
        page.evaluate("document.querySelectorAll('#run-1 > .scroll th button')[5].click()")
        known = [ap for ap in page.evaluate(rows) if ap]
        assert known == sorted(known)
        assert page.evaluate("document.documentElement.scrollWidth") <= 1200
        assert page.complaints() == []
        assert page.requests() == [(evaluated / "report.html").resolve().as_uri()]


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium to look with")
def test_it_fits_a_phone_and_follows_the_light(report: Path, tmp_path: Path) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    with Browser(tmp_path / "profile") as page:
        page.open(report, width=375)
        assert page.evaluate("document.documentElement.scrollWidth") <= 375
        light = page.evaluate(background)
        page.open(report, width=375, dark=True)
        dark = page.evaluate(background)
        assert (light, dark) == ("rgb(255, 255, 255)", "rgb(20, 24, 29)")
        page.call("Emulation.setEmulatedMedia", media="print")
        assert page.evaluate(background) == "rgb(255, 255, 255)"
        assert page.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"
        assert page.complaints() == []
