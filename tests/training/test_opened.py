"""Runs that are opened again: events that were moved or came from memory, and runs that are not finished."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import pres
from pres.errors import Notice, OptionError, SourceNotFoundError
from pres.models.registry import build_model
from pres.sampling import NegativeSampler
from pres.training.folder import RunFolder
from pres.training.opened import events_again, open_run

SMALL = {"memory_dim": 8, "time_dim": 8}
COLUMNS: dict[str, Any] = {"src": "who", "dst": "what", "t": "when", "bipartite": True}
pytestmark = pytest.mark.filterwarnings("ignore::pres.errors.Notice")


def log(n: int = 300) -> pl.DataFrame:
    """A log whose columns nobody would guess."""
    rows = range(n)
    return pl.DataFrame(
        {
            "who": [f"u{i % 7}" for i in rows],
            "what": [f"i{i * i % 41}" for i in rows],
            "when": [10 * i for i in rows],
        }
    )


def trained(events: pres.EventStream, out: Path, **options: Any) -> pres.Run:
    model = build_model("jodie", events, SMALL, seed=0)
    settings: dict[str, Any] = {"batch_size": 50, "epochs": 1, "out": out}
    return pres.fit(model, events, **settings | options)


def test_a_run_whose_log_was_moved_opens_where_it_is_now(tmp_path: Path) -> None:
    old, new = tmp_path / "old.csv", tmp_path / "new.parquet"
    log().write_csv(old)
    run = trained(pres.read(old, **COLUMNS), tmp_path / "run")
    old.unlink()
    log().write_parquet(new)
    with pytest.raises(SourceNotFoundError, match=r"are gone: .*old.csv.*name their place with source="):
        open_run(tmp_path / "run")
    opened = open_run(tmp_path / "run", source=new)
    test, sampler = opened.events.split().test, NegativeSampler(opened.events)
    assert pres.evaluate(opened.model, test, sampler) == run.test
    other = tmp_path / "other.csv"
    log().with_columns(pl.col("when") + pl.col("when") % 20 // 10).write_csv(other)
    with pytest.raises(OptionError, match=r"other\.csv holds other events or ids than the 300 that"):
        open_run(tmp_path / "run", source=other)


def test_a_run_that_went_on_with_a_moved_log_opens_there(tmp_path: Path) -> None:
    old, new = tmp_path / "old.csv", tmp_path / "new.csv"
    log().write_csv(old)
    trained(pres.read(old, **COLUMNS), tmp_path / "run")
    old.rename(new)
    folder = RunFolder(tmp_path / "run")
    trained(events_again(folder.events(), "the run", new), tmp_path / "run", epochs=2, resume=True)
    assert len(open_run(tmp_path / "run").events) == 300
    trained(pres.read(log(), **COLUMNS), tmp_path / "run", epochs=3, resume=True)  # from memory
    assert len(open_run(tmp_path / "run").events) == 300 and folder.config()["source"] == str(new)


def test_a_run_of_a_frame_opens_from_a_file_and_from_a_store(tmp_path: Path) -> None:
    run = trained(pres.read(log(), **COLUMNS), tmp_path / "run")
    assert run.events["origin"]["source"] is None
    with pytest.raises(OptionError, match=r"were made in memory.*with source="):
        open_run(tmp_path / "run")
    log().write_csv(tmp_path / "log.csv")
    pres.write_store(tmp_path / "log.csv", tmp_path / "store", **COLUMNS)
    for source in ("log.csv", "store"):
        opened = open_run(tmp_path / "run", source=tmp_path / source)
        test, sampler = opened.events.split().test, NegativeSampler(opened.events)
        assert pres.evaluate(opened.model, test, sampler) == run.test


def test_a_run_can_be_used_from_its_first_validation_on(tmp_path: Path) -> None:
    log().write_csv(tmp_path / "log.csv")
    events = pres.read(tmp_path / "log.csv", **COLUMNS)

    class EnoughError(Exception):
        pass

    def stop(done: object) -> None:
        raise EnoughError

    with pytest.raises(EnoughError):
        trained(events, tmp_path / "run", validate_every=100, on_epoch=stop)
    with pytest.warns(Notice, match="is not finished: these are its best weights so far"):
        opened = open_run(tmp_path / "run")
    assert opened.model.memory.position == len(events) - len(events.split().test)
    history = RunFolder(tmp_path / "run").last().history
    assert len(history) == 1 and 0 < history[0].share < 1
    found = pres.predict(opened.model, opened.events, ["u1"], ["i4"])
    assert len(found) == 1
    whole = trained(events, tmp_path / "run", validate_every=100, resume=True)
    assert [done.share for done in whole.history][-1] == 1 and len(whole.history) > 1


def test_a_run_without_a_validation_says_so(tmp_path: Path) -> None:
    log().write_csv(tmp_path / "log.csv")
    events = pres.read(tmp_path / "log.csv", **COLUMNS)
    run = trained(events, tmp_path / "whole")
    begun = RunFolder(tmp_path / "begun")
    begun.begin(run.to_dict(), run.last)
    begun.release()
    with pytest.raises(SourceNotFoundError, match="has not been validated yet"):
        open_run(tmp_path / "begun")


def test_the_first_events_of_a_log_are_a_stream_that_is_found_again(tmp_path: Path) -> None:
    from pres.data.source import events_from

    log(400).write_csv(tmp_path / "log.csv")
    some = events_from(str(tmp_path / "log.csv"), COLUMNS | {"first": 200})
    assert len(some) == 200 and some.info.origin is not None and some.info.origin.options["first"] == 200
    trained(some, tmp_path / "run", batch_size=20)
    assert RunFolder(tmp_path / "run").config()["reading"]["first"] == 200
    opened = open_run(tmp_path / "run")
    assert opened.events.fingerprint() == some.fingerprint()
    with pytest.raises(OptionError, match="first=0"):
        events_from(str(tmp_path / "log.csv"), COLUMNS | {"first": 0})
