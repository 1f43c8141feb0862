from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pres.data.datasets.registry import DATASETS, Counts
from tests.data.datasets.toy import Publish


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty PRES_DATA, with an empty cache beside it."""
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setenv("PRES_DATA", str(folder))
    monkeypatch.setenv("PRES_CACHE", str(tmp_path / "cache"))
    return folder


@pytest.fixture
def cache(data: Path) -> Path:
    return data.parent / "cache"


@pytest.fixture
def publish(monkeypatch: pytest.MonkeyPatch) -> Publish:
    """Change what is published of a dataset, so that a toy file can stand for it in a test."""

    def change(name: str, counts: Counts, **fields: Any) -> None:
        monkeypatch.setitem(DATASETS, name, replace(DATASETS[name], counts=counts, **fields))

    return change
