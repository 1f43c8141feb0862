"""The filters that a distance to exact memory is measured with, and their names."""

from __future__ import annotations

from collections.abc import Sequence

from pres.smoothing import PRES

DELTAS = ("rate", "step", "innovation", "residual")
GAMMAS = (0.3, 0.5, 0.7, 0.9)
DISCOUNTS = (1.0, 0.5, 0.8, 0.9, 0.95)  # 1: all transitions count alike


def candidates(
    deltas: Sequence[str] = DELTAS,
    gammas: Sequence[float] = GAMMAS,
    discounts: Sequence[float] = DISCOUNTS,
) -> tuple[PRES, ...]:
    """Return every filter of a fixed gain that these make.

    They follow events alone, as the measurement does.
    """
    return tuple(
        PRES(beta=0.0, delta=delta, gain="fixed", gamma=gamma, components=1, discount=discount)
        for discount in discounts
        for delta in deltas
        for gamma in gammas
    )


def described(settings: PRES) -> str:
    """Return what tells a filter from others, in a few words."""
    gain = f"γ {settings.gamma:g}" if settings.gain == "fixed" else f"γ {settings.gain}"
    discount = "" if settings.discount == 1 else f", discount {settings.discount:g}"
    return f"{settings.delta}, {gain}{discount}"
