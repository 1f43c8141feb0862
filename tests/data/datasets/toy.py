"""Six events in the true formats of the public files, small enough to check by eye."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from pres.data.datasets.registry import Counts

# user, item, time, label, two features
EVENTS = [
    (0, 0, 0.0, 0, 0.5, -1.0),
    (1, 0, 2.5, 0, 0.25, 2.0),
    (0, 1, 2.5, 0, 1.5, 3.0),
    (2, 1, 4.0, 1, 0.125, 4.0),
    (1, 1, 7.0, 0, -2.0, 5.0),
    (1, 0, 9.0, 1, 8.0, 6.0),
]
COUNTS = Counts(events=6, nodes=5, src=3, dst=2, positives=2, edge_features=(2,))
SRC = [0, 1, 0, 2, 1, 1]
DST = [3, 3, 4, 4, 4, 3]  # items after the three users
T = [0.0, 2.5, 2.5, 4.0, 7.0, 9.0]
LABEL = [0, 0, 0, 1, 0, 1]
X = [[0.5, -1.0], [0.25, 2.0], [1.5, 3.0], [0.125, 4.0], [-2.0, 5.0], [8.0, 6.0]]

Publish = Callable[..., None]


def write_jodie(path: Path) -> Path:
    """Five names above, six fields below: the header is ragged in the real files too."""
    lines = ["user_id,item_id,timestamp,state_label,comma_separated_list_of_features"]
    lines += [",".join(str(value) for value in event) for event in EVENTS]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    return path


def write_tgl(folder: Path, base: int = 0) -> Path:
    """Items follow users; the labels are in another order than the edges of equal node and time."""
    folder.mkdir(parents=True)
    edges = [f"{k},{u + base},{i + 3 + base},{t},0,{k // 3}" for k, (u, i, t, *_) in enumerate(EVENTS)]
    (folder / "edges.csv").write_text("\n".join([",src,dst,time,int_roll,ext_roll", *edges]) + "\n")
    labels = [f"{k},{u + base},{t},{label},0" for k, (u, _, t, label, *_) in enumerate(sorted(EVENTS))]
    (folder / "labels.csv").write_text("\n".join([",node,time,label,ext_roll", *labels]) + "\n")
    torch.save(torch.tensor(X), folder / "edge_features.pt")
    return folder


def write_dgb(folder: Path, name: str) -> Path:
    """Ids and edge indices count from 1; row 0 of the features stands for no edge."""
    folder.mkdir(parents=True)
    rows = [f"{k},{u + 1},{i + 4},{t},{label},{k + 1}" for k, (u, i, t, label, *_) in enumerate(EVENTS)]
    (folder / f"ml_{name}.csv").write_text("\n".join([",u,i,ts,label,idx", *rows]) + "\n")
    np.save(folder / f"ml_{name}.npy", np.array([[0.0, 0.0], *X]))
    np.save(folder / f"ml_{name}_node.npy", np.zeros((6, 2)))
    return folder
