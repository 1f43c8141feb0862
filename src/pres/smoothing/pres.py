"""PRES: a predict-correct filter for the memory of any model, and the coherence objective."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal, Self

import pydantic
import torch
from torch import Tensor, nn

from pres.data.stream import EventStream
from pres.errors import OptionError, check_choice
from pres.nn.allocation import lengthened
from pres.nn.memory import MemoryStore
from pres.smoothing.base import Role, Smoothing, SmoothingSettings, Update
from pres.smoothing.coherence import batch_coherence_loss, coherence_loss
from pres.smoothing.trackers import Trackers

Reading = Literal["equations", "algorithm"]
_COMPONENTS: dict[Role, int] = {"event": 0, "negative": 1}  # of the mixture


class PRES(SmoothingSettings):
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
        components: Components of the mixture per node: 2 follow events and drawn negatives, 1 only events.
            They are weighted by their counts, which is the same as one pooled tracker.
        gain: The weight γ of the measurement (Eq. 7): ``"learned"`` as σ(θ), or ``"fixed"``.
        gamma: Where a learned γ starts, or what a fixed one is.
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
        shortest_gap: Time differences below this (in mean gaps of a node) count as this; ties have 0.
        longest_gap: Time differences above this count as this; None for no limit.
    """

    method: Literal["pres"] = "pres"
    beta: float = pydantic.Field(0.1, ge=0, allow_inf_nan=False)
    filter: bool = True
    delta: Literal["rate", "step", "innovation", "residual"] = "step"
    components: Literal[1, 2] = 2
    gain: Literal["learned", "fixed"] = "learned"
    gamma: float = pydantic.Field(0.8, gt=0, le=1)
    embed: Literal["corrected", "measured"] = "corrected"
    keep: Literal["corrected", "measured"] = "corrected"
    coherence: Literal["node", "batch", "updated"] = "node"
    every_update: bool = False
    discount: float = pydantic.Field(1.0, gt=0, le=1)
    live: bool = False
    negative_messages: bool = False
    anchors: int | None = pydantic.Field(None, ge=1)
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

    @property
    def title(self) -> str:
        """``"PRES (ours)"``, or which published reading it is."""
        return "PRES (ours)" if self.reading == "ours" else f"PRES as published ({self.reading})"

    @property
    def corrects(self) -> bool:
        """Whether there is a filter."""
        return self.filter

    def build(self, memory: MemoryStore, unit: float = 1.0, activity: Tensor | None = None) -> PRESSmoothing:
        """Return PRES for a memory; see `SmoothingSettings.build`."""
        anchors = None
        if self.anchors is not None:
            activity = torch.zeros(memory.num_nodes) if activity is None else activity
            anchors = torch.argsort(activity, descending=True, stable=True)[: self.anchors]
        made = PRESSmoothing(self, memory.num_nodes, memory.dim, unit, anchors)
        return made.to(memory.device, memory.dtype)

    @pydantic.model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if not self.filter and self.beta == 0:
            raise ValueError("filter=False and beta=0 leave nothing of PRES: train without it.")
        if self.gain == "learned" and self.gamma == 1:
            raise ValueError("gamma=1 is where a learned gain cannot start: use less, or gain='fixed'.")
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
    "components": 2,
    "gain": "learned",
    "every_update": True,
    "discount": 1.0,
    "anchors": None,
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


class PRESSmoothing(Smoothing):
    """``ŝ = s + Δ δ̂`` (Eq. 6) and ``s̄ = γ s' + (1 - γ) ŝ`` (Eq. 7), and ``β (1 - coherence)`` (Eq. 10).

    ``Δ`` is the time difference for rates and the paper's own readings of δ, and 1 for steps. A node of which
    no transition was seen keeps its measurement, unless every update is predicted.

    Args:
        settings: The settings.
        num_nodes: Number of nodes.
        dim: Size of a memory.
        unit: What time differences are divided by: the mean gap between two events of a node.
        anchors: The nodes `[a]` with trackers of their own; None for all.
    """

    def __init__(
        self, settings: PRES, num_nodes: int, dim: int, unit: float = 1.0, anchors: Tensor | None = None
    ) -> None:
        super().__init__()
        self.settings = settings
        self._stats: dict[str, Tensor] = {}
        if not settings.filter:
            return
        self.live, self.negatives_send = settings.live, settings.negative_messages
        self.embedded, self.written = settings.embed == "corrected", settings.keep == "corrected"
        self.observes = ("event", "negative") if settings.components == 2 else ("event",)
        self.register_buffer("unit", torch.tensor(unit, dtype=torch.float64))
        self.unit: Tensor
        self.trackers = Trackers(num_nodes, dim, settings.components, anchors, settings.discount)
        # Of each node, which of its mails was recorded last; they are numbered from 1.
        self.register_buffer("recorded", torch.zeros(num_nodes + 1, dtype=torch.int64))
        self.recorded: Tensor
        if settings.gain == "learned":
            self.theta = nn.Parameter(torch.tensor(math.log(settings.gamma / (1 - settings.gamma))))

    @property
    def gain(self) -> Tensor:
        """The weight γ of the measurement `[]`."""
        if self.settings.gain == "learned":
            return self.theta.sigmoid()
        return self.trackers.total.new_tensor(self.settings.gamma)

    def reset(self) -> None:
        """Forget every transition."""
        if self.settings.filter:
            self.trackers.reset()
            self.recorded.zero_()

    def grow(self, events: EventStream) -> None:
        """Make room for the new nodes of a stream that has grown."""
        if self.settings.filter:
            self.trackers.make_room(events.num_nodes)
            self.recorded = lengthened(self.recorded, events.num_nodes + 1 - len(self.recorded))

    def kept(self, nodes: Tensor) -> Callable[[], None]:
        """Return what puts the trackers of some nodes back as they are; see `Smoothing.kept`."""
        recorded, put_back = self.recorded.index_select(0, nodes), self.trackers.kept(nodes)

        def all_back() -> None:
            self.recorded.index_copy_(0, nodes, recorded)
            put_back()

        return all_back

    def correct(self, nodes: Tensor, previous: Tensor, measured: Tensor, elapsed: Tensor) -> Tensor:
        """Return the corrected memory `[u, d]`; the memory as measured without a filter."""
        if not self.settings.filter:
            return measured
        mean, observations = self.trackers.mean(nodes)
        known, span = observations > 0, self._span(elapsed)
        step = (mean if span is None else span * mean).to(measured.dtype)
        gain = self.gain.to(measured.dtype)
        if torch.is_grad_enabled():
            lengths = torch.where(known, step.norm(dim=1), 0)
            self._stats |= {"gain": gain.detach(), "delta": lengths.sum() / known.sum().clamp(min=1)}
        if not self.settings.every_update:
            gain = torch.where(known.unsqueeze(1), gain, 1)  # 1 returns the measurement, to the bit
        return torch.lerp(previous + step, measured, gain)

    def loss(self, previous: Tensor, corrected: Tensor, updated: Tensor, roots: Tensor) -> Tensor:
        """Return ``beta`` times one minus the coherence of the step's memories (Eq. 10)."""
        coherence, beta = self.settings.coherence, self.settings.beta
        with torch.set_grad_enabled(beta > 0 and torch.is_grad_enabled()):
            if coherence == "node":
                incoherence = coherence_loss(previous, corrected, updated)
            else:
                if coherence == "batch":
                    updated = torch.zeros_like(updated).index_fill_(0, roots, True)
                incoherence = batch_coherence_loss(previous, corrected, updated)
        self._stats["coherence"] = 1 - incoherence.detach()
        weighted: Tensor = beta * incoherence
        return weighted

    @torch.no_grad()
    def observe(self, update: Update, places: Mapping[Role, Tensor]) -> None:
        """Let the trackers take in each transition, the first time that it is seen."""
        found = []
        for role in sorted(places):  # events first
            place = places[role]
            place = place[self._first_sight(update.nodes[place], update.mails[place])]
            seen = Update(*(values.index_select(0, place) for values in update))
            found.append((role, *self._transitions(seen)))
        for role, nodes, delta in found:  # an innovation is relative to what the correction knew
            self.trackers.observe(nodes, delta, _COMPONENTS[role])

    def stats(self) -> dict[str, Tensor]:
        """Return ``coherence``; with a filter also ``gain``, the γ of the latest correction, and ``delta``.

        ``delta`` is the mean length of what predictions added, over the nodes with a prediction.
        """
        return dict(self._stats)

    def epoch_stats(self) -> dict[str, float]:
        """Return ``tracked``: the share of nodes, or of anchors, with at least one transition."""
        return {"tracked": self.trackers.tracked_share()} if self.settings.filter else {}

    def _first_sight(self, nodes: Tensor, mails: Tensor) -> Tensor:
        """Return which of distinct nodes `[u]` have mail that was not recorded yet, and note it as recorded.

        A node may be drawn as a negative again and again before its mail is committed: that is one
        transition.
        """
        rows = nodes.clamp(max=len(self.recorded) - 1)
        new = (self.recorded.index_select(0, rows) != mails).nonzero().squeeze(1)
        self.recorded.index_copy_(0, rows, mails)
        return new

    def _transitions(self, update: Update) -> tuple[Tensor, Tensor]:
        """Return the nodes that made a transition, and its δ `[v, d]`.

        Unless every update counts, the first of a node does not: it leads from nothing to a memory, farther
        than any that follows, and would make bad predictions of those.
        """
        kind, previous, corrected = self.settings.delta, update.previous, update.corrected
        span = self._span(update.elapsed)
        if kind == "residual":
            delta = corrected - update.measured
        elif span is None:
            delta = corrected - previous
        elif kind == "rate":
            delta = (corrected - previous) / span
        else:
            delta = corrected - (previous + span * self.trackers.mean(update.nodes)[0])
        if self.settings.every_update:
            return update.nodes, delta
        begun = (previous != 0).any(dim=1).nonzero().squeeze(1)
        return update.nodes[begun], delta[begun]

    def _span(self, elapsed: Tensor) -> Tensor | None:
        """Return how many times `[u, 1]` a prediction adds δ̂; None where it is once each."""
        if self.settings.delta == "step":
            return None
        gap = (elapsed / self.unit).clamp(self.settings.shortest_gap, self.settings.longest_gap)
        return gap.unsqueeze(1).to(self.trackers.total.dtype)
