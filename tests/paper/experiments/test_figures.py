"""Pictures: drawn from what there is, the same bytes for the same numbers."""

from typing import Any
from xml.etree import ElementTree

import pytest

from pres.paper.experiments.figures import rendered
from pres.paper.experiments.registry import EXPERIMENTS
from pres.paper.experiments.results import Results
from tests.paper.experiments.small import TINY


def row(**factors: Any) -> dict[str, Any]:
    place = {"dataset": "wikipedia", "model": "tgn", "smoothing": "off", "beta": 0.1}
    measures = {
        "ap": 0.9 + factors.get("seed", 0) / 100,
        "seconds": 2.0,
        "peak": 12.0,
        "iteration": [5, 10],
        "val_ap_of_epoch": [0.8, 0.9],
    }
    return {"factors": place | {"batch_size": 50} | factors, "measures": measures}


RESULTS = Results(
    TINY,
    (
        row(),
        row(seed=1),
        row(smoothing="equations", batch_size=200),
        row(smoothing="ours", batch_size=200),
        row(model="apan", dataset="mooc"),
    ),
)
DRAWN = [name for name, experiment in EXPERIMENTS.items() if experiment.draw is not None]


@pytest.mark.parametrize("name", DRAWN)
def test_every_declared_figure_is_drawn_and_twice_the_same(name: str) -> None:
    draw = EXPERIMENTS[name].draw
    assert draw is not None
    pictures = []
    for _ in range(2):
        figure = draw(RESULTS)
        assert figure is not None
        pictures.append((rendered(figure, "svg"), rendered(figure, "png")))
    assert pictures[0] == pictures[1]
    svg, png = pictures[0]
    assert ElementTree.fromstring(svg).tag.endswith("svg") and png.startswith(b"\x89PNG")


def test_where_nothing_was_measured_nothing_is_drawn() -> None:
    nothing = Results(TINY, ())
    assert [EXPERIMENTS[name].draw(nothing) for name in DRAWN] == [None] * len(DRAWN)  # type: ignore[misc]
