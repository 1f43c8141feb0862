import dataclasses
import json
from pathlib import Path

from pres.data import catalogue
from pres.data.datasets.registry import DATASETS
from tests.data.datasets.toy import write_dgb, write_jodie, write_tgl


def test_every_dataset_is_listed_with_its_whereabouts(data: Path) -> None:
    path = write_jodie(data / "wikipedia.csv")
    entries = {entry.name: entry for entry in catalogue()}
    assert list(entries) == list(DATASETS)
    wikipedia = entries["wikipedia"]
    assert (wikipedia.status, wikipedia.where, wikipedia.format) == ("found", str(path), "jodie")
    assert (wikipedia.events, wikipedia.nodes, wikipedia.edge_features) == (157_474, 9_227, 172)
    assert wikipedia.positives == 217
    reddit = entries["reddit"]
    assert (reddit.status, reddit.format) == ("download", None)
    assert reddit.where == "https://snap.stanford.edu/jodie/reddit.csv"
    assert "1% sample" in entries["gdelt"].note
    assert entries["synthetic"].status == "embedded"


def test_entries_become_json(data: Path) -> None:
    rows = json.loads(json.dumps([dataclasses.asdict(entry) for entry in catalogue()]))
    assert len(rows) == len(DATASETS)


def test_what_a_copy_lacks_is_told_from_its_files_alone(data: Path) -> None:
    for name in ("wikipedia", "mooc", "mooc_features", "uci", "icews18"):
        (data / f"{name}.parquet").touch()  # nothing to read: only the names can tell
    (write_tgl(data / "REDDIT") / "labels.csv").unlink()
    (write_dgb(data / "enron", "enron") / "ml_enron.npy").unlink()
    folder = write_tgl(data / "GDELT")
    variants = {entry.name: entry.variant for entry in catalogue()}
    assert variants["wikipedia"] == "featureless"
    assert variants["mooc"] is None
    assert variants["uci"] is None  # none are published
    assert variants["icews18"] == "no relations"
    assert variants["reddit"] == "no labels"
    assert variants["enron"] == "featureless"
    assert variants["gdelt"] == "no node features"
    assert variants["lastfm"] is None  # not here at all
    (folder / "edge_features.pt").unlink()
    assert {entry.name: entry.variant for entry in catalogue()}["gdelt"] == "featureless"
