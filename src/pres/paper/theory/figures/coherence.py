"""Memory coherence against the batch size as one picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter, ScalarFormatter

from pres.figure import FIRST, GREY, SECOND, save_panels

if TYPE_CHECKING:
    from pres.paper.theory.coherence import Coherence


def save_figure(found: Coherence, path: Path) -> Path:
    """Draw the quantiles of μ, the share of events without coherence, and the pending sets, at ``path``."""
    rows = [row for row in found.rows if row.quantiles is not None]
    sizes = [row.batch_size for row in rows]

    def quantiles(panel: Axes) -> None:
        shares = ("0.05", "0.25", "0.5", "0.75", "0.95")
        of = {share: [(row.quantiles or {})[share] for row in rows] for share in shares}
        panel.fill_between(sizes, of["0.05"], of["0.95"], color=FIRST, alpha=0.12, label="5 % to 95 %")
        panel.fill_between(sizes, of["0.25"], of["0.75"], color=FIRST, alpha=0.25, label="25 % to 75 %")
        panel.plot(sizes, of["0.5"], "o-", color=FIRST, label="median")
        smallest = [row.minimum for row in rows if row.minimum is not None]
        panel.plot(sizes, smallest, "v:", color=SECOND, label="smallest")
        panel.axhline(0, color=GREY, linewidth=1)
        if smallest and min(smallest) < -2:
            panel.set_yscale("symlog", linthresh=1)  # else one event would hide all others
        fresh = f"fresh memory {found.fresh} the event, by {found.wrt}"
        _finish(panel, f"μ: {fresh}", "memory coherence μ", sizes)
        if rows:
            panel.legend(frameon=False, fontsize=8)

    def not_positive(panel: Axes) -> None:
        shares = [100 * (row.not_positive or 0.0) for row in rows]
        panel.plot(sizes, shares, "o-", color=SECOND)
        panel.set_ylim(0, max(1.0, 1.05 * max(shares, default=0.0)))
        _finish(panel, "Events with μ ≤ 0", "% of sampled events", sizes)

    def pending(panel: Axes) -> None:
        panel.plot(sizes, [row.mean_pending or 0.0 for row in rows], "o-", color=GREY)
        panel.set_ylim(bottom=0)
        _finish(panel, "Size of a pending set", "mean over sampled events", sizes)

    return save_panels(path, found.title, quantiles, not_positive, pending)


def _finish(panel: Axes, title: str, ylabel: str, sizes: list[int]) -> None:
    panel.set(title=title, xlabel="batch size b", ylabel=ylabel)
    if not sizes:
        return  # an empty panel has no scale
    panel.set_xscale("log")
    panel.set_xticks(sizes)
    panel.xaxis.set_major_formatter(ScalarFormatter())
    panel.xaxis.set_minor_formatter(NullFormatter())
