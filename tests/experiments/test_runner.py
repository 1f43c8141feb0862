"""Jobs are done once, whatever happens in between."""

import dataclasses
import json
from pathlib import Path

import polars as pl
import pytest

from pres.errors import OptionError, StorageError, UnreadableSourceError
from pres.experiments import EvidenceFolder, reproduce
from pres.experiments.declaration import Experiment
from pres.experiments.folder import JobFolder
from pres.experiments.runner import ask
from tests.experiments.small import LITTLE, TINY, Here, reproduced

OFF = dataclasses.replace(LITTLE, name="off", vary=lambda size: dict(LITTLE.vary(size)) | {"way": ["off"]})
LABELLED = dataclasses.replace(TINY, events=4_000, epochs=1)


def classifying(name: str = "table2") -> Experiment:
    from pres.experiments import EXPERIMENTS

    table = EXPERIMENTS[name]
    return dataclasses.replace(table, vary=lambda size: dict(table.vary(size)) | {"model": ["jodie"]})


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a call that was never interrupted leaves."""
    root = tmp_path_factory.mktemp("whole")
    found = reproduced([LITTLE], root)
    assert not found.failures and found.jobs == 4 and found.repeated == 0
    return root


def test_nothing_is_done_twice_and_shared_jobs_are_one(whole: Path) -> None:
    again = Here()
    found = reproduced([LITTLE, OFF], whole, again)
    assert again.done == [] and (found.jobs, found.repeated) == (4, 4)
    assert len(found.evidence[1].table.rows) == 2
    more = Here()
    reproduced([OFF], whole, more, seeds=2)
    assert len(more.done) == 2  # of the second seed alone


def test_interrupted_anywhere_it_ends_with_the_same_tables(whole: Path, tmp_path: Path) -> None:
    for stop in range(4):
        with pytest.raises(KeyboardInterrupt):
            reproduced([LITTLE], tmp_path, Here(stop_after=min(stop, 1)))
    last = Here()
    reproduced([LITTLE], tmp_path, last)
    assert len(last.done) == 1  # three of the four were finished before
    ours, theirs = (EvidenceFolder(root).read("little") for root in (tmp_path, whole))
    assert ours.table.repeatable() == theirs.table.repeatable()
    assert len(ours.table.rows) == 4


def test_a_job_that_fails_is_listed_the_others_stand_and_it_is_tried_again(tmp_path: Path) -> None:
    too_large = dataclasses.replace(
        LITTLE, vary=lambda size: dict(LITTLE.vary(size)) | {"batch_size": [100, 100_000]}
    )
    found = reproduced([too_large], tmp_path)
    (evidence,) = found.evidence
    assert len(evidence.table.rows) == 4 and len(found.failures) == 4
    assert all("makes one batch of" in reason for reason in found.failures.values())
    assert all("b 100,000" in title for title in evidence.failed)
    failed = list(tmp_path.glob("jobs/*/failed.json"))
    assert len(failed) == 4 and "Traceback" in json.loads(failed[0].read_text())["traceback"]
    again = Here()
    reproduced([too_large], tmp_path, again)
    assert sorted(again.done) == sorted(found.failures)


def test_states_are_kept_only_where_a_later_experiment_needs_them(tmp_path: Path) -> None:
    table1 = classifying("table1")
    found = reproduced([table1], tmp_path, size=LABELLED)
    assert found.jobs == 5 and not found.failures
    assert (
        len(list(tmp_path.glob("jobs/train-*/run"))) == 3
    )  # the larger batch without PRES is not classified
    later = Here()
    found = reproduced([classifying()], tmp_path, later, size=LABELLED)
    assert not found.failures and {name.split("-")[0] for name in later.done} == {"classify"}
    assert len(found.evidence[0].table.rows) == 3
    assert list(tmp_path.glob("jobs/train-*/run")) == []  # now nobody does


def test_a_state_that_is_needed_again_is_whole_before_it_is_used(tmp_path: Path) -> None:
    reproduced([classifying()], tmp_path, size=LABELLED)  # after which the states are forgotten
    again = dataclasses.replace(LABELLED, decoder_epochs=3)
    table1 = classifying("table1")
    for point in table1.points(ask([table1], again, datasets=["synthetic"])[0]):
        begun = JobFolder(tmp_path, point.job).run
        begun.mkdir(parents=True, exist_ok=True)  # as one that was killed leaves it
        (begun / "config.json").write_text("{}")
    later = Here()
    found = reproduced([classifying()], tmp_path, later, size=again)
    assert not found.failures and len(later.done) == 6  # three encoders and three decoders


def test_what_an_earlier_request_found_is_not_kept_beside_a_later_one(tmp_path: Path) -> None:
    reproduced([OFF], tmp_path)
    assert (tmp_path / "evidence" / "off.parquet").exists()
    reproduced([OFF], tmp_path, datasets=["tgbl-flight"])
    assert EvidenceFolder(tmp_path).read("off").table.rows == ()
    assert not (tmp_path / "evidence" / "off.parquet").exists()


def test_where_a_needed_job_fails_the_next_is_not_tried(tmp_path: Path) -> None:
    impossible = dataclasses.replace(LABELLED, pair=(50, 100_000))
    found = reproduced([classifying()], tmp_path, size=impossible)
    needed = [reason for reason in found.failures.values() if reason.startswith("what it needs failed")]
    assert len(needed) == 2 and len(found.failures) == 4
    assert len(found.evidence[0].table.rows) == 1


def test_points_are_kept_as_a_table_and_pictures_as_files(whole: Path) -> None:
    points = pl.read_parquet(whole / "evidence" / "little.parquet")
    assert len(points) == 4
    assert {"dataset", "model", "way", "batch_size", "step_size", "seed", "ap", "seconds"} <= set(
        points.columns
    )
    assert points["val_ap_of_epoch"].list.len().to_list() == [2] * 4
    evidence = EvidenceFolder(whole).read("little")
    assert evidence.figures == ("little.svg", "little.png")
    assert (whole / "figures" / "little.svg").read_text().startswith("<?xml")
    assert EvidenceFolder(whole).names()[0] == "little"


def test_two_at_once_in_one_folder_are_told_apart(tmp_path: Path) -> None:
    class Nested(Here):
        def run(self, jobs, root):  # type: ignore[no-untyped-def]
            with pytest.raises(StorageError, match="another 'pres reproduce' is at work"):
                reproduced([OFF], tmp_path)
            return super().run(jobs, root)

    assert not reproduced([OFF], tmp_path, Nested()).failures


def test_what_cannot_be_is_said_in_one_line(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(StorageError, match=r"cannot write .*file.*Choose another folder"):
        reproduced([OFF], blocked / "inside")
    with pytest.raises(OptionError, match="at least once"):
        reproduced([OFF], tmp_path / "a", seeds=0)
    root = tmp_path / "b"
    (root / "evidence").mkdir(parents=True)
    (root / "evidence" / "little.json").write_text('{"name": "little"}')
    with pytest.raises(UnreadableSourceError, match="damaged"):
        EvidenceFolder(root).read("little")


def test_a_dataset_that_is_missing_is_skipped_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRES_DATA", str(tmp_path))
    monkeypatch.setenv("PRES_CACHE", str(tmp_path))
    found = reproduce([OFF], TINY, tmp_path / "out", Here(), datasets=["synthetic", "Reddit"])
    (evidence,) = found.evidence
    assert set(evidence.skipped) == {"reddit"} and "PRES_DATA" in evidence.skipped["reddit"]
    assert len(evidence.table.rows) == 2 and not found.failures
