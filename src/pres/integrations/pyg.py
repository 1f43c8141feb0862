"""PRES on the memory of PyTorch Geometric: `torch_geometric.nn.TGNMemory`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from pres.data.incidence import distinct
from pres.errors import OptionError
from pres.smoothing import PRES, PRESSmoothing, Role, Update, movement

if TYPE_CHECKING:
    from torch_geometric.nn import TGNMemory

_STATE = ("memory", "last_update", "msg_s_store", "msg_d_store", "num_nodes", "memory_dim")
_METHODS = ("_get_updated_memory", "_update_memory", "update_state", "reset_state")


def smooth(
    memory: TGNMemory,
    config: PRES | None = None,
    *,
    unit: float | None = None,
    anchors: Tensor | None = None,
) -> Smoothing:
    """Return the smoothing of a `TGNMemory`, put on it: wherever PyG updates a memory, it is corrected.

    It becomes the submodule ``memory.smoothing``, so ``memory.parameters()`` hold what the filter learns and
    ``memory.state_dict()`` its trackers. Make the optimiser afterwards.

    Args:
        memory: The memory, with nothing else to change about it or about the model around it.
        config: The settings; ``PRES()`` if not given.
        unit: What time differences are divided by: the mean gap between two events of a node, see
            `pres.models.time_units`. Needed for every ``delta`` but ``"step"``.
        anchors: The nodes `[a]` with trackers of their own; None for all. A memory knows no stream, so
            ``PRES(anchors=…)`` needs them.
    """
    config = PRES() if config is None else config
    _check(memory, config, unit, anchors)
    made = Smoothing(memory, config, 1.0 if unit is None else unit, anchors)
    memory.smoothing = made
    # What is set on an object goes before what its class has, also when the class itself calls it.
    memory._get_updated_memory = made._updated_memory
    memory._update_memory = made._commit
    memory.update_state = made._update_state
    memory.reset_state = made._reset_state
    return made


class _Latest(NamedTuple):
    """The memory of distinct nodes `[u]`, around the messages that PyG holds for them."""

    update: Update  # ``corrected`` is as measured for a node without messages
    last_update: Tensor  # [u]
    pending: Tensor  # [u] bool, whether there were messages


class Smoothing(nn.Module):
    """The filter and the objective of PRES on one `TGNMemory`; `smooth` makes it.

    In training the trackers take in what every ``memory.update_state(…)`` writes; in evaluation they are only
    read; ``memory.reset_state()`` empties them. A node without messages stays as PyG has it, and so does one
    of which no transition was seen.
    """

    def __init__(self, memory: TGNMemory, config: PRES, unit: float, anchors: Tensor | None) -> None:
        super().__init__()
        self.config = config
        self._owner = (memory,)  # in a tuple: as modules, each of the two would be inside the other
        self.method = PRESSmoothing(config, memory.num_nodes, memory.memory_dim, unit, anchors)
        # Batches that had an event of the node; PyG keeps messages out of its state as well.
        self.register_buffer("received", torch.zeros(memory.num_nodes, dtype=torch.int64), persistent=False)
        self.received: Tensor
        self._committing = False
        self._latest: _Latest | None = None
        self._committed: _Latest | None = None
        self._drawn: Tensor | None = None
        self.to(memory.memory.device, memory.memory.dtype)

    def objective(self) -> Tensor:
        """Return ``beta * (1 - coherence)`` of the latest ``memory(n_id)``, to be added to the loss."""
        return self._loss(self._latest_forward("objective"))

    def negatives(self, nodes: Tensor) -> None:
        """Name the nodes drawn as negatives of the batch, before ``memory.update_state(…)`` takes it in.

        The second component of the mixture tracks those of them that have messages. Without this call it
        stays empty, and the mixture is that of events alone.
        """
        self._drawn = distinct(nodes)

    @torch.no_grad()
    def latest(self) -> dict[str, float]:
        """Return the coherence and movement of the latest ``memory(n_id)``, and γ and ‖Δ δ̂‖ of its filter."""
        update, _, pending = latest = self._latest_forward("latest")
        self._loss(latest)
        moved = movement(update.previous, update.corrected, pending)
        return {name: float(value) for name, value in (self.method.stats() | {"movement": moved}).items()}

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy takes over: not the latest update, whose graph cannot be copied."""
        return vars(self) | {"_latest": None, "_committed": None}

    def _latest_forward(self, asked: str) -> _Latest:
        if self._latest is None:
            raise OptionError(
                f"smoothing.{asked}() is about the latest memory(n_id) in training: call memory.train() and "
                "memory(n_id) first."
            )
        return self._latest

    def _loss(self, latest: _Latest) -> Tensor:
        update, _, pending = latest
        return self.method.loss(update.previous, update.corrected, pending, pending.nonzero().squeeze(1))

    # What PyG calls in place of its own methods, and theirs underneath.

    def _updated_memory(self, n_id: Tensor) -> tuple[Tensor, Tensor]:
        update, last_update, _ = measured = self._measure(n_id)
        if self._committing:
            self._committed = measured
            return update.corrected, last_update
        self._latest = measured
        return (update.corrected if self.config.embed == "corrected" else update.measured), last_update

    def _commit(self, n_id: Tensor) -> None:
        self._committing = True
        try:
            self._plain("_update_memory", n_id)
        finally:
            self._committing = False

    def _update_state(self, src: Tensor, dst: Tensor, t: Tensor, raw_msg: Tensor) -> None:
        drawn, self._drawn = self._drawn, None
        found: dict[Role, _Latest] = {}
        if self._memory.training and drawn is not None and "negative" in self.method.observes:
            with torch.no_grad():
                found["negative"] = self._measure(drawn)
        self._plain("update_state", src, dst, t, raw_msg)
        if self._memory.training and self.method.observes and self._committed is not None:
            found["event"] = self._committed
            self._observe(found)
        self._committed = None
        self.received[distinct(torch.cat([src, dst]))] += 1

    def _observe(self, found: dict[Role, _Latest]) -> None:
        """Let the method observe the nodes of each role."""
        whole = Update(*map(torch.cat, zip(*(each.update for each in found.values()), strict=True)))
        places, start = {}, 0
        for role, each in found.items():
            places[role] = start + each.pending.nonzero().squeeze(1)
            start += len(each.pending)
        self.method.observe(whole, places)

    def _reset_state(self) -> None:
        self._plain("reset_state")
        self.method.reset()
        self.received.zero_()
        self._latest = self._drawn = None

    @property
    def _memory(self) -> TGNMemory:
        return self._owner[0]

    def _plain(self, name: str, *arguments: Tensor) -> Any:
        """Return what PyG's own method of that name does."""
        return getattr(type(self._memory), name)(self._memory, *arguments)

    def _measure(self, n_id: Tensor) -> _Latest:
        """Return the memory of distinct nodes as PyG updates it, and as the filter corrects that."""
        memory = self._memory
        previous = memory.memory[n_id]
        measured, last_update = self._plain("_get_updated_memory", n_id)
        elapsed, pending = last_update - memory.last_update[n_id], self._has_messages(n_id)
        corrected = self.method.correct(n_id, previous, measured, elapsed)
        corrected = torch.where(pending.unsqueeze(1), corrected, measured)
        update = Update(n_id, previous, measured, corrected, elapsed, self.received[n_id])
        return _Latest(update, last_update, pending)

    def _has_messages(self, n_id: Tensor) -> Tensor:
        stores = self._memory.msg_s_store, self._memory.msg_d_store
        found = [any(len(store[node][0]) > 0 for store in stores) for node in n_id.tolist()]
        return torch.tensor(found, dtype=torch.bool, device=n_id.device)


def _check(memory: TGNMemory, config: PRES, unit: float | None, anchors: Tensor | None) -> None:
    """Raise unless this memory can be smoothed so."""
    missing = [name for name in (*_STATE, *_METHODS) if not hasattr(memory, name)]
    if missing:
        raise OptionError(
            f"{type(memory).__name__} has no {', '.join(missing)}: smooth is for a "
            "torch_geometric.nn.TGNMemory as of torch-geometric 2.6 to 2.8."
        )
    if any(name in vars(memory) for name in _METHODS):
        raise OptionError("this memory is smoothed already, or changed by others: make a new TGNMemory.")
    for name, value in (("coherence", "batch"), ("keep", "measured"), ("live", True)):
        if getattr(config, name) == value:
            raise OptionError(f"PRES({name}={value!r}) is for pres.fit: a TGNMemory knows no batches.")
    if unit is None and config.filter and config.delta != "step":
        raise OptionError(f"delta={config.delta!r} needs a unit: the mean gap between two events of a node.")
    if unit is not None and not 0 < unit < math.inf:
        raise OptionError(f"unit={unit}: time differences are divided by it, so it must be above 0.")
    given = 0 if anchors is None else len(anchors)
    if config.anchors is not None and config.anchors != given:
        raise OptionError(
            f"PRES(anchors={config.anchors}) asks for the most active nodes, which a memory does not know: "
            f"give smooth(anchors=…) a tensor of {config.anchors} nodes, not {given}."
        )
