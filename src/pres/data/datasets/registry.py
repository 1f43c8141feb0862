"""The datasets `pres.load` knows by name: published counts, where they come from, whom to cite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pres.errors import UnknownDatasetError, nearest

_JODIE = "S. Kumar, X. Zhang, J. Leskovec. Predicting Dynamic Embedding Trajectory. KDD 2019."
_TGL = "H. Zhou et al. TGL: A General Framework for Temporal GNN Training. PVLDB 15(8), 2022."
_TGB = "S. Huang et al. Temporal Graph Benchmark. NeurIPS 2023 Datasets and Benchmarks."
_DGB = "F. Poursafaei et al. Towards Better Evaluation for Dynamic Link Prediction. NeurIPS 2022."
_UCI = "P. Panzarasa, T. Opsahl, K. M. Carley. Patterns and dynamics of users' behavior. JASIST 60(5), 2009."
_ICEWS = "W. Jin et al. Recurrent Event Network. EMNLP 2020 (ICEWS Coded Event Data, Harvard Dataverse)."

_JODIE_URL = "https://snap.stanford.edu/jodie"
_TGL_URL = "https://s3.us-west-2.amazonaws.com/dgl-data/dataset/tgl"
_TGB_URL = "https://object-arbutus.alliancecan.ca/swift/v1/14c95234f6cd4a21a47deafe20cce2a7/tgb"
_RENET_URL = "https://raw.githubusercontent.com/INK-USC/RE-Net/master/data/ICEWS18"


@dataclass(frozen=True)
class Counts:
    """The published counts of a dataset, checked at every load."""

    events: int
    nodes: int
    src: int | None = None  # bipartite: number of sources
    dst: int | None = None  # bipartite: number of destinations
    positives: int | None = None  # events with a non-zero label; None where no labels are published
    edge_features: tuple[int, ...] = (0,)  # widths found in public copies, the usual first; 0: none exist
    node_features: int = 0
    relations: int = 0  # kinds of events

    def absences(
        self, *, edge_features: bool, node_features: bool, labels: bool, relations: bool
    ) -> tuple[str, ...]:
        """Return what is published with the dataset but absent from a copy that has only the named parts."""
        no_edge_features = not edge_features and 0 not in self.edge_features
        no_node_features = not node_features and self.node_features > 0
        absent = {
            "no edge features": no_edge_features,
            "no node features": no_node_features,
            "no labels": not labels and self.positives is not None,
            "no relations": not relations and self.relations > 0,
        }
        if no_edge_features and (no_node_features or not self.node_features):
            absent |= {"no edge features": False, "no node features": False}
            absent = {"featureless": True} | absent
        return tuple(name for name, is_absent in absent.items() if is_absent)


@dataclass(frozen=True)
class Download:
    """One public file."""

    url: str
    sha256: str | None = None  # None where the publisher gives none: pinned at the first download

    @property
    def file(self) -> str:
        """The name under which the file is kept."""
        return self.url.partition("?")[0].rpartition("/")[2]


@dataclass(frozen=True)
class Dataset:
    """A public dataset: what it should hold and how its copies are recognised."""

    name: str
    title: str
    counts: Counts | None  # None for the embedded stream, whose size is the user's choice
    time_unit: str | None = "s"
    citation: str = ""
    formats: tuple[str, ...] = ("parquet",)  # layouts a copy can have, the first found is taken
    folders: tuple[str, ...] = ()  # other names its folder has in public collections
    archives: tuple[str, ...] = ()  # other names its zip file has
    downloads: tuple[Download, ...] = ()
    parts: Mapping[str, Counts] = field(default_factory=dict)  # published samples of the dataset
    by_hand: str = ""  # how to get what is not downloaded

    @property
    def embedded(self) -> bool:
        """Whether the stream is made by the library itself."""
        return self.counts is None

    def names_folder(self, name: str) -> bool:
        """Return whether a folder of this name belongs to the dataset."""
        return name.casefold() in {known.casefold() for known in (self.name, *self.folders)}

    def names_archive(self, file: str) -> bool:
        """Return whether a zip file of this name belongs to the dataset."""
        stem, dot, ending = file.casefold().rpartition(".")
        known = {name.casefold() for name in (self.name, *self.folders, *self.archives)}
        return bool(dot) and ending == "zip" and stem in known


def _jodie(name: str, title: str, counts: Counts, tgl: str) -> Dataset:
    return Dataset(
        name=name,
        title=title,
        counts=counts,
        citation=_JODIE,
        formats=("parquet", "jodie", "tgl", "dgb"),
        folders=(tgl,),
        downloads=(Download(f"{_JODIE_URL}/{name}.csv"),),
    )


def _tgb(name: str, title: str, counts: Counts, archive: str) -> Dataset:
    return Dataset(
        name=name,
        title=title,
        counts=counts,
        citation=_TGB,
        formats=("parquet", "tgb"),
        folders=(name.replace("-", "_"), archive),
        downloads=(Download(f"{_TGB_URL}/{archive}.zip"),),
    )


_ALL = (
    _jodie(
        "wikipedia",
        "JODIE: edits of Wikipedia pages",
        Counts(157_474, 9_227, 8_227, 1_000, positives=217, edge_features=(172,)),
        tgl="WIKI",
    ),
    _jodie(
        "reddit",
        "JODIE: posts in subreddits",
        Counts(672_447, 10_984, 10_000, 984, positives=366, edge_features=(172,)),
        tgl="REDDIT",
    ),
    _jodie(
        "mooc",
        "JODIE: actions in an online course",
        Counts(411_749, 7_144, 7_047, 97, positives=4_066, edge_features=(4,)),
        tgl="MOOC",
    ),
    _jodie(
        "lastfm",
        "JODIE: songs listened to",
        # Public copies carry two columns, both 0 throughout: by JODIE's convention, no features.
        Counts(1_293_103, 1_980, 980, 1_000, edge_features=(0, 2)),
        tgl="LASTFM",
    ),
    Dataset(
        name="gdelt",
        title="TGL: world events in the news, 2016 to 2020",
        # The papers count 186 edge features, readers of the shipped tensor 182.
        counts=Counts(191_290_882, 16_682, edge_features=(182, 186), node_features=413),
        time_unit=None,  # an index of quarters of an hour
        citation=_TGL,
        formats=("parquet", "tgl"),
        folders=("GDELTLite", "GDELT_lite"),
        downloads=(Download("https://data.pyg.org/datasets/gdelt_lite.zip"),),
        parts={
            "1% sample": Counts(1_912_909, 8_831, edge_features=(186, 182), node_features=413),
        },
        by_hand=(
            f"The download is the 1% sample; for the whole (42 GiB) fetch edges.csv, edge_features.pt and "
            f"node_features.pt from {_TGL_URL}/GDELT/ into a folder GDELT inside the one PRES_DATA names."
        ),
    ),
    Dataset(
        name="uci",
        title="CollegeMsg: private messages at UC Irvine",
        counts=Counts(59_835, 1_899),
        citation=_UCI,
        formats=("parquet", "snap", "dgb"),
        folders=("CollegeMsg",),
        downloads=(Download("https://snap.stanford.edu/data/CollegeMsg.txt.gz"),),
    ),
    Dataset(
        name="enron",
        title="DGB: e-mails within Enron",
        counts=Counts(125_235, 184, edge_features=(32,)),
        citation=_DGB,
        formats=("parquet", "dgb"),
        downloads=(Download("https://zenodo.org/records/7213796/files/enron.zip?download=1"),),
    ),
    Dataset(
        name="icews18",
        title="ICEWS18: political events of 2018",
        counts=Counts(468_558, 23_033, relations=256),
        time_unit="h",
        citation=_ICEWS,
        formats=("parquet", "renet"),
        downloads=tuple(Download(f"{_RENET_URL}/{part}.txt") for part in ("train", "valid", "test")),
    ),
    _tgb(
        "tgbl-wiki",
        "TGB: edits of Wikipedia pages",
        Counts(157_474, 9_227, 8_227, 1_000, edge_features=(172,)),
        archive="tgbl-wiki-v2",
    ),
    _tgb(
        "tgbl-review",
        "TGB: ratings of Amazon products",
        Counts(4_873_540, 352_637, edge_features=(1,)),
        archive="tgbl-review-v2",
    ),
    _tgb(
        "tgbl-coin",
        "TGB: transfers of stablecoins",
        Counts(22_809_486, 638_486, edge_features=(1,)),
        archive="tgbl-coin-v2",
    ),
    _tgb(
        "tgbl-comment",
        "TGB: replies on Reddit",
        Counts(44_314_507, 994_790, edge_features=(2,)),
        archive="tgbl-comment",
    ),
    _tgb(
        "tgbl-flight",
        "TGB: flights between airports",
        # The table of airports is not read, so a stream of it is the variant "no node features".
        Counts(67_169_570, 18_143, edge_features=(16,), node_features=20),
        archive="tgbl-flight-v2",
    ),
    Dataset(name="synthetic", title="Embedded: a generated stream of any size", counts=None, formats=()),
)

DATASETS: Mapping[str, Dataset] = {dataset.name: dataset for dataset in _ALL}


def find_dataset(name: str) -> Dataset:
    """Return the dataset of this name; upper and lower case are the same."""
    found = DATASETS.get(str(name).casefold())
    if found is None:
        hint = " To read a file of your own, use pres.read." if Path(str(name)).suffix else ""
        raise UnknownDatasetError(
            f"there is no dataset {str(name)!r}.{nearest(str(name), DATASETS)}{hint} "
            f"Known are {', '.join(DATASETS)}."
        )
    return found
