"""The filter of PRES: predict each memory from its past transitions, correct it by the measurement."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pres.smoothing.config import PRES
from pres.smoothing.gain import Evidence, FixedGain, LearnedGain, PendingGain
from pres.smoothing.trackers import Trackers, Transitions

EVENT, NEGATIVE = 0, 1  # the components of the mixture


class Filter(nn.Module):
    """``ŝ = s + Δ δ̂`` (Eq. 6) and ``s̄ = γ s' + (1 - γ) ŝ`` (Eq. 7), for any memory of any model.

    ``Δ`` is the time difference for rates and the paper's own readings of δ, and 1 for steps; under a pending
    gain a step counts as often as the batch had events of the node. A node of which no transition was seen
    keeps its measurement, unless every update is predicted.

    Args:
        config: The settings.
        num_nodes: Number of nodes.
        dim: Size of a memory.
        unit: What time differences are divided by: the mean gap between two events of a node.
        anchors: The nodes `[a]` with trackers of their own; None for all.
    """

    def __init__(
        self, config: PRES, num_nodes: int, dim: int, unit: float = 1.0, anchors: Tensor | None = None
    ) -> None:
        super().__init__()
        self.config = config
        self.embedded, self.written = config.embed == "corrected", config.keep == "corrected"
        self.live = config.live  # an evaluation may choose otherwise
        self.register_buffer("unit", torch.tensor(unit, dtype=torch.float64))
        self.unit: Tensor
        self.trackers = Trackers(
            num_nodes, dim, config.components, config.mixture == "learned", anchors, config.discount
        )
        # Of each node, which of its mails was recorded last; they are numbered from 1.
        self.register_buffer("recorded", torch.zeros(num_nodes + 1, dtype=torch.int64))
        self.recorded: Tensor
        self.gain: FixedGain | LearnedGain | PendingGain
        if config.gain == "fixed":
            self.gain = FixedGain(config.gamma)
        elif config.gain == "learned":
            self.gain = LearnedGain(config.gamma, dim if config.per_dimension else None)
        else:
            self.gain = PendingGain(config.per_dimension)
        self._sums: Tensor | None = None  # over nodes: what `latest` tells the means of
        self._told = False  # whether it was asked since

    def reset(self) -> None:
        """Forget every transition, as before the first event."""
        self.trackers.reset()
        self.recorded.zero_()

    def forward(
        self,
        nodes: Tensor,
        previous: Tensor,
        measured: Tensor,
        elapsed: Tensor,
        count: Tensor,
        partner_count: Tensor | None = None,
    ) -> Tensor:
        """Return the corrected memory `[u, d]` of nodes `[u]`.

        Args:
            nodes: Which nodes, with news each.
            previous: Their memory before `[u, d]`.
            measured: Their memory as the model updated it `[u, d]`.
            elapsed: The time between the two `[u]`, in the stream's unit.
            count: Events of each node in the batch that the update comes from `[u]`.
            partner_count: And of the partner in its last one; None for 1 each.
        """
        seen = self.trackers.transitions(nodes)
        span = self._span(elapsed, count)
        step = (seen.mean if span is None else span * seen.mean).to(measured.dtype)
        gain = self._gain(nodes, seen, span, count, partner_count).to(measured.dtype)
        if torch.is_grad_enabled():
            self._note(gain.detach(), step.detach(), seen.known)
        if not self.config.every_update:
            gain = torch.where(seen.known.unsqueeze(1), gain, 1)  # 1 returns the measurement, to the bit
        return torch.lerp(previous + step, measured, gain)

    def latest(self) -> dict[str, Tensor]:
        """Return the mean γ of the latest corrections, and the mean length of what their predictions added.

        These are all corrections within reach of gradients since it was last asked: a step of training may
        take several, of some nodes each. Both means are over the nodes that had a prediction; where none had,
        γ is as it would have been. Asked again without a new correction, it tells the same.
        """
        if self._sums is None:
            return {}
        self._told = True
        nodes, gain, known, known_gain, length = self._sums.unbind()
        mean_gain = torch.where(known > 0, known_gain / known.clamp(min=1), gain / nodes.clamp(min=1))
        return {"gain": mean_gain, "delta": length / known.clamp(min=1)}

    def _note(self, gain: Tensor, step: Tensor, known: Tensor) -> None:
        """Add a correction to what `latest` tells."""
        per_node = (gain.mean(1) if gain.ndim == 2 else gain.mean().expand(len(known))).double()
        weight = known.double()
        length = weight * step.norm(dim=1)
        of_each = (torch.ones_like(weight), per_node, weight, weight * per_node, length)
        sums = torch.stack([values.sum() for values in of_each])
        if self._sums is not None and not self._told:
            sums = sums + self._sums.to(sums.device)
        self._sums, self._told = sums, False

    @torch.no_grad()
    def observe(
        self,
        nodes: Tensor,
        previous: Tensor,
        measured: Tensor,
        corrected: Tensor,
        elapsed: Tensor,
        count: Tensor,
        component: int = EVENT,
    ) -> None:
        """Take in the transitions of nodes `[u]`: arguments as of the correction, and what it returned.

        ``component`` says whether the nodes had an event (0) or were drawn as negatives (1); with a mixture
        of one component only events count. To observe several components of one batch, find the `transitions`
        of all before any is recorded: an innovation is told by what the correction knew.
        """
        found = self.transitions(nodes, previous, measured, corrected, elapsed, count)
        self.record(*found, component)

    @torch.no_grad()
    def first_sight(self, nodes: Tensor, mails: Tensor) -> Tensor:
        """Return which of distinct nodes `[u]` have mail that was not recorded yet, and note it as recorded.

        A node may be drawn as a negative again and again before its mail is committed: that is one
        transition. ``mails`` `[u]` numbers the newest mail of each, from 1.
        """
        rows = nodes.clamp(max=len(self.recorded) - 1)
        new = (self.recorded.index_select(0, rows) != mails).nonzero().squeeze(1)
        self.recorded.index_copy_(0, rows, mails)
        return new

    def record(self, nodes: Tensor, delta: Tensor, component: int) -> None:
        """Let trackers take in what `transitions` found."""
        if component < self.config.components:
            self.trackers.observe(nodes, delta, component)

    @torch.no_grad()
    def transitions(
        self,
        nodes: Tensor,
        previous: Tensor,
        measured: Tensor,
        corrected: Tensor,
        elapsed: Tensor,
        count: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Return the nodes among ``nodes`` `[u]` that made a transition, and its δ `[v, d]`.

        Unless every update counts, the first of a node does not: it leads from nothing to a memory, farther
        than any that follows, and would make bad predictions of those.
        """
        end = corrected if self.config.observed == "corrected" else measured
        span = self._span(elapsed, count)
        if self.config.delta == "innovation":
            assert span is not None
            delta = end - (previous + span * self.trackers.transitions(nodes).mean)
        elif self.config.delta == "residual":
            delta = end - measured
        elif self.config.delta == "step" and self.config.observed == "measured":
            delta = end - previous  # a measurement is one update, whatever its batch held
        else:
            delta = end - previous if span is None else (end - previous) / span
        if self.config.every_update:
            return nodes, delta
        begun = (previous != 0).any(dim=1).nonzero().squeeze(1)
        return (nodes, delta) if len(begun) == len(nodes) else (nodes[begun], delta[begun])

    def _span(self, elapsed: Tensor, count: Tensor) -> Tensor | None:
        """Return how many times `[u, 1]` a prediction adds δ̂; None where it is once each."""
        if self.config.delta == "step":
            pending = self.config.gain == "pending"
            return count.clamp(min=1).unsqueeze(1).to(self.trackers.total.dtype) if pending else None
        gap = (elapsed / self.unit).clamp(self.config.shortest_gap, self.config.longest_gap)
        return gap.unsqueeze(1).to(self.trackers.total.dtype)

    def _gain(
        self,
        nodes: Tensor,
        seen: Transitions,
        span: Tensor | None,
        count: Tensor,
        partner_count: Tensor | None,
    ) -> Tensor:
        variance = seen.mean.new_zeros(())
        if self.gain.needs_variance:
            variance = self.trackers.variance(nodes)
            variance = variance if span is None else span.square() * variance
        partner = torch.ones_like(count) if partner_count is None else partner_count
        gain: Tensor = self.gain(Evidence(count, partner, seen.observations, variance))
        return gain
