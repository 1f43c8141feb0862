"""The settings of PRES: every point that the paper leaves open is one of them."""

from __future__ import annotations

from typing import Any, Literal, Self

import pydantic

from pres.errors import OptionError, check_choice
from pres.settings import Settings

Reading = Literal["equations", "algorithm"]


class PRES(Settings):
    """PREdict-to-Smooth: a filter that mends what a large temporal batch does to memory, and an objective.

    The filter (PRES-V) predicts each memory from the transitions seen before and fuses that with the memory
    the batch measured. The objective (PRES-S) adds ``beta * (1 - coherence)`` to the loss. Either works
    alone: ``PRES(filter=False)`` is PRES-S, ``PRES(beta=0)`` is PRES-V.

    The defaults are ours. `published` gives the method as the paper prints it.

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
        keep: Whether the ``"corrected"`` or the ``"measured"`` memory is written back (Algorithm 2).
        coherence: The mean cosine per ``"node"`` (ours); or one inner product over the vertices of the
            ``"batch"`` (Eq. 10), or over those that the step ``"updated"`` (Algorithm 2).
        every_update: Whether every update of a node is predicted and recorded (Eqs. 6 to 8), from a mean
            transition of 0 on. Otherwise the first update is not recorded, and a node of which nothing is
            recorded keeps its measurement.
        discount: What a transition counts for after each further one of its node; 1 counts all of them alike.
        live: Whether trackers also follow the events of evaluation; otherwise they are frozen there.
        negative_messages: Whether negative pairs send messages to their drawn node, as the pseudo-code has
            it; only with ``keep="measured"``.
        anchors: Trackers only for so many nodes, the most active; all others share one.
        lr_rule: ``"sqrt"`` multiplies the learning rate by √(events per step / 200), as Theorem 2 asks; the
            same as ``lr_rule`` of `pres.fit`, for training with PRES alone.
        shortest_gap: Time differences below this (in mean gaps of a node) count as this; ties have 0.
        longest_gap: Time differences above this count as this; None for no limit.
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
    keep: Literal["corrected", "measured"] = "corrected"
    coherence: Literal["node", "batch", "updated"] = "node"
    every_update: bool = False
    discount: float = pydantic.Field(1.0, gt=0, le=1)
    live: bool = False
    negative_messages: bool = False
    anchors: int | None = pydantic.Field(None, ge=1)
    lr_rule: Literal["fixed", "sqrt"] = "fixed"
    shortest_gap: float = pydantic.Field(0.1, ge=0, allow_inf_nan=False)
    longest_gap: float | None = pydantic.Field(10.0, gt=0, allow_inf_nan=False)

    def __init__(self, **options: Any) -> None:
        with self.checking(options, "PRES"):
            super().__init__(**options)

    @classmethod
    def published(cls, reading: Reading, **options: Any) -> Self:
        """Return PRES to the letter of the paper, in one of its two readings, which contradict each other.

        ``"equations"`` is Eqs. 6, 7, 8 and 10: embeddings and write-back use the corrected memory, trackers
        follow the innovation. ``"algorithm"`` is Algorithm 2: embeddings and write-back use the measured
        memory, the corrected one enters the coherence alone, trackers follow its residual, and negatives send
        messages (``negative_messages=False``: only events do).

        The paper does not say in which unit time is counted: here in mean gaps of a node, without a limit.
        ``options`` are those that the paper varies or that a study needs: ``beta``, ``filter``, ``gamma``,
        ``live`` and, of the algorithm, ``negative_messages``.
        """
        check_choice("reading", reading, tuple(_PUBLISHED))
        settled = _LETTER | _PUBLISHED[reading]
        for name in options:
            if name not in _OPEN or name in settled:
                raise OptionError(
                    f"PRES.published({reading!r}) has no option {name!r}: the paper settles it. It has "
                    f"{', '.join(option for option in _OPEN if option not in settled)}."
                )
        sends = reading == "algorithm" and options.get("filter", True) is not False
        return cls(**{"negative_messages": sends} | settled | options)

    @property
    def reading(self) -> Literal["equations", "algorithm", "ours"]:
        """Which published reading this is; ``"ours"`` for anything else."""
        for reading, settled in _PUBLISHED.items():
            if all(getattr(self, name) == value for name, value in (_LETTER | settled).items()):
                return reading
        return "ours"

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
        if self.longest_gap is not None and self.shortest_gap > self.longest_gap:
            raise ValueError(f"shortest_gap={self.shortest_gap} exceeds longest_gap={self.longest_gap}.")
        if self.delta == "rate" and self.shortest_gap == 0:
            raise ValueError("delta='rate' divides by time differences: shortest_gap must be above 0.")
        if self.negative_messages and (self.keep != "measured" or not self.filter):
            raise ValueError(
                "negative_messages are those of Algorithm 2: use PRES.published('algorithm', "
                "negative_messages=True)."
            )
        return self


_LETTER: dict[str, Any] = {
    "observed": "corrected",
    "components": 2,
    "mixture": "counts",
    "gain": "learned",
    "per_dimension": False,
    "every_update": True,
    "discount": 1.0,
    "anchors": None,
    "lr_rule": "fixed",
    "shortest_gap": 0.0,
    "longest_gap": None,
}
_PUBLISHED: dict[Reading, dict[str, Any]] = {
    "equations": {
        "delta": "innovation",
        "embed": "corrected",
        "keep": "corrected",
        "coherence": "batch",
        "negative_messages": False,
    },
    "algorithm": {"delta": "residual", "embed": "measured", "keep": "measured", "coherence": "updated"},
}
_OPEN = ("beta", "filter", "gamma", "live", "negative_messages")
