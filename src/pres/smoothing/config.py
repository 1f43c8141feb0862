"""The settings of PRES: every point that the paper leaves open is one of them."""

from __future__ import annotations

from typing import Any, Literal, Self

import pydantic

from pres.settings import Settings


class PRES(Settings):
    """PREdict-to-Smooth: a filter that mends what a large temporal batch does to memory, and an objective.

    The filter (PRES-V) predicts each memory from the transitions seen before and fuses that with the memory
    the batch measured. The objective (PRES-S) adds ``beta * (1 - coherence)`` to the loss. Either works
    alone: ``PRES(filter=False)`` is PRES-S, ``PRES(beta=0)`` is PRES-V.

    Attributes:
        beta: Weight of the coherence objective (Eq. 10); 0 leaves it out.
        filter: Whether to predict and correct.
        delta: What trackers follow and predictions add (Eq. 6, 8). ``"rate"``: the transition per time;
            ``"step"``: the transition per update; ``"innovation"``: corrected minus predicted, as Eq. 8;
            ``"residual"``: corrected minus measured, as Algorithm 2.
        observed: Whether transitions end at the ``"corrected"`` or at the ``"measured"`` memory.
        components: Components of the mixture per node: 2 follow events and drawn negatives, 1 only events.
        mixture: Their weights: by ``"counts"`` (the same as one pooled tracker), or ``"learned"`` for all.
        gain: The weight γ of the measurement (Eq. 7): ``"learned"``, ``"fixed"``, or ``"pending"``: from the
            events that a batch held of the node and of its partner, and from the tracked variance.
        gamma: Where a learned γ starts, or what a fixed one is.
        per_dimension: Whether γ is one number per dimension of the memory.
        embed: Whether embeddings see the ``"corrected"`` or the ``"measured"`` memory (Algorithm 2).
        coherence: The mean cosine per ``"node"``, or one inner product of the whole ``"batch"``.
        anchors: Trackers only for so many nodes, the most active; all others share one.
        lr_rule: ``"sqrt"`` multiplies the learning rate by √(events per step / 200), as Theorem 2 asks; the
            same as ``lr_rule`` of `pres.fit`, for training with PRES alone.
        shortest_gap: Time differences below this (in mean gaps of a node) count as this; ties have 0.
        longest_gap: Time differences above this count as this.
    """

    beta: float = pydantic.Field(0.1, ge=0, allow_inf_nan=False)
    filter: bool = True
    delta: Literal["rate", "step", "innovation", "residual"] = "step"
    observed: Literal["corrected", "measured"] = "corrected"
    components: Literal[1, 2] = 2
    mixture: Literal["counts", "learned"] = "counts"
    gain: Literal["learned", "pending", "fixed"] = "learned"
    gamma: float = pydantic.Field(0.8, gt=0, le=1)
    per_dimension: bool = False
    embed: Literal["corrected", "measured"] = "corrected"
    coherence: Literal["node", "batch"] = "node"
    anchors: int | None = pydantic.Field(None, ge=1)
    lr_rule: Literal["fixed", "sqrt"] = "fixed"
    shortest_gap: float = pydantic.Field(0.1, gt=0)
    longest_gap: float = pydantic.Field(10.0, gt=0, allow_inf_nan=False)

    def __init__(self, **options: Any) -> None:
        with self.checking(options, "PRES"):
            super().__init__(**options)

    @pydantic.model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if not self.filter and self.beta == 0:
            raise ValueError("filter=False and beta=0 leave nothing of PRES: train without it.")
        if self.gain == "learned" and self.gamma == 1:
            raise ValueError("gamma=1 is where a learned gain cannot start: use less, or gain='fixed'.")
        if self.delta == "residual" and self.observed == "measured":
            raise ValueError(
                "delta='residual' is the corrected minus the measured memory: observe 'corrected'."
            )
        if self.gain == "fixed" and self.per_dimension:
            raise ValueError(
                "per_dimension=True needs a gain that is learned or pending: a fixed one is gamma."
            )
        if self.mixture == "learned" and self.components == 1:
            raise ValueError("mixture='learned' weighs components against each other: use components=2.")
        if self.shortest_gap > self.longest_gap:
            raise ValueError(f"shortest_gap={self.shortest_gap} exceeds longest_gap={self.longest_gap}.")
        return self
