"""One state: everything that training goes on from, in memory and in one file."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pydantic
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from pres.errors import OptionError, SourceNotFoundError, UnreadableSourceError, one_line
from pres.evaluation.metrics import LinkMetrics
from pres.models import MDGNN
from pres.settings import by_schema
from pres.storage import write_whole

Tensors = dict[str, Tensor]
PARTS = ("model", "optimiser", "gradients", "random")  # of a training state, those that hold tensors


@dataclass(frozen=True)
class EpochResult:
    """A validation, and the epoch so far: mean training loss, time without evaluation, and memory.

    Validations are at the end of each epoch and, with ``validate_every``, inside it. Of the memory it tells
    how far updates move it (``movement``) and, with smoothing, the mean ``coherence``, the ``gain``, the
    length of what predictions add (``delta``) and the share of nodes with trackers (``tracked``).
    """

    epoch: int
    loss: float
    val: LinkMetrics
    seconds: float
    memory: dict[str, float]
    lr: float  # the setting; a run that goes on may change it
    share: float = 1.0  # of the epoch's events, trained on so far


@dataclass(frozen=True, eq=False)
class TrainingState:
    """Where training stands: restored into the same model and stream, it goes on bit for bit."""

    model: Tensors  # weights, memory and mail
    optimiser: Tensors  # its moments, by parameter
    gradients: Tensors  # accumulated for the next optimiser step, by weight; none between two steps
    random: Tensors  # the generators of dropout
    epoch: int  # of the next batch, counted from 1
    batch: int  # the next one of that epoch, counted from 0
    sums: dict[str, float]  # of the loss and of what memory did, over the events of the epoch so far
    seconds: float  # spent on the epoch so far
    history: tuple[EpochResult, ...]  # the validations so far
    best: str | None = None  # in a run's folder: the checksum of the best state of this history

    def save(self, path: str | Path) -> Path:
        """Write the state into one file, in one step."""
        tensors = {f"{part}.{name}": value for part in PARTS for name, value in getattr(self, part).items()}
        about = {name: getattr(self, name) for name in _Progress.model_fields}
        save_tensors(Path(path), tensors, about | {"history": list(map(dataclasses.asdict, self.history))})
        return Path(path)

    @classmethod
    def load(cls, path: str | Path) -> TrainingState:
        """Return the state in a file."""
        tensors, about, _ = load_tensors(Path(path))
        parts: dict[str, Tensors] = {part: {} for part in PARTS}
        try:
            progress = by_schema(_Progress, about)
            for name, value in tensors.items():
                part, rest = name.split(".", 1)
                parts[part][rest] = value
        except (KeyError, ValueError) as error:
            raise UnreadableSourceError(f"{path} holds no training state: {one_line(error)}.") from None
        fields: dict[str, Any] = parts | dict(progress)
        return cls(**fields)


class _Progress(pydantic.BaseModel):
    """The fields of `TrainingState` that are no tensors."""

    model_config = pydantic.ConfigDict(strict=True, extra="forbid")
    epoch: int
    batch: int
    sums: dict[str, float]
    seconds: float
    history: tuple[EpochResult, ...]
    best: str | None


def save_tensors(path: Path, tensors: Tensors, about: dict[str, Any]) -> str:
    """Write named tensors, and plain values about them, into one file in one step; return its checksum."""
    tensors = {name: value.detach().contiguous().cpu() for name, value in tensors.items()}
    text = json.dumps(about)
    checksum = _checksum(tensors, text)

    def write(unfinished: Path) -> None:
        try:
            save_file(tensors, unfinished, metadata={"pres": text, "sha256": checksum})
        except SafetensorError as error:  # how it reports a full disk
            raise OSError(str(error)) from None

    write_whole(path, write)
    return checksum


def load_tensors(path: Path) -> tuple[Tensors, dict[str, Any], str]:
    """Return named tensors, the plain values about them, and the checksum of both, which was held."""
    if not path.is_file():
        raise SourceNotFoundError(f"{path}: no such file.")
    try:
        with safe_open(path, framework="pt") as file:
            told = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            if told["sha256"] != _checksum(tensors, told["pres"]):
                raise ValueError("it is not what its checksum says")
            about = json.loads(told["pres"])
    except Exception as error:  # a damaged file makes the reader fail in many ways
        why = "it has no checksum" if isinstance(error, KeyError) else one_line(error)
        raise UnreadableSourceError(f"{path} is damaged: {why}.") from None
    return tensors, about, told["sha256"]


def _checksum(tensors: Tensors, about: str) -> str:
    """Return the SHA-256 of everything that a file of tensors says, whatever the order of its parts."""
    found = hashlib.sha256(about.encode())
    for name, value in sorted(tensors.items()):
        found.update(f"\n{name} {value.dtype} {list(value.shape)}\n".encode())
        found.update(value.reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


def state_of(model: torch.nn.Module) -> Tensors:
    """Return a copy of the model's weights, memory and mail."""
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def load_into(model: MDGNN, state: Tensors) -> None:
    """Give ``model`` the weights, memory and mail of a state, which must be of a model made alike."""
    own = model.state_dict()
    for name in own.keys() | state.keys():
        theirs, ours = state.get(name), own.get(name)
        if theirs is None or ours is None or theirs.shape != ours.shape:
            shapes = [str(list(value.shape)) if value is not None else "missing" for value in (theirs, ours)]
            raise OptionError(
                f"the state is of another model or stream than this {model.title}: "
                f"{name} is {shapes[0]} there and {shapes[1]} here. Make the model with the run's settings."
            )
    model.load_state_dict(state)


def random_state(device: torch.device) -> Tensors:
    """Return the state of the generators that dropout draws from."""
    state = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    return state


def set_random_state(state: Tensors, device: torch.device) -> None:
    """Let the generators go on from a state."""
    torch.set_rng_state(state["cpu"].cpu())
    if device.type == "cuda" and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"].cpu(), device)
