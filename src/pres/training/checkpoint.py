"""One state: everything that training goes on from, in memory and in one file."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from pres.errors import OptionError, SourceNotFoundError, UnreadableSourceError, one_line
from pres.evaluation.metrics import LinkMetrics
from pres.models import MDGNN
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
    share: float = 1.0  # of the epoch's events, trained on so far

    @classmethod
    def of(cls, saved: dict[str, Any]) -> EpochResult:
        """Return what `dataclasses.asdict` made of one."""
        return cls(**saved | {"val": LinkMetrics(**saved["val"])})


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

    def save(self, path: str | Path) -> Path:
        """Write the state into one file, in one step."""
        tensors = {
            f"{part}.{name}": value.contiguous().cpu()
            for part in PARTS
            for name, value in getattr(self, part).items()
        }
        numbers = {name: getattr(self, name) for name in ("epoch", "batch", "sums", "seconds")}
        progress = numbers | {"history": [dataclasses.asdict(done) for done in self.history]}
        return save_tensors(Path(path), tensors, progress)

    @classmethod
    def load(cls, path: str | Path) -> TrainingState:
        """Return the state in a file."""
        tensors, progress = load_tensors(Path(path))
        parts: dict[str, Tensors] = {part: {} for part in PARTS}
        try:
            for name, value in tensors.items():
                part, rest = name.split(".", 1)
                parts[part][rest] = value
            history = tuple(EpochResult.of(done) for done in progress.pop("history"))
            fields: dict[str, Any] = parts | progress | {"history": history}
            return cls(**fields)
        except (KeyError, TypeError, ValueError) as error:
            raise UnreadableSourceError(f"{path} holds no training state: {one_line(error)}.") from None


def save_tensors(path: Path, tensors: Tensors, about: dict[str, Any]) -> Path:
    """Write named tensors, and plain values about them, into one file."""
    text = {"pres": json.dumps(about)}

    def write(unfinished: Path) -> None:
        try:
            save_file(tensors, unfinished, metadata=text)
        except SafetensorError as error:  # how it reports a full disk
            raise OSError(str(error)) from None

    return write_whole(path, write)


def load_tensors(path: Path) -> tuple[Tensors, dict[str, Any]]:
    """Return named tensors, and the plain values about them."""
    if not path.is_file():
        raise SourceNotFoundError(f"{path}: no such file.")
    try:
        with safe_open(path, framework="pt") as file:
            about = json.loads((file.metadata() or {}).get("pres", "{}"))
            return {name: file.get_tensor(name) for name in file.keys()}, about  # noqa: SIM118
    except Exception as error:  # a damaged file makes the reader fail in many ways
        raise UnreadableSourceError(f"{path} is damaged: {one_line(error)}.") from None


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
