from pathlib import Path

import pytest


@pytest.fixture
def clicks(tmp_path: Path) -> Path:
    path = tmp_path / "clicks.csv"
    lines = [f"user{i % 7},item{i % 3},{1_700_000_000 + 10 * i}" for i in range(300)]
    path.write_text("\n".join(["user,item,ts", *lines]) + "\n")
    return path


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "log.csv"
    lines = [f"user{i % 7},item{i * i % 41},{10 * i}" for i in range(300)]
    path.write_text("\n".join(["user,item,ts", *lines]))
    return path
