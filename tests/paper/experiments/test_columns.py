"""Columns: differences, speed-ups and the paper's cells, by hand."""

from typing import Any

import pytest

from pres.paper.experiments import paper
from pres.paper.experiments.columns import COLUMNS, columns
from pres.paper.experiments.declaration import Request
from pres.paper.experiments.findings import (
    of_batch_sizes,
    of_betas,
    of_classification,
    of_datasets,
    of_efficiency,
    of_extended,
    of_memory,
    of_parts,
    of_small_batches,
    of_table_1,
)
from pres.paper.experiments.registry import EXPERIMENTS
from pres.paper.experiments.results import Results, gathered
from pres.paper.experiments.table import Spread
from tests.paper.experiments.small import TINY


def row(smoothing: str, b: int, ap: float, seconds: float, seed: int = 0, **more: Any) -> dict[str, Any]:
    factors = {"dataset": "wikipedia", "model": "tgn", "smoothing": smoothing, "batch_size": b}
    measures = {"ap": ap, "seconds": seconds, "peak": 100 * seconds, "variant": "featureless"}
    measures |= {"first_ap": ap - 0.1, "last_ap": ap, "val_ap": ap + 0.01, "label_auc": ap - 0.2}
    return {"factors": factors | {"seed": seed} | more, "measures": measures}


RESULTS = Results(
    TINY,
    (
        row("off", 50, 0.90, 8.0),
        row("off", 50, 0.92, 10.0, seed=1),
        row("equations", 200, 0.88, 3.0),
        row("equations", 200, 0.90, 3.0, seed=1),
        row("off", 200, 0.80, 2.0),
    ),
)


def test_seeds_are_gathered() -> None:
    off, pres, large = RESULTS.places
    assert off["ap"].mean == pytest.approx(91)
    assert off["ap"].std == pytest.approx(2**0.5) and off["ap"].count == off["seeds"] == 2
    assert pres["smoothing"] == "equations" and large["ap"] == Spread(80.0, None, 1) and large["gain"] is None
    assert RESULTS.where(smoothing="S") == [] and RESULTS.distinct("batch_size") == [50, 200]


def test_speed_and_loss_are_against_the_smaller_batch_without_pres() -> None:
    off, pres, large = RESULTS.places
    assert [place["speed_up"].mean for place in RESULTS.places] == [1.0, 3.0, 4.5]
    assert off["ap_against_small"].mean == 0 and large["ap_against_same"].mean == 0
    changed = pres["ap_against_small"]
    assert changed.mean == pytest.approx(-2.0) and changed.count == 2
    assert changed.error == pytest.approx(0.0)  # by as much with either seed, though AP itself differs
    assert pres["ap_against_same"].count == 1  # the other seed has nothing to be held against
    one_seed = large["ap_against_small"]  # of its own seed, not of the mean over all
    assert one_seed.mean == pytest.approx(-10.0) and one_seed.error is None


def test_another_rate_or_length_is_not_held_against_this_one() -> None:
    other = [row("off", 50, 0.5, 1.0, lr=0.1), row("equations", 200, 0.6, 1.0, lr=0.1, epochs=3)]
    *_, slow, long = Results(TINY, (*RESULTS.rows, *other)).places
    assert slow["ap_against_small"].mean == 0 and long["ap_against_small"] is None
    assert long["speed_up"] is None


def test_seconds_are_those_that_were_timed_in_turns_if_there_are_any() -> None:
    timed = [row("off", 50, 0, 6.0, measurement="speed"), row("equations", 200, 0, 2.0, measurement="speed")]
    places = Results(TINY, (*RESULTS.rows, *timed)).places
    assert len(places) == 3
    faster = [place["speed_up"] for place in places]
    assert [one and one.mean for one in faster] == [1.0, 3.0, None]  # the last was not timed


def test_a_job_that_times_all_arms_has_a_row_for_each() -> None:
    (point,) = EXPERIMENTS["speed"].points(Request(TINY, 1, {"synthetic": "embedded"}, ("synthetic",)))[:1]
    epochs = {arm: [1.0, 2.0, 9.0 + i] for i, arm in enumerate(point.job.settings["arms"])}
    places = gathered(TINY, [(point, {"epochs": epochs, "variant": None, "seconds": 9.0})]).places
    assert [(place["smoothing"], place["batch_size"]) for place in places] == TINY.arms
    assert [place["seconds"].mean for place in places] == [2.0] * 5


def test_the_papers_cell_stands_beside_ours() -> None:
    names = (
        "dataset",
        "smoothing",
        "ap",
        "paper_ap",
        "ap_difference",
        "paper_seconds",
        "speed_up",
        "paper_speed_up",
    )
    table = columns(*names)(RESULTS)
    off, pres, large = table.rows
    assert off[0] == "wikipedia (featureless)" and off[1] == "without"
    assert (
        off[3] == Spread(97.8, 0.1, 5, printed=True) and off[4] == pytest.approx(91 - 97.8) and off[5] == 87
    )
    assert pres[3] == Spread(97.5, 0.3, 5, printed=True) and pres[4] == pytest.approx(89 - 97.5)
    assert pres[6] == 3.0 and pres[7] == 3.2
    assert large[3] is None and large[4] is None  # not in the paper
    assert columns(*names)(Results(TINY, RESULTS.rows[2:])).rows[-1][3] is None  # whatever else is there
    assert isinstance(off[2], Spread)
    assert not COLUMNS["speed_up"].heading.repeatable and COLUMNS["ap"].heading.repeatable


def test_places_that_look_alike_are_one_row() -> None:
    again = Results(TINY, (*RESULTS.rows, row("off", 50, 0.90, 8.0, more="than the table shows")))
    assert len(columns("dataset", "batch_size", "smoothing")(again).rows) == 3


def test_findings_are_made_from_the_numbers() -> None:
    lines = of_table_1(RESULTS)
    assert lines[0] == (
        "without at b = 200 against b = 50 without PRES: AP −10.0 points, at a speed-up of 4.50, on average "
        "over 1 pair."
    )
    assert lines[1] == (
        "Eqs. 6–8, 10 at b = 200 against b = 50 without PRES: AP −2.0 points, +8.0 against the same batch "
        "without, at a speed-up of 3.00, on average over 1 pair."
    )
    assert len(lines) == 3
    points = paper.trade_offs()
    mean = sum(lost for _, lost in points) / 15
    assert f"AP −{mean:.1f} points" in lines[-1]
    more = Results(TINY, (*RESULTS.rows, row("equations", 50, 0.93, 8.0)))
    assert "changes by −11.0 points without and by −4.0 with PRES (Eqs" in of_batch_sizes(more)[0]
    assert "Eqs. 6–8, 10 +8.0" in of_parts(Results(TINY, RESULTS.rows[2:]))[0]
    assert "+100 MiB at b = 200" in of_memory(RESULTS)[0]
    assert of_small_batches(RESULTS) == ["Best on wikipedia: TGN b = 50 (91.0 %)."]


def test_the_gap_of_long_training_is_that_of_the_first_and_of_the_last_epoch() -> None:
    rows = [row("off", 50, 0.90, 8.0, epochs=3), row("equations", 200, 0.88, 3.0, epochs=3)]
    rows[1]["measures"]["first_ap"] = 0.60
    assert of_extended(Results(TINY, tuple(rows))) == [
        "b = 200 with PRES (Eqs. 6–8, 10) against b = 50 without changes validation AP by −20.0 points after "
        "epoch 1, and by −2.0 after epoch 3, on average over 1 pair."
    ]


def test_the_means_of_classification_stand_beside_the_papers() -> None:
    lines = of_classification(RESULTS)
    assert lines[1].startswith("Eqs. 6–8, 10 at b = 200 against b = 50 without PRES: ROC-AUC −2.0 points")
    assert lines[-1] == "The paper's Table 2: ROC-AUC −0.4 points, on average over its 9 pairs."


def test_efficiency_and_betas_are_told_by_validation() -> None:
    same_size = Results(TINY, (row("off", 100, 0.90, 8.0), row("equations", 100, 0.91, 8.0)))
    (line,) = of_efficiency(same_size)
    assert "by +1.0 points after epoch 1, and by +1.0 at its best, on average over 1 pair." in line
    betas = [
        row("equations", 100, ap, 1.0, beta=beta, dataset=name)
        for name, best in (("wikipedia", 0.1), ("mooc", 0.5))
        for beta, ap in ((0.1, 0.9), (0.5, 0.9 + 0.1 * (best - 0.3)))
    ]
    assert of_betas(Results(TINY, tuple(betas))) == [
        "The best validation AP is that of β = 0.1 on wikipedia, β = 0.5 on mooc."
    ]


def test_counts_that_are_not_the_papers_are_said() -> None:
    counts = {"nodes": 7_144, "events": 411_749, "edge_features": 4, "variant": None}
    mooc = {"factors": {"dataset": "mooc"}, "measures": counts}
    other = {"factors": {"dataset": "uci"}, "measures": counts}
    assert of_datasets(Results(TINY, (mooc, other))) == [
        "Vertices and edges are the paper's for: mooc.",
        "Edge features: mooc has 4, the paper's 0.",
    ]
