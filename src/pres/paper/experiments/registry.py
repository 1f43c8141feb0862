"""Every table and figure of the paper, by name."""

from __future__ import annotations

from collections.abc import Sequence

from pres.errors import UnknownExperimentError, nearest
from pres.paper.experiments import answer, claims, findings
from pres.paper.experiments.columns import columns
from pres.paper.experiments.declaration import MODELS, RATES, Experiment, Factors
from pres.paper.experiments.figures import curves, lines, trade_off
from pres.paper.experiments.paper import DATASETS, OTHER_METHODS

_ALL_DATASETS = tuple(DATASETS)
_JODIE = ("wikipedia", "reddit", "mooc", "lastfm")
_BOTH = ("wikipedia", "mooc")
_ARMS: Factors = {"model": MODELS, ("smoothing", "batch_size"): "arms"}
_WITH_AND_WITHOUT = ("off", "equations")
_PLACE = ("dataset", "model", "smoothing", "batch_size")
_TABLE_1 = ("table_ap", "table_difference")
_UNPRINTED = "The paper prints no values of this figure; beside ours stand those of its Table 1."


_EXPERIMENTS = (
    Experiment(
        name="answer",
        title="Does PRES work?",
        where="Tables 1 and 2",
        says="Batches four times larger with PRES are as accurate as small ones without.",
        datasets=_BOTH,
        vary=_ARMS,
        table=answer.answer,
        draw=answer.draw,
        findings=answer.findings,
        note=(
            "The jobs are those of table1. Differences are paired by seed, in points of the test AP that TGL "
            "prints (the mean over batches of the training's size). *b 200* is over the whole part in "
            "batches of 200, *live* has trackers that follow the test. Brackets are 95 % confidence "
            "intervals, ± are standard errors."
        ),
    ),
    Experiment(
        name="table-datasets",
        title="The datasets",
        where="Table 3 (appendix)",
        says="Vertices, edges and edge features of the five datasets.",
        kind="dataset",
        datasets=_ALL_DATASETS,
        vary={},
        seeded=False,
        table=columns(
            "dataset",
            *("nodes", "paper_nodes", "nodes_difference"),
            *("events", "paper_events", "events_difference"),
            *("edge_features", "paper_features", "features_difference", "label_positives"),
        ),
        findings=findings.of_datasets,
        note="Whole streams at every budget. GDELT is the 1% sample of TGL's, by the paper's count of edges.",
    ),
    Experiment(
        name="rates",
        title="The learning rate of each model",
        where="TGL's 1e-4, or 1e-3 of the authors' code",
        says="The paper follows TGL's settings closely; the authors' code has another rate.",
        datasets=_BOTH,
        vary={
            "model": MODELS,
            "lr": RATES,
            "smoothing": ["off"],
            "batch_size": "small",
            "epochs": "rate_epochs",
        },
        seeded=False,
        table=columns("dataset", "model", "batch_size", "epochs", "lr", "val_ap", "best_epoch"),
        findings=findings.of_rates,
        note="Chosen on validation, without PRES, at the smaller batch; one seed.",
    ),
    Experiment(
        name="table1",
        title="AP, seconds per epoch and speed-up, with and without PRES",
        where="Table 1",
        says="PRES allows batches up to 4 times larger (3.4 times faster); generalisation does not suffer.",
        datasets=_ALL_DATASETS,
        vary=_ARMS,
        timed=True,
        table=columns(
            *(*_PLACE, "lr", "ap", "against_small", "against_same"),
            *("ap_200", "ap_destinations", "ap_live", "ap_200_live", "paper_ap", "ap_difference"),
            *("seconds", "speed_up", "paper_speed_up"),
        ),
        draw=lines(),
        findings=findings.of_table_1,
        note=(
            "The paper does not say its pair of batch sizes; ours is four times apart, as its text says. The "
            "larger batch without PRES is not in the paper: it shows what PRES itself is worth. AP is the "
            "mean over batches of the training's size, as TGL prints it. *b 200*: over the whole test part "
            "in batches of 200. *destinations*: with negatives that are destinations. *live*: with trackers "
            "that follow the evaluation. Differences are of the first AP, seed by seed."
        ),
    ),
    Experiment(
        name="table1-other-rate",
        title="AP with and without PRES at the other learning rate",
        where="Table 1",
        says="The paper does not say its learning rate.",
        datasets=_BOTH,
        vary={**_ARMS, "lr": ["other"]},
        seeded=False,
        table=columns(
            *(*_PLACE, "lr", "ap", "against_small", "against_same", "ap_200", "paper_ap", "ap_difference")
        ),
        findings=findings.of_table_1,
        note="One seed, at the rate of the two that `rates` did not choose.",
    ),
    Experiment(
        name="steps",
        title="What the larger batch loses: steps of the weights, or updates of the memory",
        where="Theorem 2 and Section 3",
        says="Larger batches lose accuracy by temporal discontinuity.",
        datasets=_BOTH,
        vary={"model": MODELS, ("smoothing", "batch_size", "step_size"): "steps"},
        seeded=False,
        table=columns("dataset", "model", "batch_size", "step_size", "lr", "ap", "against_small", "ap_200"),
        findings=findings.of_steps,
        note=(
            "Without PRES, one seed. The last row of a model moves its memory as the larger batch does, and "
            "its weights as often as the smaller: what it still loses is the memory's."
        ),
    ),
    Experiment(
        name="table2",
        title="Node classification, with and without PRES",
        where="Table 2",
        says="Larger batches with PRES do not sacrifice performance on node classification either.",
        datasets=("reddit", "wikipedia", "mooc"),
        vary=_ARMS,
        table=columns(
            *(*_PLACE, "label_auc", "auc_against_small", "auc_against_same"),
            *("paper_auc", "auc_difference", "positives"),
        ),
        findings=findings.of_classification,
        labelled=True,
        note=(
            "The encoders are those of table1, frozen, replayed in batches of the training's size. A test "
            "part with few positives says little."
        ),
    ),
    Experiment(
        name="speed",
        title="Seconds of an epoch, with and without PRES",
        where="Table 1",
        says="Batches four times larger are 3.4 times faster.",
        kind="speed",
        datasets=_ALL_DATASETS,
        vary={"model": MODELS},
        seeded=False,
        table=columns(*_PLACE, "seconds", "speed_up", "paper_seconds", "paper_speed_up"),
        findings=findings.of_speed,
        note="Epochs of all arms in turns, one thread, nothing beside them; the median of each.",
    ),
    Experiment(
        name="fig-small-batches",
        title="AP at small batches",
        where="Figures 3 and 9",
        says="Smaller batches can mean worse models: their gradients vary more, and AP can fall.",
        datasets=_JODIE,
        vary={"model": MODELS, "batch_size": "small_batches", "smoothing": ["off"]},
        table=columns("dataset", "model", "batch_size", "ap", *_TABLE_1, "seconds"),
        draw=lines(by="model", panels=("dataset",)),
        findings=findings.of_small_batches,
        note=_UNPRINTED,
    ),
    Experiment(
        name="fig-batch-size",
        title="AP against the batch size, with and without PRES",
        where="Figures 4 and 10 to 13",
        says="AP falls as batches grow, and falls less with PRES.",
        datasets=_JODIE,
        vary={"model": MODELS, "smoothing": _WITH_AND_WITHOUT, "batch_size": "batches"},
        table=columns(*_PLACE, "ap", *_TABLE_1, "seconds"),
        draw=lines(),
        findings=findings.of_batch_sizes,
        note=_UNPRINTED,
    ),
    Experiment(
        name="fig-efficiency",
        title="AP against iterations, with and without PRES",
        where="Figures 5 and 14",
        says="With the coherence objective training reaches the same AP in fewer iterations.",
        datasets=("wikipedia",),
        vary={"model": MODELS, "batch_size": "large_batch", "smoothing": _WITH_AND_WITHOUT},
        table=columns(*_PLACE, "first_ap", "val_ap", "best_epoch", "ap", *_TABLE_1),
        draw=curves(),
        findings=findings.of_efficiency,
        note=f"{_UNPRINTED} AP is that on validation after every epoch.",
    ),
    Experiment(
        name="fig-ablation",
        title="The parts of PRES",
        where="Figure 17",
        says="Two distinct parts: the objective (S) speeds convergence, the filter (V) lowers variance.",
        datasets=("wikipedia",),
        vary={"model": ["tgn"], "batch_size": "large_batch", "smoothing": ["off", "S", "V", "equations"]},
        table=columns(*_PLACE, "first_ap", "val_ap", "ap", *_TABLE_1, "gain", "movement"),
        draw=curves(),
        findings=findings.of_parts,
        note=_UNPRINTED,
    ),
    Experiment(
        name="fig-beta",
        title="The weight β of the coherence objective",
        where="Figure 18",
        says="A larger β converges faster and can cost accuracy; the paper takes 0.1.",
        datasets=("wikipedia",),
        vary={"model": ["tgn"], "batch_size": "large_batch", "beta": "betas"},
        table=columns(
            *("dataset", "model", "beta", "batch_size", "first_ap", "val_ap", "ap", *_TABLE_1, "movement")
        ),
        draw=curves("beta"),
        findings=findings.of_betas,
        note=f"{_UNPRINTED} That table has β = 0.1; β = 0 is the filter alone.",
    ),
    Experiment(
        name="fig-memory",
        title="Peak memory against the batch size",
        where="Figure 19",
        says="What PRES takes beside does not grow with the batch.",
        kind="memory",
        datasets=("wikipedia",),
        vary={"model": MODELS, "batch_size": "memory_batches", "smoothing": _WITH_AND_WITHOUT},
        seeded=False,
        table=columns(*_PLACE, "peak"),
        draw=lines("peak", "peak memory (MiB)"),
        findings=findings.of_memory,
        note=(
            "The paper prints no values of this figure and measured a GPU; this is how far a process grows "
            "while it trains for one epoch on the CPU."
        ),
    ),
    Experiment(
        name="fig-extended",
        title="Long training",
        where="Figure 16",
        says="Over 500 epochs the gap between training with and without PRES shrinks.",
        datasets=_BOTH,
        vary={"model": ["tgn"], ("smoothing", "batch_size"): "ends", "epochs": "extended_epochs"},
        table=columns(*_PLACE, "epochs", "first_ap", "val_ap", "best_epoch", "ap", *_TABLE_1),
        draw=curves(panels=("dataset",)),
        findings=findings.of_extended,
        note=_UNPRINTED,
    ),
    Experiment(
        name="fig-tradeoff",
        title="Speed-up against the AP it costs",
        where="Figure 15",
        says="The trade-off of PRES is reasonable beside methods of other fields: a rough comparison.",
        datasets=_ALL_DATASETS,
        vary=_ARMS,
        timed=True,
        table=columns(*_PLACE, "ap", "against_small", "speed_up", "paper_speed_up", "speed_difference"),
        draw=trade_off,
        findings=findings.of_table_1,
        note=(
            f"The jobs are those of table1. The paper also draws {', '.join(OTHER_METHODS)} but prints no "
            "coordinates, so they are not drawn here; its own points follow from its Table 1."
        ),
    ),
    Experiment(
        name="theory",
        title="Theorems 1 and 2, Proposition 1, memory coherence",
        where="Sections 4 and 5",
        says="Small batches raise gradient variance; coherence bounds convergence; PRES is nearer the truth.",
        kind="variance",
        datasets=("wikipedia",),
        vary={"model": MODELS, ("measurement", "beta"): claims.MEASUREMENTS},
        seeded=False,
        alone=({"measurement": "state-space"},),
        table=claims.claims,
        findings=claims.agreement,
        note="Claims, not values: what is proved, beside what is measured at the weights after an epoch.",
    ),
)

EXPERIMENTS = {experiment.name: experiment for experiment in _EXPERIMENTS}
ALL = "all"


def find(name: str) -> Sequence[Experiment]:
    """Return the experiment of that name, or all of them for ``all``."""
    if name == ALL:
        return _EXPERIMENTS
    if name not in EXPERIMENTS:
        raise UnknownExperimentError(
            f"there is no experiment '{name}'.{nearest(name, [*EXPERIMENTS, ALL])} "
            f"There are {', '.join(EXPERIMENTS)}, and {ALL}."
        )
    return (EXPERIMENTS[name],)
