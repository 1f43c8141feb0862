"""The terms of Theorem 2 as one picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from pres.theory.figures.frame import FIRST, GREY, SECOND, THIRD, save_panels

if TYPE_CHECKING:
    from pres.theory.convergence import Convergence


def save_figure(found: Convergence, path: Path) -> Path:
    """Draw the losses, the step sizes, and the bound beside what it bounds, at ``path``."""
    missing = "μ is not given" if found.mu is None else f"μ = {found.mu:g} is not above 0"
    without_mu = "" if found.assumption_holds else f": none, {missing}"

    def losses(panel: Axes) -> None:
        panel.plot(range(len(found.losses)), found.losses, "o-", color=FIRST)
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        panel.set(title="Loss at fixed weights", xlabel="epochs of training", ylabel="mean over the batches")

    def steps(panel: Axes) -> None:
        epochs = list(range(1, found.epochs + 1))
        panel.axhline(found.lr, linestyle=":", color=GREY, label="lr used, with Adam")
        asked = found.step_sizes
        if asked is not None:
            panel.plot(epochs, asked, "o-", color=SECOND, label="η asked for, of plain descent")
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
        panel.set(yscale="log", title="Step size" + without_mu, xlabel="epoch")
        panel.legend(frameon=False)

    def bound(panel: Axes) -> None:
        bars = {
            "smallest\n‖∇L‖² seen": (found.smallest_gradient, FIRST),
            "variance\nterm": (found.variance_term, THIRD),
        }
        if found.gap_term is not None and found.bound is not None:
            bars |= {"loss gap\nterm": (found.gap_term, THIRD), "bound": (found.bound, SECOND)}
        shown = {name: bar for name, bar in bars.items() if bar[0] > 0}  # a logarithmic scale has no 0
        panel.bar(list(shown), [value for value, _ in shown.values()], color=[c for _, c in shown.values()])
        panel.set(yscale="log" if shown else "linear", title="Bound" + without_mu)

    return save_panels(path, f"{found.title}: batches of {found.batch_size:,}", losses, steps, bound)
