"""Errors on the simulated state-space as one picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from matplotlib.axes import Axes

from pres.figure import FIRST, GREY, SECOND, save_panels

if TYPE_CHECKING:
    from pres.paper.theory.state_space import StateSpace, StateSpaceRow

_COLOURS = {"true": FIRST, "filtered": SECOND}
_DASHES = {"analytic": "o-", "learned": "s--"}


def save_figure(found: StateSpace, path: Path) -> Path:
    """Draw errors against noise, errors against missing transitions, and γ against noise, at ``path``."""
    noises = sorted({row.noise for row in found.rows})
    fewest, noise = min(row.missing for row in found.rows), noises[len(noises) // 2]
    at_fewest = [row for row in found.rows if row.missing == fewest]
    at_noise = [row for row in found.rows if row.noise == noise]

    def against_noise(panel: Axes) -> None:
        _draw_errors(panel, at_fewest, "noise")
        panel.set(xscale="log", yscale="log", title=f"Missing transitions: {fewest}")
        panel.set(xlabel="noise of a measurement, σ₁", ylabel="mean distance to the true state")

    def against_missing(panel: Axes) -> None:
        _draw_errors(panel, at_noise, "missing")
        panel.set(yscale="log", title=f"Noise of a measurement: {noise:g}")
        panel.set(xlabel="transitions that a measurement misses", ylabel="mean distance to the true state")

    def gains(panel: Axes) -> None:
        for (previous, gain), rows in _by_setting(at_fewest).items():
            x, y = [row.noise for row in rows], [row.gamma for row in rows]
            panel.plot(x, y, _DASHES[gain], color=_COLOURS[previous])  # the legend is that of the errors
        panel.set(xscale="log", ylim=(0, 1.03), title=f"Weight of a measurement, missing: {fewest}")
        panel.set(xlabel="noise of a measurement, σ₁", ylabel="γ")

    title = (
        f"A linear state-space: drift {found.drift:g}, spread {found.spread:g}, {found.steps} steps, "
        f"{found.seeds} seeds"
    )
    return save_panels(path, title, against_noise, against_missing, gains)


def _draw_errors(panel: Axes, rows: list[StateSpaceRow], against: Literal["noise", "missing"]) -> None:
    settings = _by_setting(rows)
    for (previous, gain), own in settings.items():
        x = [getattr(row, against) for row in own]
        label = f"PRES, previous {previous}, γ {gain}"
        error, spread = [row.pres for row in own], [row.pres_std for row in own]
        panel.errorbar(x, error, spread, fmt=_DASHES[gain], color=_COLOURS[previous], label=label)
    own = next(iter(settings.values()))
    x, error = [getattr(row, against) for row in own], [row.standard for row in own]
    panel.errorbar(x, error, [row.standard_std for row in own], fmt="^:", color=GREY, label="STANDARD")
    panel.legend(frameon=False, fontsize=8)


def _by_setting(rows: list[StateSpaceRow]) -> dict[tuple[str, str], list[StateSpaceRow]]:
    settings: dict[tuple[str, str], list[StateSpaceRow]] = {}
    for row in rows:
        settings.setdefault((row.previous, row.gain), []).append(row)
    return settings
