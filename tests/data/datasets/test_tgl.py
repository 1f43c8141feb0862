import pickle
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from pres.data.datasets.load import load
from pres.data.datasets.registry import Counts
from pres.errors import (
    ColumnError,
    DatasetUnavailableError,
    OptionError,
    RowCountError,
    UnreadableSourceError,
)
from tests.data.datasets.toy import COUNTS, DST, LABEL, SRC, Publish, T, X, write_tgl

GDELT = Counts(events=6, nodes=4, edge_features=(3,), node_features=2)
NODE_X = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0], [1.0, 0.0]]  # node 3 has no event


def write_gdelt(folder: Path, events: int = 6) -> torch.Tensor:
    folder.mkdir(parents=True)
    pairs = [(0, 1), (1, 2), (0, 4), (4, 1), (2, 2), (1, 0)]
    rows = [f"{k},{pairs[k % 6][0]},{pairs[k % 6][1]},{k // 2},0" for k in range(events)]
    (folder / "edges.csv").write_text("\n".join([",src,dst,time,ext_roll", *rows]) + "\n")
    codes = torch.tensor([[k % 2 == 0, True, k % 3 == 0] for k in range(events)])
    torch.save(codes, folder / "edge_features.pt")
    torch.save(torch.tensor(NODE_X), folder / "node_features.pt")
    (folder / "labels.csv").write_text(",node,time,label,ext_roll\n0,3,0,80,0\n")
    return codes


@pytest.mark.parametrize("base", [0, 1])
@pytest.mark.parametrize("folder", ["WIKI", "wikipedia"])
def test_features_by_row_and_labels_by_node_and_time(
    data: Path, publish: Publish, folder: str, base: int
) -> None:
    publish("wikipedia", COUNTS)
    write_tgl(data / folder, base)
    events = load("wikipedia")
    assert (events.src.tolist(), events.dst.tolist(), events.t.tolist()) == (SRC, DST, T)
    assert events.x is not None and events.x.tolist() == X
    assert events.label is not None and events.label.tolist() == LABEL
    assert events.info.variant is None


def test_two_labels_of_one_node_at_one_time_go_to_its_two_events(data: Path, publish: Publish) -> None:
    publish("wikipedia", replace(COUNTS, events=3, src=1, nodes=3, positives=1))
    folder = data / "WIKI"
    folder.mkdir()
    (folder / "edges.csv").write_text(",src,dst,time,ext_roll\n0,0,1,5,0\n1,0,2,5,0\n2,0,1,6,0\n")
    (folder / "labels.csv").write_text(",node,time,label,ext_roll\n0,0,5,0,0\n1,0,5,1,0\n")
    events = load("wikipedia")
    assert events.label is not None and events.label.tolist() == [0, 1, 0]


def test_the_folders_without_features_and_labels_say_so(data: Path, publish: Publish) -> None:
    publish("mooc", COUNTS)
    folder = write_tgl(data / "MOOC")
    (folder / "labels.csv").unlink()
    (folder / "edge_features.pt").unlink()
    events = load("mooc")
    assert events.x is None and events.label is None
    assert events.info.title == "mooc (featureless, no labels)"
    assert "mooc (featureless, no labels)" in repr(events)


def test_gdelt_codes_become_numbers_and_nodes_keep_their_features(data: Path, publish: Publish) -> None:
    publish("gdelt", GDELT, parts={})
    codes = write_gdelt(data / "GDELT")
    events = load("gdelt")
    assert events.x is not None and events.x.dtype == torch.float32
    assert events.x.tolist() == codes.float().tolist()
    assert not events.bipartite and events.label is None
    assert events.dst.tolist() == [1, 2, 3, 1, 2, 0]  # node 4 moved to 3, which has no event
    assert events.node_x is not None
    assert events.node_x.tolist() == [NODE_X[0], NODE_X[1], NODE_X[2], NODE_X[4]]
    assert events.ids.decode(events.dst).to_list() == [1, 2, 4, 1, 2, 0]
    assert events.ids.encode_src([4]).tolist() == [3]
    assert events.info.variant is None


def test_features_can_be_left_out(data: Path, publish: Publish) -> None:
    publish("gdelt", GDELT, parts={})
    write_gdelt(data / "GDELT")
    events = load("gdelt", features=False)
    assert events.x is None and events.node_x is None
    assert events.info.title == "gdelt (featureless)"


def test_a_node_of_the_feature_table_that_never_acts_counts_with_or_without_features(
    data: Path, publish: Publish
) -> None:
    publish("gdelt", replace(GDELT, nodes=5), parts={})  # node 3 has features and no event
    write_gdelt(data / "GDELT")
    for _ in range(2):  # from the files, then from the converted copy
        assert load("gdelt").num_nodes == 4
        events = load("gdelt", features=False)
        assert events.num_nodes == 4 and events.node_x is None
        assert events.info.title == "gdelt (featureless)"


@pytest.mark.parametrize("whole", [600, 599])  # 191,290,882 events are a little under 100 per event too
def test_a_published_part_is_taken_from_the_whole_and_named(data: Path, publish: Publish, whole: int) -> None:
    publish("gdelt", replace(GDELT, events=whole), parts={"1% sample": replace(GDELT, events=6, nodes=4)})
    codes = write_gdelt(data / "GDELT", events=whole)
    events = load("gdelt", part="1% sample")
    assert events.t.tolist() == [0, 50, 100, 150, 200, 250]  # events 0, 100, 200, …
    assert events.x is not None and events.x.tolist() == codes[::100].float().tolist()
    assert events.info.title == "gdelt (1% sample)"
    assert load("gdelt").info.variant is None


def test_the_part_on_its_own_is_recognised(data: Path, publish: Publish) -> None:
    publish("gdelt", replace(GDELT, events=600), parts={"1% sample": GDELT})
    write_gdelt(data / "GDELT")
    assert load("gdelt").info.variant == "1% sample"
    with pytest.raises(OptionError, match="'2% sample' is not one of '1% sample'"):
        load("gdelt", part="2% sample")


def test_the_part_is_read_from_its_zip(data: Path, tmp_path: Path, publish: Publish) -> None:
    publish("gdelt", replace(GDELT, events=600), parts={"1% sample": GDELT})
    codes = write_gdelt(tmp_path / "elsewhere")
    with zipfile.ZipFile(data / "gdelt_lite.zip", "w") as archive:
        for path in (tmp_path / "elsewhere").iterdir():
            archive.write(path, f"gdelt_lite/{path.name}")
    for _ in range(2):  # unpacked the first time, from the converted copy the second
        events = load("gdelt")
        assert events.x is not None and events.x.tolist() == codes.float().tolist()
        assert events.node_x is not None and len(events.node_x) == 4
        assert events.info.title == "gdelt (1% sample)"


class Trap:
    """What a hostile file would contain: something that runs when it is unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (Path.touch, (Path("sprung"),))  # type: ignore[return-value]


def test_a_tensor_file_cannot_execute_anything(
    data: Path, publish: Publish, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish("wikipedia", COUNTS)
    folder = write_tgl(data / "WIKI")
    monkeypatch.chdir(data)
    torch.save(Trap(), folder / "edge_features.pt")
    with pytest.raises(UnreadableSourceError, match="could execute code"):
        load("wikipedia")
    (folder / "edge_features.pt").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(UnreadableSourceError, match=r"edge_features.pt"):
        load("wikipedia")
    assert not (data / "sprung").exists()


def test_broken_parts_are_named(data: Path, publish: Publish) -> None:
    publish("wikipedia", COUNTS)
    folder = write_tgl(data / "WIKI")
    whole = (folder / "edge_features.pt").read_bytes()
    for content in (whole[: len(whole) // 2], b"", b"not a tensor at all"):
        (folder / "edge_features.pt").write_bytes(content)
        with pytest.raises(UnreadableSourceError, match=r"edge_features.pt"):
            load("wikipedia")
    torch.save({"x": torch.tensor(X)}, folder / "edge_features.pt")
    with pytest.raises(UnreadableSourceError, match="holds dict"):
        load("wikipedia")
    torch.save(torch.tensor(X)[:4], folder / "edge_features.pt")
    with pytest.raises(RowCountError, match="x has 4 rows for 6 events"):
        load("wikipedia")
    torch.save(torch.tensor(X).log(), folder / "edge_features.pt")
    with pytest.raises(UnreadableSourceError, match=r"edges\.csv: x holds a value in row 0"):
        load("wikipedia")
    (folder / "edges.csv").write_text(",source,dst,time\n0,0,3,0.0\n")
    with pytest.raises(ColumnError, match="no column 'src'"):
        load("wikipedia")


def test_node_features_that_do_not_reach_every_node_are_named(data: Path, publish: Publish) -> None:
    publish("gdelt", GDELT, parts={})
    write_gdelt(data / "GDELT")
    torch.save(torch.tensor(NODE_X)[:4], data / "GDELT" / "node_features.pt")
    with pytest.raises(RowCountError, match="the node features have 4 rows, but there is a node 4"):
        load("gdelt")


def test_an_edge_list_outside_a_folder_of_the_dataset_is_not_taken_for_it(data: Path) -> None:
    write_tgl(data / "somebody")
    with pytest.raises(DatasetUnavailableError):
        load("wikipedia", download=False)
