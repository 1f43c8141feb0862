"""What memory buys and what a large batch buys, on the embedded stream, in one table and one picture.

The same model is trained three times, with equal epochs:

* standard memory at b = 200, as the field trains,
* standard memory at a large b, which loses most updates of a batch,
* the preset for large batches at the same large b: a scanned memory, and Muon.

EdgeBank and popularity have no weights and no memory of a node's state. All are measured on the same
test events against the same negatives.

    python examples/demo.py --out demo
"""

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any, Literal

import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import pres
from pres.evaluation import evaluate
from pres.evaluation.baselines import EdgeBank, Popularity
from pres.sampling import NegativeSampler

ROW = "{:<26}{:>7}{:>10}{:>10}{:>10}{:>15}"
GOAL = 0.85  # validation AP whose time is shown


def baseline_ap(scorer: EdgeBank | Popularity, events: pres.EventStream) -> float:
    """Return the test AP of a scorer that has no weights."""
    test = events.split().test
    scorer.update_state(events[: test.offset])
    return evaluate(scorer, test, NegativeSampler(events)).ap


def train(
    events: pres.EventStream, epochs: int, cell: Literal["gru", "scan"] = "gru", **settings: Any
) -> pres.Run:
    """Return a run of JODIE, from the same seed as every other run."""
    torch.manual_seed(0)
    model = pres.JODIE(events, cell=cell)
    return pres.fit(model, events, epochs=epochs, patience=epochs, progress=sys.stderr.isatty(), **settings)


def seconds_to(goal: float, run: pres.Run) -> float | None:
    """Return the seconds of training after which validation AP first reached ``goal``; None: it never did."""
    spent = 0.0
    for epoch in run.history:
        spent += epoch.seconds
        if epoch.val.ap >= goal:
            return spent
    return None


def show(name: str, run: pres.Run, standard: pres.Run) -> None:
    """Print the row of a run."""
    speed_up = run.events_per_second / standard.events_per_second
    reached = seconds_to(GOAL, run)
    cells = (f"{run.config['batch_size']:,}", f"{run.test.ap:.3f}", f"{run.seconds_per_epoch:.2f}")
    print(
        ROW.format(name, *cells, f"{speed_up:.1f}", "-" if reached is None else f"{reached:.1f} s"),
        flush=True,
    )


def draw(runs: list[pres.Run], popularity: float, path: Path) -> None:
    """Save validation AP against seconds of training, and test AP beside the baseline."""
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    curves, bars = figure.subplots(1, 2)
    for run, colour in zip(runs, ("#1f5fa8", "#9aa3ad", "#d9822b"), strict=True):
        label = f"{run.model}, b = {run.config['batch_size']:,}"
        seconds = torch.tensor([epoch.seconds for epoch in run.history]).cumsum(0)
        curves.plot(seconds, [epoch.val.ap for epoch in run.history], marker="o", color=colour, label=label)
        bars.bar(label.replace(", ", "\n"), run.test.ap, color=colour)
    curves.set(xlabel="seconds of training", ylabel="validation AP, after each epoch")
    curves.legend(frameon=False)
    bars.axhline(popularity, color="black", linestyle="--", label="popularity")
    bars.set(ylim=(0.5, 1), ylabel="test AP (0.5: chance)")
    bars.legend(frameon=False)
    for panel in (curves, bars):
        panel.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Train, print the table and three sentences, save the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder of the picture")
    parser.add_argument("--events", type=int, default=50_000)
    parser.add_argument("--epochs", type=int, default=10)
    asked = parser.parse_args()
    torch.set_num_threads(1)  # with other work on the machine, threads that wait for each other are slower
    warnings.simplefilter("ignore", pres.Notice)  # the table says the batch size that the preset chose

    events = pres.load("synthetic", num_events=asked.events)
    print(f"Stream: {len(events):,} events, {events.num_nodes:,} nodes; {asked.epochs} epochs per model.")
    print("Task: tell each test event from a random destination for its source.\n")
    print(ROW.format("", "batch", "test AP", "s/epoch", "speed-up", f"val AP {GOAL} in"))
    edgebank, popularity = (baseline_ap(made(events), events) for made in (EdgeBank, Popularity))
    for name, ap in (("EdgeBank (no memory)", edgebank), ("popularity (no memory)", popularity)):
        print(ROW.format(name, "-", f"{ap:.3f}", "-", "-", "-"), flush=True)

    standard = train(events, asked.epochs)
    show("JODIE", standard, standard)
    preset = train(events, asked.epochs, cell="scan", preset="large")
    b = preset.config["batch_size"]
    larger = train(events, asked.epochs, batch_size=b)
    show("JODIE", larger, standard)
    show("JODIE-scan, preset large", preset, standard)

    picture = asked.out / "demo.png"
    draw([standard, larger, preset], popularity, picture)
    memory = 100 * (standard.test.ap - popularity)
    lost, kept = (100 * (run.test.ap - standard.test.ap) for run in (larger, preset))
    times = preset.events_per_second / standard.events_per_second
    print(
        f"\nMemory: JODIE at b = 200 is {memory:+.1f} points of AP from popularity, which knows no user."
        f"\nLarge batch: at b = {b:,} with standard memory it is {lost:+.1f} points from b = 200, "
        "since a batch makes one update per node."
        f"\nPreset: at the same b = {b:,} JODIE-scan is {kept:+.1f} points from b = 200, and trains "
        f"{times:.1f} times as many events per second."
        f"\n\nPicture: {picture}"
    )


if __name__ == "__main__":
    main()
