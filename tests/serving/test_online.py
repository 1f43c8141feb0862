"""`pres.OnlineModel` scores as `pres.predict` does on the grown stream, however events arrive."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import pres
from pres.data import EventStream, GrowingStream
from pres.errors import EmptySourceError, OptionError, RowCountError, UnknownIdError
from pres.models import MDGNN
from pres.serving import OnlineModel
from pres.smoothing import PRES
from pres.training.checkpoint import load_into
from pres.training.opened import open_run
from tests.models.conftest import KINDS, make

BEGUN, B = 30, 7  # events that a model is made with, and from one cut to the next
Row = tuple[str, str, int]


def log(n: int = 90, bipartite: bool = True) -> list[Row]:
    """A log with ties, repeats, ever new ids on both sides, and self-loops where sides are one."""
    generator = np.random.default_rng(4)
    src, dst = (
        generator.integers(0, 5, n) + np.arange(n) // 12,
        generator.integers(0, 4, n) + np.arange(n) // 15,
    )
    t = np.cumsum(generator.choice([0, 1, 3], n))
    other = "i" if bipartite else "u"
    return [(f"u{s}", f"{other}{d}", int(at)) for s, d, at in zip(src, dst, t, strict=True)]


def table(rows: Sequence[Row]) -> dict[str, list[Any]]:
    return {name: [row[place] for row in rows] for place, name in enumerate(("src", "dst", "t"))}


CASES: list[tuple[str, dict[str, Any]]] = [
    *((kind, {}) for kind in KINDS),
    *((kind, {"cell": "scan"}) for kind in KINDS),
    ("tgn", {"embed": "node", "visibility": "batch"}),
    ("jodie", {"aggregate": "mean"}),
]
SMOOTHED: list[tuple[str, dict[str, Any]]] = [("tgn", {"smoothing": True}), ("apan", {"smoothing": True})]


def begun(kind: str, options: dict[str, Any], bipartite: bool = True) -> tuple[MDGNN, EventStream]:
    """A model that has taken in some of a stream, and the stream."""
    options = dict(options)
    stream = pres.read(table(log(bipartite=bipartite)[:BEGUN]), src="src", dst="dst", t="t",
                       bipartite=bipartite, time_unit="s")  # fmt: skip
    smoothed = options.pop("smoothing", False)
    model = make(kind, stream, node_encoding_dim=2, **options)
    if smoothed:
        model.smoothing = PRES(live=True, components=1).build(model.memory)
    model.update_state(stream[:20])
    return model, stream


def asked(rows: Sequence[Row]) -> tuple[list[str], list[str]]:
    src, dst = sorted({row[0] for row in rows}), sorted({row[1] for row in rows})
    return [src[i % len(src)] for i in range(20)], [dst[i * 3 % len(dst)] for i in range(20)]


def by_predict(
    kind: str, options: dict[str, Any], rows: Sequence[Row], bipartite: bool = True
) -> torch.Tensor:
    """The scores just after the last row, by a model that was given all rows at once."""
    model, stream = begun(kind, options, bipartite)
    whole = stream if len(rows) == BEGUN else GrowingStream(stream).append(table(rows[BEGUN:]))
    model.grow(whole)
    return pres.predict(model, whole, *asked(rows), batch_size=B).score


@pytest.mark.parametrize("bipartite", [True, False])
@pytest.mark.parametrize(("kind", "options"), CASES + SMOOTHED, ids=str)
def test_scores_are_those_of_predict_after_every_event(
    kind: str, options: dict[str, Any], bipartite: bool
) -> None:
    rows = log(bipartite=bipartite)
    online = OnlineModel(*begun(kind, options, bipartite), batch_size=B)
    stop = BEGUN
    for step in (0, 1, 1, 4, 1, 13, 20, 1, 19):  # one by one, up to a cut, over one, over several
        if step:
            online.observe(table(rows[stop : stop + step]))
        stop += step
        expected = by_predict(kind, options, rows[:stop], bipartite)
        for _ in range(2):
            found = online.score(*asked(rows[:stop])).score
            assert torch.allclose(found, expected, atol=1e-12, rtol=0), stop
        assert online.position == stop and online.committed == 20 + (stop - 20) // B * B


@settings(max_examples=15)
@given(
    case=st.sampled_from(CASES + SMOOTHED),
    steps=st.lists(st.tuples(st.integers(1, 20), st.booleans()), max_size=8),
)
def test_scores_do_not_depend_on_how_events_arrive(
    case: tuple[str, dict[str, Any]], steps: list[tuple[int, bool]]
) -> None:
    rows = log()
    online, at_once = (OnlineModel(*begun(*case), batch_size=B) for _ in range(2))
    stop = BEGUN
    for step, ask in [*steps, (len(rows), False)]:
        if rows[stop : stop + step]:
            online.observe(table(rows[stop : stop + step]))
        stop += step
        if ask:
            online.score(*asked(rows[:stop]))
    at_once.observe(table(rows[BEGUN:]))
    found = online.score(*asked(rows)).score
    assert torch.allclose(found, at_once.score(*asked(rows)).score, atol=1e-12, rtol=0)
    states = online.state(), at_once.state()
    assert all(torch.equal(value, states[1][name]) for name, value in states[0].items())


@pytest.mark.parametrize(("kind", "options"), CASES + SMOOTHED, ids=str)
def test_a_state_and_the_log_bring_a_model_back_bit_for_bit(kind: str, options: dict[str, Any]) -> None:
    rows = log()
    online = OnlineModel(*begun(kind, options), batch_size=B)
    online.observe(table(rows[BEGUN:60]))
    online.score("u1", "i1")
    state = online.state()
    model, stream = begun(kind, options)
    again = GrowingStream(stream).append(table(rows[BEGUN:60]))
    model.reset()
    model.grow(again)
    load_into(model, state)
    back = OnlineModel(model, again, batch_size=B)
    for one in (online, back):
        one.observe(table(rows[60:]))
    assert torch.equal(online.score(*asked(rows)).score, back.score(*asked(rows)).score)
    states = online.state(), back.state()
    assert all(torch.equal(value, states[1][name]) for name, value in states[0].items())


def test_ids_make_repeats_harmless() -> None:
    rows = log()
    online, once = (OnlineModel(*begun("tgn", {}), batch_size=B) for _ in range(2))
    once.observe(table(rows[BEGUN:50]))
    first = online.observe(table(rows[BEGUN:40]), event_ids=range(BEGUN, 40))
    again = online.observe(table(rows[BEGUN:40]), event_ids=range(BEGUN, 40))
    both = online.observe(table([*rows[35:50], *rows[40:50]]), event_ids=[*range(35, 50), *range(40, 50)])
    assert (first.accepted, first.duplicates, first.position) == (10, 0, 40)
    assert (again.accepted, again.duplicates, again.new_nodes) == (0, 10, 0)
    assert (both.accepted, both.duplicates, both.position) == (10, 15, 50)
    assert torch.equal(online.events.src, once.events.src) and torch.equal(online.events.t, once.events.t)
    assert torch.equal(online.score(*asked(rows[:50])).score, once.score(*asked(rows[:50])).score)
    with pytest.raises(RowCountError, match="3 event_ids for 2 events"):
        online.observe(table(rows[50:52]), event_ids=[1, 2, 3])
    with pytest.raises(OptionError, match="event 2 of 2 has no id"):
        online.observe(table(rows[50:52]), event_ids=[50, None])
    assert online.observe(table(rows[49:51]), event_ids=["49", "50"]).rows.tolist() == [1]


@pytest.mark.filterwarnings("ignore::pres.errors.Notice")
def test_late_events_are_refused_or_taken_in_at_arrival() -> None:
    rows = log()
    strict = OnlineModel(*begun("tgn", {}), batch_size=B)
    last = rows[BEGUN - 1][2]
    mixed = [("u1", "i1", last + 5), ("new", "i1", last - 3), ("u2", "i2", last + 4), ("u2", "i2", last + 9)]
    before = strict.score(*asked(rows[:BEGUN])).score
    with pytest.raises(OptionError, match="event 2 of 4 is at"):
        strict.observe(table(mixed), event_ids=range(4))
    assert strict.position == BEGUN and torch.equal(strict.score(*asked(rows[:BEGUN])).score, before)
    with pytest.raises(UnknownIdError):
        strict.score("new", "i1")
    strict.observe(table(mixed[:1]), event_ids=[0])  # a refused id is not known
    assert strict.position == BEGUN + 1
    lenient = OnlineModel(*begun("tgn", {}), batch_size=B, late="arrival")
    found = lenient.observe(table(mixed))
    assert (found.accepted, found.late, found.new_nodes) == (4, 2, 1)
    assert lenient.events.t[BEGUN:].tolist() == [last + 5, last + 5, last + 5, last + 9]
    assert lenient.observe(table([("u1", "i1", 0)])).late == 1
    with pytest.raises(OptionError, match="late='drop' is not one of"):
        OnlineModel(*begun("tgn", {}), late="drop")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cell", ["gru", "scan"])
def test_recommended_are_the_best_of_all_destinations(kind: str, cell: str) -> None:
    rows = log()
    options = {} if cell == "gru" else {"cell": "scan"}
    online = OnlineModel(*begun(kind, options), batch_size=B)
    for start in range(BEGUN, len(rows), 11):
        online.observe(table(rows[start : start + 11]))
        known = rows[: start + 11]
        every = sorted({row[1] for row in known})
        for source in ("u1", known[-1][0]):
            scores = dict(zip(every, online.score(source, every).score.tolist(), strict=True))
            found = online.recommend(source, 3)
            assert found.ids == sorted(every, key=lambda item: -scores[item])[:3]
            assert found.score.tolist() == pytest.approx([scores[item] for item in found.ids], abs=1e-12)
            met = {row[1] for row in known if row[0] == source}
            unmet = online.recommend(source, 99, exclude_known=True)
            assert set(unmet.ids) == set(every) - met
    with pytest.raises(UnknownIdError, match="'nobody' never occurs"):
        online.recommend("nobody")
    fresh = online.recommend("nobody", 2, unknown="new")
    assert torch.allclose(fresh.score, online.score("nobody", fresh.ids, unknown="new").score, atol=1e-12)
    wrongs: list[tuple[dict[str, Any], str]] = [({"k": 0}, "k=0"), ({"unknown": "old"}, "unknown='old'")]
    for wrong, says in wrongs:
        with pytest.raises(OptionError, match=says):
            online.recommend("u1", **wrong)
    with pytest.raises(OptionError, match="one source"):
        online.recommend(["u1", "u2"])


def test_who_met_whom_is_kept_of_streams_of_one_kind_of_nodes() -> None:
    rows = log(bipartite=False)
    online = OnlineModel(*begun("jodie", {}, bipartite=False), batch_size=B)
    online.observe(table(rows[BEGUN:]))
    for source in ("u3", rows[-1][0]):
        met = {row[1] for row in rows if row[0] == source} | {row[0] for row in rows if row[1] == source}
        unmet = online.recommend(source, 99, exclude_known=True)
        assert set(unmet.ids) == {row[1] for row in rows} - met


@pytest.mark.parametrize(("kind", "options"), CASES, ids=str)
def test_a_score_is_the_decoder_of_two_embeddings(kind: str, options: dict[str, Any]) -> None:
    rows = log()
    online = OnlineModel(*begun(kind, options), batch_size=B)
    online.observe(table(rows[BEGUN:53]))
    src, dst = asked(rows[:53])
    with torch.no_grad():
        logits = online.model.link(online.embedding(src), online.embedding(dst, side="dst"))
    assert torch.allclose(logits.sigmoid(), online.score(src, dst).score, atol=1e-10)
    with pytest.raises(UnknownIdError):
        online.embedding("i1")


def test_a_time_that_has_passed_counts_as_now_and_new_ids_have_no_history() -> None:
    model, stream = begun("tgn", {})
    online = OnlineModel(model, stream, batch_size=B)
    last = int(stream.t[-1])
    now = online.score("u1", "i1").score
    assert torch.equal(online.score("u1", "i1", [last, last - 5]).score, now.repeat(2))
    other, same = begun("tgn", {})
    later = pres.predict(other, same, "u1", "i1", last + 30, batch_size=B).score
    assert torch.equal(online.score("u1", "i1", last + 30).score, later) and not torch.equal(later, now)
    new = pres.predict(other, same, ["zed", "u1"], "i1", batch_size=B, unknown="new")
    assert torch.allclose(online.score(["zed", "u1"], "i1", unknown="new").score, new.score, atol=1e-12)


@pytest.mark.filterwarnings("ignore::pres.errors.Notice")
def test_a_run_goes_on_from_where_its_validation_ended(tmp_path: Any) -> None:
    made = pres.load("synthetic", num_events=1_000)
    assert made.x is not None
    ids = {"user": made.ids.decode(made.src), "item": made.ids.decode(made.dst)}
    whole = pl.DataFrame(ids | {"ts": made.t.numpy(), "f0": made.x[:, 0].numpy()})
    whole[:800].write_parquet(tmp_path / "log.parquet")
    events = pres.read(tmp_path / "log.parquet")
    pres.fit(pres.JODIE(events, memory_dim=8), events, epochs=1, batch_size=50, out=tmp_path / "run")
    online, run = pres.OnlineModel.open(tmp_path / "run"), open_run(tmp_path / "run")
    batch = run.config["eval_batch_size"]
    known = run.model.memory.position
    assert known == len(events) - len(events.split().test) and online.batch_size == batch
    assert online.position == 800 and online.committed == known + (800 - known) // batch * batch
    src, dst = whole["user"][-40:], whole["item"][:40]
    seen = events.ids.find_src(src) >= 0
    for rows in (whole[800:801], whole[801:]):
        expected = pres.predict(run.model, online.events, src, dst, batch_size=batch, unknown="new").score
        found = online.score(src, dst, unknown="new")
        assert torch.allclose(found.score, expected, atol=1e-5) and found.score[seen].std() > 0
        online.observe(rows)
        run.model.grow(online.events)
    expected = pres.predict(run.model, online.events, src, dst, batch_size=batch).score
    assert torch.allclose(online.score(src, dst).score, expected, atol=1e-5)


@pytest.mark.filterwarnings("ignore::pres.errors.Notice")
def test_what_cannot_be_observed_is_one_line() -> None:
    online = OnlineModel(*begun("tgn", {}), batch_size=B)
    with pytest.raises(EmptySourceError):
        online.observe({"src": [], "dst": [], "t": []})
    with pytest.raises(OptionError, match="does not fit 64 bits"):  # nothing could be asked just after it
        online.observe({"src": ["u1"], "dst": ["i1"], "t": [2**63 - 1]})
    online.observe({"src": ["u1"], "dst": ["i1"], "t": [2**62]})  # 20 spans of the stream do not fit
    online.observe({"src": ["u1"], "dst": ["i1"], "t": [2**62]})
    assert online.score("u1", "i1").score.isfinite().all()
    with pytest.raises(OptionError, match="batch_size=0"):
        OnlineModel(*begun("tgn", {}), batch_size=0)
