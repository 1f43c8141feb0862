"""The terms of Theorem 2 as one picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from pres.figure import FIRST, GREY, SECOND, THIRD, save_panels

if TYPE_CHECKING:
    from pres.paper.theory.bound import Bound
    from pres.paper.theory.convergence import Convergence


def save_figure(found: Convergence, path: Path) -> Path:
    """Draw losses and step sizes of both trainings, and the bound beside what it bounds, at ``path``.

    The bound is that of plain SGD; where there is none, the terms along Adam are drawn.
    """
    sgd = found.sgd
    without = "" if sgd is not None else f": none, {found.no_descent}"

    def losses(panel: Axes) -> None:
        panel.plot(range(len(found.losses)), found.losses, "o-", color=FIRST, label="Adam, in batches")
        if sgd is not None:
            at = range(len(sgd.losses))
            panel.plot(at, sgd.losses, "o-", color=SECOND, label="plain SGD, in sequence")
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        panel.set(title="Loss at fixed weights", xlabel="epochs of training", ylabel="mean over the batches")
        panel.legend(frameon=False)

    def steps(panel: Axes) -> None:
        panel.axhline(found.lr, linestyle=":", color=GREY, label="lr of Adam")
        if sgd is not None and sgd.step_sizes is not None:
            epochs = list(range(1, sgd.epochs + 1))
            panel.plot(epochs, sgd.step_sizes, "o-", color=SECOND, label="η of plain SGD")
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        panel.set(yscale="log", title="Step size" + without, xlabel="epoch")
        panel.legend(frameon=False)

    def bound(panel: Axes) -> None:
        terms: Bound = found if sgd is None else sgd
        bars = {
            "‖∇L‖² before\ntraining": (terms.gradients[0], GREY),
            "smallest\n‖∇L‖² seen": (terms.smallest_gradient, FIRST),
            "variance\nterm": (terms.variance_term, THIRD),
        }
        if sgd is not None and sgd.gap_term is not None and sgd.bound is not None:
            bars |= {"loss gap\nterm": (sgd.gap_term, THIRD), "bound": (sgd.bound, SECOND)}
        shown = {name: bar for name, bar in bars.items() if bar[0] > 0}  # a logarithmic scale has no 0
        panel.bar(list(shown), [value for value, _ in shown.values()], color=[c for _, c in shown.values()])
        title = f"Bound{without}" if sgd is None else "Bound, plain SGD"
        panel.set(yscale="log" if shown else "linear", title=title)

    return save_panels(path, f"{found.title}: batches of {found.batch_size:,}", losses, steps, bound)
