import dataclasses
import json
from pathlib import Path

from pres.datasets import catalogue
from pres.datasets.registry import DATASETS
from tests.datasets.toy import write_jodie


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
