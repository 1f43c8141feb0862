import datetime
import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
import zstandard

from pres.data.tabular.rows import open_table
from pres.errors import (
    ColumnError,
    EmptySourceError,
    OptionError,
    PresError,
    SourceNotFoundError,
    UnreadableSourceError,
)


def zipped(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def words(value: object) -> str:
    """The name of a test case: what is text in it, not its bytes."""
    return value if isinstance(value, str) else "of"


CSV = b"a,b,t\n1,x,3\n2,y,4\n"


def write(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def refused(kind: type[PresError], source: Any, **options: Any) -> str:
    """The one line with which a source is refused."""
    with pytest.raises(kind) as caught:
        open_table(source, **options)
    assert type(caught.value) is kind and len(str(caught.value).splitlines()) == 1
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("plain.csv", CSV),
        ("PLAIN.CSV", CSV),
        ("two.dots.csv", CSV),
        ("tabs.tsv", CSV.replace(b",", b"\t")),
        ("semicolons.csv", CSV.replace(b",", b";")),
        ("bars.txt", CSV.replace(b",", b"|")),
        ("spaces.txt", CSV.replace(b",", b" ")),
        ("spaced.csv", CSV.replace(b",", b" , ")),
        ("windows.csv", CSV.replace(b"\n", b"\r\n")),
        ("macintosh.csv", CSV.replace(b"\n", b"\r")),
        ("mark.csv", b"\xef\xbb\xbf" + CSV),
        ("blank_ends.csv", b"\n\n" + CSV + b"\n\n"),
        ("no_last_break.csv", CSV[:-1]),
        ("zipped.csv.gz", zipped(CSV)),
        ("zipped.tsv.gz", zipped(CSV.replace(b",", b"\t"))),
        ("standard.csv.zst", zstandard.compress(CSV)),
        ("semicolons.csv.zst", zstandard.compress(CSV.replace(b",", b";"))),
        ("zipped_in_secret.csv", zipped(CSV)),
        ("not_zipped.csv.gz", CSV),
        ("glob[1].csv", CSV),
    ],
    ids=words,
)
def test_text_in_every_dress_is_the_same_table(tmp_path: Path, name: str, content: bytes) -> None:
    table = open_table(write(tmp_path, name, content))
    assert table.is_text and table.where == str(tmp_path / name) and table.name == name.split(".")[0]
    cells = {
        key: [cell.strip() for cell in column] for key, column in table.frame.to_dict(as_series=False).items()
    }
    assert cells == {"a": ["1", "2"], "b": ["x", "y"], "t": ["3", "4"]}


def test_a_text_file_without_a_header_counts_its_columns(tmp_path: Path) -> None:
    table = open_table(write(tmp_path, "a.txt", b"1 2 3\n4 5 6\n"), header=False)
    assert table.frame.to_dict(as_series=False) == {
        "column_1": ["1", "4"], "column_2": ["2", "5"], "column_3": ["3", "6"]
    }  # fmt: skip


def test_spaces_within_names_separate_nothing(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", b"name of the user,name of the item\n1,2\n")
    assert open_table(path).frame.columns == ["name of the user", "name of the item"]


def test_paths_may_be_text_and_start_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    path = write(tmp_path, "a.csv", CSV)
    assert open_table(str(path)).frame.equals(open_table("~/a.csv").frame)


def test_binary_files(tmp_path: Path) -> None:
    numbers = {"a": [1, 2], "t": [0.5, 1.5]}
    pl.DataFrame(numbers).write_parquet(tmp_path / "a.parquet")
    np.savez(tmp_path / "a.npz", a=[1, 2], t=[0.5, 1.5])
    np.save(tmp_path / "a.npy", np.array([(1, 0.5), (2, 1.5)], dtype=[("a", int), ("t", float)]))
    for name in ("a.parquet", "a.npz", "a.npy"):
        table = open_table(tmp_path / name)
        assert table.frame.to_dict(as_series=False) == numbers and table.name == "a" and not table.is_text
        assert table.frame.dtypes == [pl.Int64, pl.Float64]


def test_arrays_without_names() -> None:
    plain = np.arange(8).reshape(2, 4)
    for array in (plain, torch.from_numpy(plain)):
        assert open_table(array).frame.columns == ["src", "dst", "t", "f0"]
        assert open_table(array, unnamed=()).frame.columns == ["f0", "f1", "f2", "f3"]
    assert open_table({"t": [1, 2], "x": np.ones((2, 3))}).frame.columns == ["t", "x0", "x1", "x2"]


def test_arrays_of_every_type() -> None:
    day = datetime.datetime(2024, 5, 17)
    frame = open_table(
        {
            "tensor": torch.tensor([1.0, 2.0], requires_grad=True),
            "half": torch.tensor([1.0, 2.0], dtype=torch.bfloat16),
            "big_endian": np.array([1, 2], dtype=">i8"),
            "dates": [day, day],
            "seconds": np.array(["2024-05-17", "2024-05-18"], dtype="datetime64[s]"),
            "series": pl.Series([1, 2]),
            "words": ["a", "b"],
        }
    ).frame
    assert frame["dates"][0] == frame["seconds"][0] == day
    assert frame["half"].to_list() == frame["tensor"].to_list() == [1.0, 2.0]
    assert frame["big_endian"].dtype == pl.Int64 and frame["words"].dtype == pl.String


def test_pandas_frames_with_all_their_habits() -> None:
    frame = pd.DataFrame(
        {
            "whole": pd.array([1, None], dtype="Int64"),
            "mixed": np.array([1, "x"], dtype=object),
            "kind": pd.Categorical(["u", "v"]),
            7: [True, False],
        },
        index=pd.Index([5, 6], name="when"),
    )
    table = open_table(frame)
    assert table.where == "the pandas frame" and table.name == "events"
    assert table.frame.columns == ["when", "whole", "mixed", "kind", "7"]
    assert table.frame["when"].to_list() == [5, 6] and table.frame["whole"].to_list() == [1, None]
    assert table.frame["mixed"].dtype == pl.Object  # refused only where it is used
    assert "when" not in open_table(frame.reset_index(drop=True)).frame.columns


def test_polars_frames_and_queries() -> None:
    frame = pl.DataFrame({"a": [1]})
    assert open_table(frame).frame is frame and open_table(frame.lazy()).frame.equals(frame)
    said = refused(UnreadableSourceError, frame.lazy().select("zz"))
    assert said.startswith("the polars query fails: unable to find column")
    refused(UnreadableSourceError, pl.scan_csv("/nowhere/at/all.csv"))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    write(tmp_path, "clicks.csv", CSV)
    assert refused(SourceNotFoundError, tmp_path / "click.csv") == (
        f"{tmp_path}/click.csv: no such file. Did you mean 'clicks.csv'?"
    )
    assert "no such file" in refused(SourceNotFoundError, tmp_path / "no_folder" / "a.csv")
    said = refused(SourceNotFoundError, tmp_path)
    assert said == f"{tmp_path} is a folder, and no store of events; give one file."
    assert r"a\x00b" in refused(SourceNotFoundError, "a\0b.csv")
    refused(UnreadableSourceError, "a" * 5000 + ".csv")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", b"", "is empty (0 bytes)."),
        ("a.parquet", b"", "is empty (0 bytes)."),
        ("a.csv", b"a,b,t\n", "has no rows."),
        ("a.csv", b"a,b,t", "has no rows."),
        ("a.csv", b"\n\n \n", "has no rows."),
        ("a.csv", b"a,b\n\n\n", "has no rows."),
        ("a.csv.gz", zipped(b""), "has no rows."),
        ("a.csv.zst", zstandard.compress(b""), "has no rows."),
    ],
    ids=words,
)
def test_empty_files(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    path = write(tmp_path, name, content)
    assert refused(EmptySourceError, path) == f"{path} {said}"


def test_empty_objects() -> None:
    assert refused(EmptySourceError, np.zeros((0, 3))) == "the array has no rows."
    assert refused(EmptySourceError, pd.DataFrame()) == "the pandas frame has no columns."
    assert refused(EmptySourceError, {}) == "the dict has no columns."


def parquet() -> bytes:
    buffer = io.BytesIO()
    pl.DataFrame({"a": range(1000)}).write_parquet(buffer)
    return buffer.getvalue()


LONG = b"a,b\n" + b"".join(b"%d,%d\n" % (k, k * k % 97) for k in range(3000))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("cut.parquet", parquet()[:-200], "is cut short, corrupt, or not what its ending says: "),
        ("cut.csv.gz", zipped(LONG)[:-2000], "is cut short, corrupt, or not what its ending says: "),
        (
            "cut.csv.zst",
            zstandard.compress(LONG)[:-200],
            "is cut short, corrupt, or not what its ending says: ",
        ),
        (
            "cut.npy",
            b"\x93NUMPY\x01\x00v\x00{'descr'",
            "is cut short, corrupt, or not what its ending says: ",
        ),
        (
            "pickled.npy",
            b"\x80\x04hello",
            "is not a file of plain NumPy arrays; save them without Python objects.",
        ),
        ("latin.csv", "a,b\nJosé,1\n".encode("latin-1"), "is not UTF-8 text. Save it as UTF-8"),
        ("wide.csv", "a,b\n1,2\n".encode("utf-16"), "is not UTF-8 text. Save it as UTF-8"),
        ("wide.csv", "a,b\n1,2\n".encode("utf-16-le"), "holds NUL bytes, so it is not text in UTF-8."),
        ("long.csv", b"a,b\n1,2\n3,4,5\n", ", line 3: 3 fields where the first line has 2. Mend the line"),
        (
            "long.csv.zst",
            zstandard.compress(b"a,b\n1,2,3\n"),
            ", line 2: 3 fields where the first line has 2.",
        ),
        ("mixed.csv", b"a,b\r\n1,2\r,3\r\n", ": a row has more fields than the first one. Quote text"),
        (
            "quote.csv",
            b'a,b\n"1,2\n3,4\n',
            "is cut short, corrupt, or not what its ending says: could not parse",
        ),
        (
            "bare.csv",
            b"1,2,3\n4,5,6\n",
            ": the first line (1,2,3) holds only numbers, so it is not a header. Pass ",
        ),
        ("padded.txt", b"a   b\n1   2\n", ": the columns are padded with several spaces."),
        ("a.xlsx", b"PK", ": a file ending in '.xlsx' cannot be read; known are .csv, .tsv, .txt, .csv.gz"),
        ("a", b"a,b\n", ": a file without an ending cannot be read; known are .csv"),
        ("a.gz", zipped(CSV), ": a file ending in '.gz' cannot be read; known are .csv"),
    ],
    ids=words,
)
def test_files_that_cannot_be_read(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    path = write(tmp_path, name, content)
    assert f"{path}{'' if said[0] in ',:' else ' '}{said}" in refused(UnreadableSourceError, path)


def test_a_column_name_must_not_occur_twice(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", b"a,t,t\n1,2,3\n")
    assert refused(ColumnError, path) == (
        f"{path}: more than one column is called 't'. Give each its own name."
    )
    refused(ColumnError, pd.DataFrame([[1, 2]], columns=["a", "a"]))


@pytest.mark.parametrize("separator", ["", ";;", "€", '"', "\n", 3])
def test_a_separator_is_one_character(tmp_path: Path, separator: Any) -> None:
    said = refused(OptionError, write(tmp_path, "a.csv", CSV), separator=separator)
    assert said == f"separator={separator!r} must be a single character, such as ',' or '\\t'."


@pytest.mark.parametrize("source", [None, 5, b"a.csv", [(1, 2, 3)], pd.Series([1])])
def test_what_is_no_table(source: Any) -> None:
    assert refused(OptionError, source) == (
        f"cannot read a table from {type(source).__name__}: give a path, a polars or pandas frame, "
        "a NumPy array, or a dict of arrays."
    )


def test_arrays_that_do_not_fit_together() -> None:
    said = refused(UnreadableSourceError, {"a": [1, 2], "b": [1, 2, 3]})
    assert said == "the dict: 'b' has shape (3,), but the first array has 2 rows."
    assert refused(UnreadableSourceError, {"a": [1, [2, 3]]}) == (
        "the dict: 'a' is ragged; its rows differ in length."
    )
    refused(UnreadableSourceError, {"a": 1, "b": 2})
    assert refused(OptionError, np.zeros(3)).startswith("the array has shape (3,): give a structured array")
    refused(OptionError, np.zeros((3, 2)))
