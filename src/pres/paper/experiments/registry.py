"""Every table and figure of the paper, by name."""

from __future__ import annotations

from collections.abc import Sequence

from pres.errors import UnknownExperimentError, nearest
from pres.paper.experiments import answer, claims, findings
from pres.paper.experiments.available import PAPER
from pres.paper.experiments.columns import columns, speeds
from pres.paper.experiments.declaration import MODELS, RATES, Experiment, arms
from pres.paper.experiments.figures import Curves, Lines, trade_off
from pres.paper.experiments.paper import OTHER_METHODS

_JODIE = ("wikipedia", "reddit", "mooc", "lastfm")
_UNPRINTED = "The paper prints no values of this figure; beside ours stand those of its Table 1."


_EXPERIMENTS = (
    Experiment(
        name="answer",
        title="Does PRES work?",
        where="Tables 1 and 2",
        says="Batches four times larger with PRES are as accurate as small ones without.",
        kind="train",
        datasets=("wikipedia", "mooc"),
        vary=lambda size: {"model": MODELS, ("way", "batch_size"): arms(size)},
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
        datasets=PAPER,
        vary=lambda size: {},
        seeded=False,
        table=columns(
            "dataset",
            *("nodes", "paper_nodes", "nodes_difference"),
            *("events", "paper_events", "events_difference"),
            *("edge_features", "paper_features", "features_difference", "label_positives"),
        ),
        findings=findings.of_datasets,
        note="Whole streams at every size. GDELT is the 1% sample of TGL's, by the paper's count of edges.",
    ),
    Experiment(
        name="rates",
        title="The learning rate of each model",
        where="TGL's 1e-4, or 1e-3 of the authors' code",
        says="The paper follows TGL's settings closely; the authors' code has another rate.",
        kind="train",
        datasets=("wikipedia", "mooc"),
        vary=lambda size: {
            "model": MODELS,
            "lr": RATES,
            ("way", "batch_size"): [("off", size.pair[0])],
            "epochs": [size.rate_epochs],
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
        kind="train",
        datasets=PAPER,
        vary=lambda size: {"model": MODELS, ("way", "batch_size"): arms(size)},
        timed=True,
        table=columns(
            *("dataset", "model", "way", "batch_size", "lr", "ap", "against_small", "against_same"),
            *("ap_200", "ap_destinations", "ap_live", "ap_200_live", "paper_ap", "ap_difference"),
            *("seconds", "speed_up", "paper_speed_up"),
        ),
        draw=Lines("batch_size", "ap", "batch size b", "AP (%)", 100),
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
        kind="train",
        datasets=("wikipedia", "mooc"),
        vary=lambda size: {"model": MODELS, ("way", "batch_size"): arms(size), "lr": ["other"]},
        seeded=False,
        table=columns(
            *("dataset", "model", "way", "batch_size", "lr", "ap", "against_small", "against_same"),
            *("ap_200", "paper_ap", "ap_difference"),
        ),
        findings=findings.of_table_1,
        note="One seed, at the rate of the two that `rates` did not choose.",
    ),
    Experiment(
        name="steps",
        title="What the larger batch loses: steps of the weights, or updates of the memory",
        where="Theorem 2 and Section 3",
        says="Larger batches lose accuracy by temporal discontinuity.",
        kind="train",
        datasets=("wikipedia", "mooc"),
        vary=lambda size: {
            "model": MODELS,
            ("way", "batch_size", "step_size"): [
                *(("off", b, None) for b in size.pair),
                ("off", size.pair[1], size.pair[0]),
            ],
        },
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
        kind="train",
        datasets=("reddit", "wikipedia", "mooc"),
        vary=lambda size: {"model": MODELS, ("way", "batch_size"): arms(size)},
        table=columns(
            *("dataset", "model", "way", "batch_size", "label_auc", "auc_against_small", "auc_against_same"),
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
        datasets=PAPER,
        vary=lambda size: {"model": MODELS},
        seeded=False,
        table=speeds,
        findings=findings.of_speed,
        note="Epochs of all arms in turns, one thread, nothing beside them; the median of each.",
    ),
    Experiment(
        name="fig-small-batches",
        title="AP at small batches",
        where="Figures 3 and 9",
        says="Smaller batches can mean worse models: their gradients vary more, and AP can fall.",
        kind="train",
        datasets=_JODIE,
        vary=lambda size: {"model": MODELS, "batch_size": size.small_batches, "way": ["off"]},
        table=columns(*("dataset", "model", "batch_size", "ap", "table_ap", "table_difference", "seconds")),
        draw=Lines("batch_size", "ap", "batch size b", "AP (%)", 100, lines=("model",), panels=("dataset",)),
        findings=findings.of_small_batches,
        note=_UNPRINTED,
    ),
    Experiment(
        name="fig-batch-size",
        title="AP against the batch size, with and without PRES",
        where="Figures 4 and 10 to 13",
        says="AP falls as batches grow, and falls less with PRES.",
        kind="train",
        datasets=_JODIE,
        vary=lambda size: {
            "model": MODELS,
            "way": ["off", "equations"],
            "batch_size": size.batches,
        },
        table=columns(
            *("dataset", "model", "way", "batch_size"),
            *("ap", "table_ap", "table_difference", "seconds"),
        ),
        draw=Lines("batch_size", "ap", "batch size b", "AP (%)", 100),
        findings=findings.of_batch_sizes,
        note=_UNPRINTED,
    ),
    Experiment(
        name="fig-efficiency",
        title="AP against iterations, with and without PRES",
        where="Figures 5 and 14",
        says="With the coherence objective training reaches the same AP in fewer iterations.",
        kind="train",
        datasets=("wikipedia",),
        vary=lambda size: {
            "model": MODELS,
            "batch_size": [size.large_batch],
            "way": ["off", "equations"],
        },
        table=columns(
            *("dataset", "model", "way", "batch_size", "first_ap", "val_ap", "best_epoch"),
            *("ap", "table_ap", "table_difference"),
        ),
        draw=Curves(),
        findings=findings.of_efficiency,
        note=f"{_UNPRINTED} AP is that on validation after every epoch.",
    ),
    Experiment(
        name="fig-ablation",
        title="The parts of PRES",
        where="Figure 17",
        says="Two distinct parts: the objective (S) speeds convergence, the filter (V) lowers variance.",
        kind="train",
        datasets=("wikipedia",),
        vary=lambda size: {
            "model": ["tgn"],
            "batch_size": [size.large_batch],
            "way": ["off", "S", "V", "equations"],
        },
        table=columns(
            *("dataset", "model", "way", "batch_size", "first_ap", "val_ap", "ap"),
            *("table_ap", "table_difference", "gain", "movement"),
        ),
        draw=Curves(),
        findings=findings.of_ways,
        note=_UNPRINTED,
    ),
    Experiment(
        name="fig-beta",
        title="The weight β of the coherence objective",
        where="Figure 18",
        says="A larger β converges faster and can cost accuracy; the paper takes 0.1.",
        kind="train",
        datasets=("wikipedia",),
        vary=lambda size: {
            "model": ["tgn"],
            "batch_size": [size.large_batch],
            "beta": size.betas,
        },
        table=columns(
            *("dataset", "model", "beta", "batch_size", "first_ap", "val_ap", "ap"),
            *("table_ap", "table_difference", "movement"),
        ),
        draw=Curves(lines=("beta",)),
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
        vary=lambda size: {
            "model": MODELS,
            "batch_size": size.memory_batches,
            "way": ["off", "equations"],
        },
        seeded=False,
        table=columns("dataset", "model", "way", "batch_size", "peak"),
        draw=Lines("batch_size", "peak", "batch size b", "peak memory (MiB)"),
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
        kind="train",
        datasets=("wikipedia", "mooc"),
        vary=lambda size: {
            "model": ["tgn"],
            ("way", "batch_size"): [("off", size.pair[0]), ("equations", size.pair[1])],
            "extended": [True],
        },
        table=columns(
            *("dataset", "model", "way", "batch_size", "epochs", "first_ap", "val_ap"),
            *("best_epoch", "ap", "table_ap", "table_difference"),
        ),
        draw=Curves(panels=("dataset",)),
        findings=findings.of_extended,
        note=_UNPRINTED,
    ),
    Experiment(
        name="fig-tradeoff",
        title="Speed-up against the AP it costs",
        where="Figure 15",
        says="The trade-off of PRES is reasonable beside methods of other fields: a rough comparison.",
        kind="train",
        datasets=PAPER,
        vary=lambda size: {"model": MODELS, ("way", "batch_size"): arms(size)},
        timed=True,
        table=columns(
            *("dataset", "model", "way", "batch_size", "ap", "against_small"),
            *("speed_up", "paper_speed_up", "speed_difference"),
        ),
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
        vary=lambda size: {
            "model": MODELS,
            ("measurement", "beta"): [
                ("variance", 0.0),
                ("convergence", 0.0),
                ("coherence", 0.0),
                ("coherence", 0.1),
            ],
        },
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
