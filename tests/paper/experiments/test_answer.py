"""Does PRES work? Paired differences, their intervals, and the pairs that every line is over."""

import json
from typing import Any

import pytest

from pres.paper.experiments.answer import answer, draw, findings
from pres.paper.experiments.figures import rendered
from pres.paper.experiments.findings import of_rates, of_speed, of_steps
from pres.paper.experiments.results import Results
from pres.paper.experiments.table import Heading, Spread, Table
from tests.paper.experiments.small import TINY

VARIANTS = ("equations", "algorithm", "ours")


def row(smoothing: str, b: int, seed: int, ap: float, **more: Any) -> dict[str, Any]:
    factors = {
        "dataset": "wikipedia",
        "model": "tgn",
        "smoothing": smoothing,
        "batch_size": b,
        "seed": seed,
    } | more
    return {"factors": factors, "measures": {"ap": ap, "variant": None}}


def measured(dataset: str = "wikipedia", model: str = "tgn") -> list[dict[str, Any]]:
    place = {"dataset": dataset, "model": model}
    rows = [row("off", 50, 0, 0.90, **place), row("off", 50, 1, 0.92, **place)]
    rows += [row("off", 200, 0, 0.80, **place), row("off", 200, 1, 0.84, **place)]
    for smoothing, gain in zip(VARIANTS, (0.01, 0.02, 0.03), strict=True):
        rows += [
            row(smoothing, 200, 0, 0.80 + gain, **place),
            row(smoothing, 200, 1, 0.84 + 3 * gain, **place),  # seeds differ in what PRES is worth
        ]
    return rows


def test_both_differences_are_paired_by_seed_with_students_interval() -> None:
    table = answer(Results(TINY, tuple(measured())))
    off, equations, *_ = table.rows
    assert off[:4] == ("wikipedia", "TGN", "without", 2) and off[5] is None and off[9] is None
    small, same = equations[4], equations[5]
    assert isinstance(small, Spread) and isinstance(same, Spread) and same.interval is not None
    assert small.mean == pytest.approx((-9 + -5) / 2)  # 81 - 90 and 87 - 92
    assert same.mean == pytest.approx(2.0) and same.count == 2
    assert same.interval[0] == pytest.approx(2 - 12.7062, abs=1e-3)  # ± t(0.975, 1) · 1
    assert same.interval[1] == pytest.approx(2 + 12.7062, abs=1e-3)
    assert equations[9] == pytest.approx(97.5 - 97.8)


def test_the_lines_are_means_over_the_pairs_that_every_arm_has() -> None:
    whole = [*measured(), *measured(model="jodie")]
    partly = [one for one in measured(dataset="mooc") if one["factors"]["smoothing"] != "ours"]
    lines = findings(Results(TINY, (*whole, *partly)))
    assert len(lines) == 5 and all("over 2 pairs" in line for line in lines[:-1])
    assert lines[0].startswith(
        "without: b = 200 changes AP by −9.0 ± 0.7 points against b = 50 without PRES,"
    )
    assert lines[1].startswith("Eqs. 6–8, 10: b = 200 changes AP by −7.0 ± 1.4 points")
    assert "and by +2.0 ± 0.7 against b = 200 without" in lines[1]  # √(1² + 1²) / 2
    assert lines[-1] == "The paper's Table 1, for the same pairs: −0.3 points."
    assert findings(Results(TINY, tuple(partly))) == [] and findings(Results(TINY, ())) == []


def test_one_seed_has_no_interval() -> None:
    groups = Results(TINY, tuple(one for one in measured() if one["factors"]["seed"] == 0))
    cell = answer(groups).rows[1][5]
    assert isinstance(cell, Spread) and cell.interval is None and cell.count == 1
    assert "+1.0 against b = 200 without" in findings(groups)[1]
    assert Heading("a", "a", signed=True, interval=True).shown(cell) == "+1.0"


def test_an_interval_is_shown_with_its_bounds_and_survives_a_file() -> None:
    heading = Heading("a", "a", signed=True, interval=True)
    found = Spread(1.0, 2.0, 4)
    assert heading.shown(found) == "+1.0 [−2.2, +4.2]"
    table = Table((heading,), ((found,), (None,)))
    assert Table.of(json.loads(json.dumps(table.to_dict()))) == table
    assert table.sort_keys() == [[1.0], [""]]


def test_the_figure_has_both_panels_and_the_papers_points() -> None:
    figure = draw(Results(TINY, tuple(measured())))
    assert figure is not None
    left, right = figure.axes
    assert left.get_title().endswith("b = 50 without PRES")
    assert right.get_title().endswith("b = 200 without PRES")
    assert len(left.containers) == 4 and len(right.containers) == 3  # without PRES is the right one's zero
    assert len(left.collections) > len(right.collections)
    assert rendered(figure, "png").startswith(b"\x89PNG")
    assert draw(Results(TINY, ())) is None


def test_the_better_rate_the_steps_and_the_speeds_are_told() -> None:
    rates = [row("off", 50, 0, 0.9, lr=1e-4), row("off", 50, 0, 0.8, lr=1e-3)]
    for one, value in zip(rates, (0.7, 0.8), strict=True):
        one["measures"]["val_ap"] = value
    assert of_rates(Results(TINY, tuple(rates))) == ["The better rate on validation: TGN on wikipedia 0.001."]
    steps = [row("off", 50, 0, 0.9), row("off", 200, 0, 0.8), row("off", 200, 0, 0.88, step_size=50)]
    assert of_steps(Results(TINY, tuple(steps))) == [
        "b = 200 changes AP by −10.0 points against b = 50, and by −2.0 with steps of 50, on average over 1 "
        "pair."
    ]
    timed = {("off", 50): 6.0, ("off", 200): 2.0} | {(one, 200): 3.0 for one in VARIANTS}
    arms = [row(*arm, 0, 0.9) for arm in timed]
    for one, seconds in zip(arms, timed.values(), strict=True):
        one["measures"]["seconds"] = seconds
    (line,) = of_speed(Results(TINY, tuple(arms)))
    assert line.startswith("Speed-up of b = 200 against b = 50 without PRES: without 3.00, Eqs. 6–8, 10 2.00")
