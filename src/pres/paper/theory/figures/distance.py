"""The distance to the exact memory as one picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter, ScalarFormatter

from pres.figure import FIRST, GREY, SECOND, THIRD, save_panels

if TYPE_CHECKING:
    from pres.paper.theory.distance import Distance

_COLOURS = {"standard": GREY, "chosen filter": FIRST, "discounted filter": THIRD, "own filter": SECOND}


def save_figure(found: Distance, path: Path) -> Path:
    """Draw the distance with and without a filter against b, at ``path``."""
    sizes = sorted({row.batch_size for row in found.rows})

    def filters(panel: Axes) -> None:
        for way, colour in _COLOURS.items():
            rows = [row for row in found.rows if row.way == way]
            if rows:
                at = [row.batch_size for row in rows]
                panel.plot(at, [row.mean for row in rows], "o-", color=colour, label=f"{way}, mean")
                panel.plot(at, [row.median for row in rows], "x:", color=colour, label=f"{way}, median")
        panel.set_xscale("log")
        panel.set_ylim(bottom=0)
        panel.set_xticks(sizes)
        panel.xaxis.set_major_formatter(ScalarFormatter())
        panel.xaxis.set_minor_formatter(NullFormatter())
        panel.set(title="With and without a filter", xlabel="batch size b", ylabel="distance / movement")
        panel.legend(frameon=False, fontsize=8)

    how = "each carried along by itself" if found.carried else "each batch begun with the exact memory"
    return save_panels(path, f"{found.title}:\n{how}", filters)
