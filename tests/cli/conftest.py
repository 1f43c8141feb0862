from pathlib import Path

import pytest


@pytest.fixture
def clicks(tmp_path: Path) -> Path:
    path = tmp_path / "clicks.csv"
    lines = [f"user{i % 7},item{i % 3},{1_700_000_000 + 10 * i}" for i in range(300)]
    path.write_text("\n".join(["user,item,ts", *lines]) + "\n")
    return path
