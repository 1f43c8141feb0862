import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import pres
from pres.data import storing
from pres.data.store.folder import is_store
from pres.data.store.seal import seal
from pres.errors import OptionError, SourceNotFoundError, StorageError, UnreadableSourceError
from pres.sampling import NegativeSampler, TemporalIndex
from pres.storage import read_json, write_json
from tests.data.same import assert_same


@pytest.fixture
def events() -> pres.EventStream:
    return pres.load("synthetic", num_events=1_500)


@pytest.fixture
def store(tmp_path: Path, events: pres.EventStream) -> Path:
    return pres.write_store(events, tmp_path / "store")


def test_a_stream_is_the_same_after_a_stay_on_disk(store: Path, events: pres.EventStream) -> None:
    opened = pres.open_store(store)
    assert_same(opened, events)
    assert opened.info.origin is not None and opened.info.origin.source == str(store)
    assert_same(pres.read(store), events)
    again = pres.write_store(opened, store.with_name("again"))
    assert_same(pres.open_store(again), events)


def test_categories_node_features_and_strange_levels(tmp_path: Path) -> None:
    made = pres.EventStream(
        torch.tensor([0, 1]), torch.tensor([1, 2]), torch.tensor([0.5, 1.5]),
        categories=torch.tensor([[0, 1], [1, 0]]), node_x=torch.eye(3), directed=True,
    )  # fmt: skip
    assert_same(pres.open_store(pres.write_store(made, tmp_path / "s")), made)
    mixed = made.with_info(
        pres.data.info.StreamInfo(category_names=("p", "q"), category_levels=((1, "a"), (0, 1)))
    )
    with pytest.raises(OptionError, match="values of the category 'p' are of several types"):
        pres.write_store(mixed, tmp_path / "m")
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


def test_the_index_of_a_store_is_used_where_it_lies(store: Path, events: pres.EventStream) -> None:
    opened = pres.open_store(store)
    assert opened.index is not None
    index, wanted = TemporalIndex(opened), TemporalIndex(events)
    assert index._keys.data_ptr() == opened.index.keys.data_ptr()
    nodes, cutoffs = torch.arange(events.num_nodes), torch.full((events.num_nodes,), 1_200)
    ours, theirs = index.recent(nodes, cutoffs, 5), wanted.recent(nodes, cutoffs, 5)
    for name in ("nodes", "events", "t", "mask"):
        assert torch.equal(getattr(ours, name), getattr(theirs, name))
    inwards = TemporalIndex(opened, "in").recent(nodes, cutoffs, 5)  # another direction is made anew
    assert torch.equal(inwards.nodes, TemporalIndex(events, "in").recent(nodes, cutoffs, 5).nodes)


def test_a_part_of_a_store_has_no_index_but_the_whole_of_it_has(store: Path) -> None:
    opened = pres.open_store(store)
    assert opened.index is not None
    assert opened[:100].index is None and opened.split().train.index is None
    assert opened[:].index is opened.index and opened.without(edge=True).index is opened.index
    moved = opened.to("cpu").index
    assert moved is not None and moved.keys.data_ptr() == opened.index.keys.data_ptr()


@pytest.mark.parametrize("model", ["TGN", "JODIE", "APAN"])
def test_training_on_a_store_gives_the_bits_of_training_in_memory(
    store: Path, events: pres.EventStream, model: str
) -> None:
    found = []
    for stream in (pres.open_store(store), events):
        torch.manual_seed(0)
        made = getattr(pres, model)(stream, memory_dim=8)
        run = pres.fit(made, stream, epochs=1, batch_size=200, smoothing=pres.PRES(anchors=9))
        found.append((run.test, run.history[0].loss, run.events["fingerprint"]))
    assert found[0] == found[1]


def test_a_run_on_a_store_can_be_opened_again(store: Path, tmp_path: Path) -> None:
    from pres.training.opened import open_run

    opened = pres.open_store(store)
    made = pres.JODIE(opened, memory_dim=8)
    pres.fit(made, opened, epochs=1, out=tmp_path / "run")
    assert open_run(tmp_path / "run").events.index is not None


def test_negatives_of_a_store_are_those_in_memory(store: Path, events: pres.EventStream) -> None:
    opened = pres.open_store(store)
    for strategy in ("random", "historical"):
        ours, theirs = (NegativeSampler(e, strategy).sample(e[700:900]).nodes for e in (opened, events))
        assert torch.equal(ours, theirs)


def test_nothing_is_left_behind(
    tmp_path: Path, events: pres.EventStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(storing, "write_index", stop)
    with pytest.raises(KeyboardInterrupt):
        pres.write_store(events, tmp_path / "s")
    assert not list(tmp_path.iterdir())

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(storing, "write_index", full)
    with pytest.raises(
        StorageError, match=r"cannot write .*s: no space left on device. Nothing was left behind"
    ):
        pres.write_store(events, tmp_path / "s")
    assert not list(tmp_path.iterdir())


def test_what_exists_is_never_written_over(store: Path, events: pres.EventStream) -> None:
    for taken in (store, store / "src.npy"):
        with pytest.raises(StorageError, match=r"exists already\. Choose another name"):
            pres.write_store(events, taken)
    store.with_name("empty").mkdir()
    assert_same(pres.open_store(pres.write_store(events, store.with_name("empty"))), events)


def test_what_is_no_store_is_said(tmp_path: Path, store: Path) -> None:
    with pytest.raises(SourceNotFoundError, match=r"nowhere does not exist\. pres\.write_store"):
        pres.open_store(tmp_path / "nowhere")
    (tmp_path / "other").mkdir()
    with pytest.raises(SourceNotFoundError, match="other is no store"):
        pres.open_store(tmp_path / "other")
    with pytest.raises(SourceNotFoundError, match="other is a folder, and no store of events"):
        pres.read(tmp_path / "other")
    with pytest.raises(OptionError, match="is a store, written once for all; leave out src, bipartite"):
        pres.read(store, src="user", bipartite=True)
    with pytest.raises(OptionError, match="is a store already"):
        pres.write_store(store, tmp_path / "copy")


@pytest.mark.parametrize("name", ["a" * 5000, "a\0b", "~nobody-of-that-name/a", 7, None])
def test_what_can_be_no_folder_is_no_store(name: object) -> None:
    assert not is_store(name)


def test_a_damaged_store_is_said(store: Path) -> None:
    def damaged(name: str) -> Path:
        copy = store.with_name(name)
        shutil.copytree(store, copy)
        return copy

    cut = damaged("cut")
    with (cut / "t.npy").open("r+b") as file:
        file.truncate(1_000)
    gone = damaged("gone")
    (gone / "index-keys.npy").unlink()
    other = damaged("other")
    np.save(other / "src.npy", np.zeros(3, np.int64))
    for folder in (cut, gone, other):
        with pytest.raises(UnreadableSourceError, match=r"is damaged: .* Write it anew.") as caught:
            pres.open_store(folder)
        assert len(str(caught.value).splitlines()) == 1
    newer = damaged("newer")
    write_json(newer / "store.json", read_json(newer / "store.json") | {"format": 99})
    with pytest.raises(UnreadableSourceError, match="is of format 99, and this pres reads format 2"):
        pres.open_store(newer)
    (newer / "store.json").write_text("{")
    with pytest.raises(UnreadableSourceError, match=r"is damaged: .*store\.json is damaged"):
        pres.open_store(newer)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"events": "many"}, "in store.json, events: input should be a valid integer"),
        ({"num_nodes": None}, "in store.json, num_nodes: input should be a valid integer"),
        ({"info": {}}, "in store.json, info.name: field required"),
        ({"files": []}, "store.json is damaged: it names no files"),
        ({"files": {"t.npy": {}}}, "store.json is damaged: it names no files"),
        ({"files": {"t.npy": {"bytes": 3, "sha256": None}}}, "store.json is damaged: it names no files"),
        ({"columns": ["src", "dst"]}, "there is no t"),
        ({"columns": ["src", "dst", "t", "y"]}, "y.npy"),
        ({"num_nodes": 7}, "its files do not belong together"),
        ({"categories": 3}, "category-0.parquet"),
    ],
)
def test_what_is_said_about_a_store_is_held_against_a_schema(
    store: Path, changes: dict[str, Any], said: str
) -> None:
    write_json(store / "store.json", read_json(store / "store.json") | changes)
    with pytest.raises(UnreadableSourceError, match=re.escape(said)) as caught:
        pres.open_store(store)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "array", "said"),
    [
        ("t", np.zeros(3), "t.npy holds torch.float64 of shape [3]"),
        ("src", np.zeros(1_500, np.int32), "src.npy holds torch.int32"),
        ("dst", np.full(1_500, 10**6), "dst.npy names nodes from 1000000"),
        ("index-start", np.zeros(0, np.int64), "index-keys.npy holds"),
    ],
)
def test_arrays_that_were_sealed_wrong_are_told_by_their_type_length_and_range(
    store: Path, name: str, array: Any, said: str
) -> None:
    about = read_json(store / "store.json")
    np.save(store / f"{name}.npy", array)
    seal(store, "store.json", {key: value for key, value in about.items() if key != "files"})
    with pytest.raises(UnreadableSourceError, match=re.escape(said)):
        pres.open_store(store)


def test_without_verifying_sizes_are_compared_alone(store: Path) -> None:
    with (store / "t.npy").open("r+b") as file:
        file.seek(-3, 2)
        file.write(b"?")
    assert len(pres.open_store(store, verify=False)) == 1_500
    with pytest.raises(UnreadableSourceError, match=r"t\.npy is damaged: it is not what its checksum says"):
        pres.open_store(store)
    (store / "t.npy").write_bytes(b"")
    with pytest.raises(UnreadableSourceError, match=r"t\.npy is damaged: it has 0 bytes"):
        pres.open_store(store, verify=False)


def test_arguments_that_make_no_sense(tmp_path: Path, events: pres.EventStream) -> None:
    for source, options, said in (
        (events, {"src": "user"}, "an EventStream is written as it is; leave out src"),
        (events[10:], {}, "of a whole stream, not of a slice"),
        (events, {"at_once": 0}, "at_once=0"),
        (tmp_path / "a.csv", {"scr": "user"}, "no option 'scr'. Did you mean 'src'?"),
    ):
        (tmp_path / "a.csv").write_text("user,item,ts\n1,2,3\n2,3,4\n")
        with pytest.raises(OptionError, match=said):
            pres.write_store(source, tmp_path / "s", **options)
        assert not (tmp_path / "s").exists()
