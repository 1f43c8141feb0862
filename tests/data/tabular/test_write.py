from pathlib import Path

import polars as pl
import pytest

from pres.data.tabular.write import beside, check_new, write_table
from pres.errors import OptionError, StorageError

FRAME = pl.DataFrame({"a": [1, 2], "b": ["x, y", "z"]})


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet", ".pq", ".CSV"])
def test_a_table_is_written_by_its_ending(tmp_path: Path, ending: str) -> None:
    path = write_table(FRAME, tmp_path / "new" / f"table{ending}")
    if ending in (".parquet", ".pq"):
        assert pl.read_parquet(path).equals(FRAME)
    else:
        assert pl.read_csv(path, separator="\t" if ending == ".tsv" else ",").equals(FRAME)
    assert [other.name for other in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("a/pairs.csv", "a/pairs-scores.csv"),
        ("my.pairs.tsv", "my.pairs-scores.tsv"),
        ("pairs.parquet", "pairs-scores.parquet"),
        ("pairs.csv.gz", "pairs-scores.csv"),
        ("pairs.npz", "pairs-scores.csv"),
        ("pairs.txt", "pairs-scores.csv"),
    ],
)
def test_a_result_lies_beside_what_it_is_of(given: str, expected: str) -> None:
    assert beside(Path(given), "scores") == Path(expected)


def test_nothing_is_written_over_and_nothing_where_nothing_can_be(tmp_path: Path) -> None:
    path = write_table(FRAME, tmp_path / "table.csv")
    before = path.read_bytes()
    with pytest.raises(StorageError, match="exists already"):
        write_table(FRAME.head(1), path)
    assert path.read_bytes() == before
    with pytest.raises(StorageError, match="is not a folder that may be written to"):
        check_new(path / "deeper" / "table.csv")
    with pytest.raises(OptionError, match=r"written as \.csv, \.tsv or \.parquet"):
        check_new(tmp_path / "table.xlsx")


def test_what_text_cannot_hold_is_one_clear_line(tmp_path: Path) -> None:
    nested = pl.DataFrame({"a": [[1, 2], [3]]})
    with pytest.raises(OptionError, match=r"cannot be written so .* Use \.parquet"):
        write_table(nested, tmp_path / "table.csv")
    assert list(tmp_path.iterdir()) == []
    write_table(nested, tmp_path / "table.parquet")
