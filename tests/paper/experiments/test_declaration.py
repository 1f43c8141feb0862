"""Declarations expand to the grids that they say."""

import json

import pytest

from pres.errors import UnknownDatasetError, UnknownExperimentError
from pres.paper.experiments.available import copies_at_hand
from pres.paper.experiments.budget import BUDGETS, Budget
from pres.paper.experiments.declaration import RATE, Request, config_of
from pres.paper.experiments.paper import DATASETS
from pres.paper.experiments.registry import EXPERIMENTS, find
from pres.paper.experiments.work import WORK
from pres.smoothing import PRES
from tests.paper.experiments.small import TINY

ALL_AT_HAND = dict.fromkeys(DATASETS, "copy")
NAMES = [
    *(
        "answer",
        "table-datasets",
        "rates",
        "table1",
        "table1-other-rate",
        "steps",
        "table2",
        "speed",
        "fig-small-batches",
    ),
    *(
        "fig-batch-size",
        "fig-efficiency",
        "fig-ablation",
        "fig-beta",
        "fig-memory",
        "fig-extended",
        "fig-tradeoff",
        "theory",
    ),
]


def test_every_table_and_figure_has_a_name() -> None:
    assert list(EXPERIMENTS) == NAMES
    assert [experiment.name for experiment in find("all")] == NAMES


@pytest.mark.parametrize("budget", [*BUDGETS.values(), TINY], ids=lambda budget: budget.name)
def test_every_job_of_every_budget_can_be_made_and_said_as_json(budget: Budget) -> None:
    request = Request(budget, budget.seeds, ALL_AT_HAND)
    for experiment in find("all"):
        for point in experiment.points(request):
            assert point.job.kind in WORK
            assert json.loads(json.dumps(point.job.settings)) == point.job.settings
            if point.job.kind in ("train", "memory", "speed"):
                config_of(point.job.settings)
    assert {*budget.pair, budget.large_batch} <= set(budget.batches)


def test_table_1_is_three_models_on_five_datasets_in_five_arms() -> None:
    points = EXPERIMENTS["table1"].points(Request(BUDGETS["full"], None, ALL_AT_HAND))
    trained = [point for point in points if point.job.kind == "train"]
    arms = [("off", 600), ("off", 2400), ("equations", 2400), ("algorithm", 2400), ("ours", 2400)]
    expected = [
        (dataset, seed, model, arm, b)
        for dataset in DATASETS
        for seed in range(3 if dataset == "mooc" else 5)
        for model in ("tgn", "jodie", "apan")
        for arm, b in arms
    ]
    names = ("dataset", "seed", "model", "smoothing", "batch_size")
    assert [tuple(point.factors[name] for name in names) for point in trained] == expected
    for point in trained:
        config, arm = config_of(point.job.settings), point.factors["smoothing"]
        assert config.epochs == 50 and config.patience is None and point.job.settings["events"] is None
        assert config.protocol == "tgl" and config.lr_decay == "none"
        assert config.negative_window is None
        assert config.batch_size == config.eval_batch_size == point.factors["batch_size"]
        smoothing = config.smoothing
        readings = {"off": None, "ours": PRES()} | {
            reading: PRES.published(reading, beta=0.1) for reading in ("equations", "algorithm")
        }
        assert smoothing == readings[arm]
    timed = [point.job for point in points if point.job.kind == "speed"]
    assert len(timed) == 15 and all(job.alone and len(job.settings["arms"]) == 5 for job in timed)


def test_the_rate_is_the_one_that_was_chosen_and_the_other_the_one_that_was_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(RATE, ("tgn", "mooc"), 1e-4)
    request = Request(BUDGETS["full"], None, {"mooc": "copy"})

    def rates(name: str, model: str) -> set[float]:
        points = EXPERIMENTS[name].points(request)
        return {p.job.settings["lr"] for p in points if p.factors["model"] == model}

    assert rates("table1", "tgn") == {1e-4} and rates("table1-other-rate", "tgn") == {1e-3}
    assert rates("rates", "tgn") == {1e-4, 1e-3}
    tried = EXPERIMENTS["rates"].points(request)
    assert all(p.job.settings["epochs"] == 10 and p.job.settings["smoothing"] is None for p in tried)


def test_experiments_share_their_jobs() -> None:
    request = Request(BUDGETS["quick"], 1, ALL_AT_HAND)
    jobs = {name: {p.job.name for p in EXPERIMENTS[name].points(request)} for name in NAMES}
    assert jobs["fig-tradeoff"] <= jobs["table1"] and jobs["table2"] <= jobs["table1"]
    assert jobs["speed"] <= jobs["table1"]
    assert jobs["fig-efficiency"] <= jobs["fig-batch-size"]
    assert len(jobs["fig-ablation"] & jobs["fig-batch-size"]) == 2
    assert len(jobs["fig-beta"] & jobs["fig-ablation"]) == 2  # beta 0 is V, and 0.1 is the whole


def test_no_two_jobs_have_one_title() -> None:
    request = Request(BUDGETS["quick"], 2, ALL_AT_HAND)
    jobs = {point.job.name: point.job for name in NAMES for point in EXPERIMENTS[name].points(request)}
    assert len({job.title for job in jobs.values()}) == len(jobs)


def test_another_copy_of_a_dataset_is_another_job() -> None:
    jobs = [
        EXPERIMENTS["fig-ablation"].points(Request(TINY, 1, {"wikipedia": copy}))[0].job.name
        for copy in ("featureless", "with features")
    ]
    assert jobs[0] != jobs[1]


def test_a_dataset_that_is_not_at_hand_has_no_point_and_none_takes_its_place() -> None:
    points = EXPERIMENTS["table1"].points(Request(TINY, 1, {"mooc": "copy"}))
    assert {point.factors["dataset"] for point in points} == {"mooc"}
    assert EXPERIMENTS["fig-ablation"].points(Request(TINY, 1, {"mooc": "copy"})) == []
    named = EXPERIMENTS["fig-ablation"].points(Request(TINY, 1, {"mooc": "copy"}, ("mooc",)))
    assert {point.factors["dataset"] for point in named} == {"mooc"}
    assert [p.job.kind for p in EXPERIMENTS["theory"].points(Request(TINY, 1, {}))] == ["state-space"]


def test_node_classification_wants_labels() -> None:
    request = Request(TINY, 1, {"uci": "copy", "mooc": "copy"}, ("uci", "mooc"))
    points = EXPERIMENTS["table2"].points(request)
    assert {point.factors["dataset"] for point in points} == {"mooc"}


def test_what_is_missing_is_named_with_how_to_get_it(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = str(tmp_path_factory.mktemp("empty"))
    monkeypatch.setenv("PRES_DATA", empty)
    monkeypatch.setenv("PRES_CACHE", empty)
    copies, missing = copies_at_hand([*DATASETS, "synthetic"])
    assert copies == {"synthetic": "embedded"} and set(missing) == set(DATASETS)
    assert "snap.stanford.edu" in missing["reddit"] and "PRES_DATA" in missing["reddit"]


def test_unknown_names_are_said_with_the_nearest() -> None:
    with pytest.raises(UnknownExperimentError, match="Did you mean 'table1'"):
        find("table-1")
    with pytest.raises(UnknownExperimentError, match=r"Did you mean 'fig-ablation'.*and all"):
        find("fig-ablations")
    with pytest.raises(UnknownDatasetError, match="Did you mean 'wikipedia'"):
        copies_at_hand(["wikipdia"])
