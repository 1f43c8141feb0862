import warnings
from pathlib import Path

import polars as pl
import pytest
import torch

import pres
from pres.errors import Notice, PresError
from tests.data.tabular.malformed import NAMED, cases, valid


def outcome(path: Path, options: dict[str, object]) -> PresError | None:
    """The error that reading gave, or None where it gave a stream that holds what a stream promises."""
    try:
        events = pres.read(path, **options)  # type: ignore[arg-type]
    except PresError as error:
        return error
    assert len(events) >= 2
    assert bool((events.t[1:] >= events.t[:-1]).all()) and bool((events.t[-1] > events.t[0]).item())
    assert bool(events.t.double().isfinite().all())
    assert int(torch.cat([events.src, events.dst]).max()) < events.num_nodes
    assert int(torch.cat([events.src, events.dst]).min()) >= 0
    assert len(events.ids.decode(events.src)) == len(events.ids.decode(events.dst)) == len(events)
    assert events.x is None or bool(events.x.isfinite().all())
    return None


@pytest.mark.filterwarnings("ignore::pres.errors.Notice")
def test_malformed_files_give_one_clear_line_and_nothing_else(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    errors, total = 0, 0
    for number, case in enumerate(cases(seed=7)):
        path = tmp_path / f"case{number}{case.ending}"
        path.write_bytes(case.content)
        error = outcome(path, case.options)
        assert [p.name for p in tmp_path.iterdir()] == [path.name], case.what
        assert path.read_bytes() == case.content, case.what
        path.unlink()
        total += 1
        if error is not None:
            errors += 1
            message = str(error)
            assert path.name in message, f"{case.what}: {message[:500]}"
            assert len(message.splitlines()) == 1 and len(message) < 1000, f"{case.what}: {message[:2000]}"
            assert "Traceback" not in message and "panicked" not in message, f"{case.what}: {message}"
    assert total >= 400 and errors >= 300, (total, errors)
    assert capfd.readouterr() == ("", "")


def test_the_files_that_were_broken_can_be_read_when_whole(tmp_path: Path) -> None:
    for ending, content in valid().items():
        path = tmp_path / f"whole{ending}"
        path.write_bytes(content)
        with warnings.catch_warnings():
            warnings.simplefilter("error", Notice)
            assert outcome(path, NAMED) is None, ending


def test_a_panic_inside_the_reader_is_an_error_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def panic(*_: object, **__: object) -> pl.DataFrame:
        raise pl.exceptions.PanicException("index out of bounds")

    path = tmp_path / "a.parquet"
    path.write_bytes(valid()[".parquet"])
    monkeypatch.setattr(pl.LazyFrame, "collect", panic)
    with pytest.raises(pres.PresError, match=r"a\.parquet is cut short, corrupt, .*: index out of bounds\."):
        pres.read(path, **NAMED)
