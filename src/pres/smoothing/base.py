"""The interface of a smoothing method: what a model's memory, training and evaluation call.

A method is two classes. Its settings, a `SmoothingSettings`, are what `pres.fit` takes and what a run saves;
they `build` the method itself, a `Smoothing`, for one model. `pres.smoothing.pres` is an example of both.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, NamedTuple

from torch import Tensor, nn

from pres.data.stream import EventStream
from pres.errors import OptionError
from pres.nn.memory import MemoryStore
from pres.settings import Settings

Role = Literal["event", "negative"]  # of a node in a batch: an endpoint of its events, or drawn as a negative


class Update(NamedTuple):
    """What pending mail does to the memory of distinct nodes `[u]`, most of which have some."""

    nodes: Tensor  # [u]
    previous: Tensor  # [u, d], as committed
    measured: Tensor  # [u, d], as the model updates it
    corrected: Tensor  # [u, d], what `Smoothing.correct` made of that
    elapsed: Tensor  # [u], the time between previous and measured, in the stream's unit
    mails: Tensor  # [u], the number of each node's newest mail, counted from 1


class Smoothing(nn.Module):
    """A smoothing method on one model. Every default does nothing: a method overrides what it needs.

    Per step training calls `correct` (through the model's memory), `loss` and `stats`; per batch `observe`.
    Buffers and parameters are saved, restored and trained with the model's.
    """

    embedded: bool = True  # whether embeddings see the corrected memory, or the measured one
    written: bool = True  # whether the corrected memory is committed, or the measured one
    observes: tuple[Role, ...] = ()  # whose updates `observe` is to be told of
    live: bool = False  # whether it also observes in evaluation; otherwise it is frozen there
    negatives_send: bool = False  # whether pairs drawn as negatives send messages in training

    def reset(self) -> None:
        """Forget every event, as before the first: memory is reset with it."""

    def grow(self, events: EventStream) -> None:
        """Make room for the new nodes of a stream that has grown."""

    def kept(self, nodes: Tensor) -> Callable[[], None]:
        """Return what puts all back that `observe` is about to change, being told of distinct nodes `[u]`.

        This one keeps a copy of the whole state; a method overrides it where it has much.
        """
        before = {name: buffer.clone() for name, buffer in self.named_buffers()}

        def put_back() -> None:
            for name, buffer in self.named_buffers():
                buffer.copy_(before[name])

        return put_back

    def correct(self, nodes: Tensor, previous: Tensor, measured: Tensor, elapsed: Tensor) -> Tensor:
        """Return the corrected memory `[u, d]` of nodes, of which those with mail are used.

        Arguments are as in `Update`. ``measured`` itself is returned if there is nothing to correct.
        """
        return measured

    def loss(self, previous: Tensor, corrected: Tensor, updated: Tensor, roots: Tensor) -> Tensor:
        """Return what is added to the loss of a step `[]`.

        Args:
            previous: The memory `[u, d]` of the step's nodes before their mail.
            corrected: Their memory with it, within reach of gradients.
            updated: Which of them had mail `[u]`.
            roots: Where the endpoints and negatives of the step's events are among them `[r]`.
        """
        return previous.new_zeros(())

    def observe(self, update: Update, places: Mapping[Role, Tensor]) -> None:
        """Learn from the updates of a batch, after it was taken in.

        Args:
            update: The nodes of all roles, around the mail that was pending before the batch.
            places: Of each role in `observes`, where its nodes with mail are among them, each once. The same
                update of a node may come several times, until the node's next event commits it.
        """

    def stats(self) -> dict[str, Tensor]:
        """Return what is worth logging of the latest step, by name; training logs means over events."""
        return {}

    def epoch_stats(self) -> dict[str, float]:
        """Return what is worth logging at an epoch's end."""
        return {}


class SmoothingSettings(Settings):
    """The settings of a smoothing method, which ``method`` names in a saved run.

    A subclass is known by that name as soon as it is defined::

        class EMA(SmoothingSettings):
            method: Literal["ema"] = "ema"
            rate: float = 0.9
    """

    method: str
    known: ClassVar[dict[str, type[SmoothingSettings]]] = {}

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        SmoothingSettings.known[cls.model_fields["method"].default] = cls

    @staticmethod
    def from_dict(saved: Mapping[str, Any]) -> SmoothingSettings:
        """Return the settings of which ``model_dump`` made ``saved``; without a method they are of PRES."""
        name = saved.get("method", "pres")
        if name not in SmoothingSettings.known:
            raise OptionError(
                f"there is no smoothing method {name!r} here: import the module that defines it, or use one "
                f"of {', '.join(sorted(SmoothingSettings.known))}."
            )
        kind = SmoothingSettings.known[name]
        return kind.of(dict(saved), kind.__name__)

    @property
    def title(self) -> str:
        """What a run's description calls the method."""
        return self.method

    @property
    @abstractmethod
    def corrects(self) -> bool:
        """Whether the method corrects memory after every batch, which models with cell="scan" do not have."""

    @abstractmethod
    def build(self, memory: MemoryStore, unit: float = 1.0, activity: Tensor | None = None) -> Smoothing:
        """Return the method for a memory, on its device and of its type.

        Args:
            memory: The memory of all nodes.
            unit: The mean time between two events of a node.
            activity: Events of each node in training `[n]`; None if a saved state will be loaded.
        """
