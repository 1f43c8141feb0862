"""`pres update`: later events are evaluated, taken in, and kept with the run."""

import json
import random
import shutil
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch

import pres
from pres.data import GrowingStream
from pres.data.tabular.rows import open_table
from pres.errors import (
    ColumnError,
    Notice,
    OptionError,
    PresError,
    SourceNotFoundError,
    StorageError,
    UnreadableSourceError,
)
from pres.evaluation.link import link_scores
from pres.evaluation.scorer import BatchReading
from pres.sampling import NegativeSampler, TemporalBatches
from pres.serving.update import Update, update
from pres.storage import read_json, take
from pres.training.opened import open_run
from tests.cli.process import run as pres_command

pytestmark = pytest.mark.filterwarnings("ignore::pres.errors.Notice")
BEGUN = 600  # events of the run


def log() -> pl.DataFrame:
    """A log with ever new users and items, features, a category, and an id of each event."""
    n = 1_500
    generator = torch.Generator().manual_seed(0)
    user = torch.randint(0, 12, (n,), generator=generator) + torch.arange(n) // 100
    item = (user * 5 + torch.randint(0, 4, (n,), generator=generator)) % (20 + torch.arange(n) // 60)
    columns = {
        "user": [f"u{i}" for i in user.tolist()],
        "item": item.numpy(),
        "ts": torch.arange(n).numpy() // 2,
    }
    columns |= {"f0": torch.randn(n, generator=generator).numpy(), "kind": ["a", "b", "c"] * (n // 3)}
    return pl.DataFrame(columns).with_columns(pl.Series("id", range(n)))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    log()[:BEGUN].write_parquet(folder / "log.parquet")
    events = pres.read(
        folder / "log.parquet", src="user", dst="item", t="ts", x=["f0"], categories=["kind"], time_unit="s"
    )
    torch.manual_seed(0)
    model = pres.TGN(events, memory_dim=8, time_dim=8)
    pres.fit(model, events, epochs=1, batch_size=60, eval_batch_size=70, out=folder / "run")
    return folder / "run"


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """A copy of the run, to be updated."""
    place = tmp_path / "run"
    place.mkdir()
    for file in trained.iterdir():
        if file.name != ".lock":
            (place / file.name).write_bytes(file.read_bytes())
    return place


def updated(run: Path, rows: pl.DataFrame, **options: Any) -> Update:
    return update(run, open_table(rows), **options)


def asked(rows: pl.DataFrame) -> tuple[list[str], list[int]]:
    return rows["user"].tail(30).to_list(), rows["item"].head(30).to_list()


def files_of(folder: Path) -> dict[str, bytes]:
    names = (path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in names}


def test_updates_one_after_another_are_as_one_replay(run: Path) -> None:
    rows = log()
    first, second = updated(run, rows[BEGUN:1_111]), updated(run, rows[1_111:])
    assert (first.seen.accepted, second.seen.accepted, second.seen.position) == (511, 389, 1_500)
    assert first.seen.new_nodes > 0 and second.seen.new_nodes > 0
    opened = open_run(run)
    whole = GrowingStream(opened.events).append(rows[BEGUN:])
    opened.model.grow(whole)
    expected = pres.predict(opened.model, whole, *asked(rows), batch_size=70).score
    online = pres.OnlineModel.open(run)
    assert online.batch_size == 70 and online.events.fingerprint() == whole.fingerprint()
    assert torch.allclose(online.score(*asked(rows)).score, expected, atol=1e-6)
    assert [path.name for path in sorted((run / "updates").iterdir())] == ["000001", "000002"]
    assert not (run / "updates/000001/state.safetensors").exists()  # the newest holds all of it
    told = read_json(run / "updates/000001/update.json")
    assert told.pop("checksum") and told == first.to_dict()


def test_a_damaged_memory_is_made_again_and_damaged_events_are_told(run: Path) -> None:
    rows = log()
    updated(run, rows[BEGUN:800])
    updated(run, rows[800:1_111])
    expected = pres.OnlineModel.open(run)
    state, events = (run / "updates/000002" / name for name in ("state.safetensors", "events.parquet"))
    whole = bytearray(state.read_bytes())
    whole[-100] ^= 1
    for damaged in (bytes(whole), None):
        state.write_bytes(damaged) if damaged else state.unlink()
        with pytest.warns(Notice, match="The memory is made again from the events"):
            again = pres.OnlineModel.open(run)
        assert (again.position, again.committed) == (expected.position, expected.committed)
        pairs = asked(rows[:1_111])
        assert torch.allclose(again.score(*pairs).score, expected.score(*pairs).score, atol=1e-6)
    events.write_bytes(events.read_bytes()[:-9])
    with pytest.raises(UnreadableSourceError, match=r"events\.parquet is damaged"):
        pres.OnlineModel.open(run)


@pytest.fixture(scope="module")
def lively(trained: Path) -> Path:
    """A run with two updates."""
    place = trained.with_name("lively")
    shutil.copytree(trained, place)
    updated(place, log()[BEGUN:800], event_id="id")
    updated(place, log()[800:1_000], event_id="id")
    return place


def answer(run: Path) -> Any:
    """What an online model of a run says, or the line that refuses it."""
    try:
        online = pres.OnlineModel.open(run)
    except PresError as error:
        assert "\n" not in str(error)
        return str(error)
    return online.score(*asked(log()[:1_000])).score.tolist()


def test_no_changed_file_of_an_update_gives_other_numbers(lively: Path, tmp_path: Path) -> None:
    expected, chance, refused = answer(lively), random.Random(0), 0
    read = ["000001/events.parquet", "000001/update.json", "000002/events.parquet", "000002/update.json"]
    changes = list(product([*read, "000002/state.safetensors"], ("flipped", "cut", "exchanged", "gone")))
    for name, how in changes:
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        shutil.copytree(lively, tmp_path / "run")
        file = tmp_path / "run/updates" / name
        content = bytearray(file.read_bytes())
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        changed = {"flipped": bytes(content), "cut": bytes(content[: chance.randrange(len(content))])}
        changed["exchanged"] = (
            lively / "updates" / chance.choice([f for f in read if f != name])
        ).read_bytes()
        file.unlink()
        if how != "gone":
            file.write_bytes(changed[how])
        found = answer(tmp_path / "run")
        refused += isinstance(found, str)
        assert isinstance(found, str) or found == pytest.approx(expected, abs=1e-6), (name, how)
    assert refused >= 12  # a state is made again, and white space may change


@pytest.mark.parametrize(("gone", "says"), [("000001", "lacks update 000001"), (None, "does not follow")])
def test_updates_follow_each_other(lively: Path, gone: str | None, says: str, tmp_path: Path) -> None:
    shutil.copytree(lively, tmp_path / "run")
    first, second = (tmp_path / "run/updates" / name for name in ("000001", "000002"))
    shutil.rmtree(first)
    if gone is None:
        second.rename(first)
    assert says in answer(tmp_path / "run")


def test_a_run_that_was_trained_on_makes_the_memory_of_its_updates_again(
    lively: Path, tmp_path: Path
) -> None:
    shutil.copytree(lively, tmp_path / "run")
    events = open_run(lively).events
    model = pres.TGN(events, memory_dim=8, time_dim=8)
    settings: dict[str, Any] = {"batch_size": 60, "eval_batch_size": 70, "out": tmp_path / "run"}
    assert pres.fit(model, events, epochs=6, resume=True, **settings).best_epoch > 1
    with pytest.warns(Notice, match="other weights than the run"):
        found = answer(tmp_path / "run")
    assert found != pytest.approx(answer(lively), abs=1e-3)
    opened = open_run(tmp_path / "run")
    whole = GrowingStream(opened.events).append(log()[BEGUN:1_000])
    opened.model.grow(whole)
    expected = pres.predict(opened.model, whole, *asked(log()[:1_000]), batch_size=70).score
    assert found == pytest.approx(expected.tolist(), abs=1e-6)


def test_events_are_told_before_they_are_taken_in(run: Path) -> None:
    rows = log()
    done = updated(run, rows[BEGUN:1_000])
    opened = open_run(run)
    model, stream = opened.model, GrowingStream(opened.events).append(rows[BEGUN:1_000])
    model.grow(stream)
    known = model.memory.position
    cut = known + (BEGUN - known) // 70 * 70
    with torch.no_grad():
        for batch in TemporalBatches(stream[known:cut], 70):
            BatchReading(model, batch).take_in()
    (scores,) = link_scores(model, stream[cut:], [NegativeSampler(stream)], batch_size=70, negatives=100)
    new = scores.select(torch.arange(len(stream) - cut) >= BEGUN - cut)
    assert new is not None and done.metrics is not None
    assert done.metrics.events == 400 and done.metrics.ap == pytest.approx(new.metrics.ap, abs=1e-6)
    assert done.metrics.mrr == pytest.approx(new.metrics.mrr, abs=1e-6)
    assert [part["events"] for part in done.over_time] == [100] * 4
    assert [part["until"] for part in done.over_time] == [349, 399, 449, 499]
    mean = sum(part["mrr"] for part in done.over_time) / 4
    assert mean == pytest.approx(done.metrics.mrr, abs=1e-6)
    picture = run / "updates/000001/prequential.png"
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_ids_make_a_repeated_update_harmless(run: Path, tmp_path: Path) -> None:
    rows = log()
    updated(run, rows[BEGUN:700], event_id="id")
    before = files_of(run)
    (
        run / "updates/000001/.making"
    ).touch()  # as a kill leaves it that comes just after the update got its name
    again = updated(run, rows[BEGUN:700], event_id="id")
    assert again.folder is None and again.seen.duplicates == 100 and files_of(run) == before
    rows[650:720].write_csv(tmp_path / "more.csv")  # ids are text there
    more = update(run, open_table(tmp_path / "more.csv"), event_id="id")
    assert (more.seen.accepted, more.seen.duplicates, more.seen.position) == (20, 50, 720)


def test_what_is_refused_leaves_the_run_as_it_was(run: Path) -> None:
    rows, before = log(), files_of(run)
    wrong: list[tuple[pl.DataFrame, dict[str, Any], type[Exception], str]] = [
        (rows[:10], {}, OptionError, "A stream grows in the order of time"),
        (rows[BEGUN:700].drop("f0"), {}, OptionError, "lacks the stream's 1 numeric features"),
        (rows[BEGUN:700], {"event_id": "idd"}, ColumnError, "'idd' of event ids. Did you mean 'id'"),
    ]
    for events, options, kind, says in wrong:
        with pytest.raises(kind, match=says):
            updated(run, events, **options)
    with pytest.raises(SourceNotFoundError):
        updated(run / "none", rows[BEGUN:700])
    lock = take(run / ".lock", run)
    try:
        with pytest.raises(StorageError, match="is being written by"):
            updated(run, rows[BEGUN:700])
    finally:
        lock.release()
    assert files_of(run) == before
    late = updated(run, rows[590:700], late="arrival")
    assert late.seen.accepted == 110 and late.seen.late > 0


def test_prediction_in_a_terminal_goes_on_from_an_update(run: Path, tmp_path: Path) -> None:
    rows = log()
    rows[BEGUN:900].write_csv(tmp_path / "today.csv")
    done = pres_command("update", run, tmp_path / "today.csv", "--event-id", "id", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["run"], told["accepted"], told["duplicates"], told["late"]) == (str(run), 300, 0, 0)
    assert told["update"] == str(run / "updates/000001") and 0 < told["prequential"]["ap"] <= 1
    again = pres_command("update", run, tmp_path / "today.csv", "--event-id", "id")
    assert "0 events taken in, 300 known before" in again.stdout
    src, dst = asked(rows[:900])
    pl.DataFrame({"user": src, "item": dst}).write_csv(tmp_path / "pairs.csv")
    scored = pres_command("predict", run, tmp_path / "pairs.csv", "--out", tmp_path / "out.parquet")
    assert scored.returncode == 0, scored.stderr
    found = pl.read_parquet(tmp_path / "out.parquet")["score"].to_list()
    assert found == pytest.approx(pres.OnlineModel.open(run).score(src, dst).score.tolist(), abs=1e-6)
