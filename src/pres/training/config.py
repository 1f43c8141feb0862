"""Settings of a training run: strict, whether they come from Python, from flags or from a file."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any, Literal, Self

import pydantic

from pres.errors import OptionError, SourceNotFoundError, UnreadableSourceError, one_line
from pres.settings import Settings
from pres.smoothing import SmoothingSettings

# What large batches need to keep their accuracy; how it was chosen is in docs/large-batches.md. Their size
# follows the stream, see `pres.training.preset`.
PRESETS: dict[str, dict[str, Any]] = {
    "large": {"optimiser": "muon", "lr": 4e-3, "lr_rule": "sqrt", "warmup": 0.25, "max_time_delta": 0.5},
}
# How others train and evaluate; docs/does-pres-work.md sets each value beside theirs.
PROTOCOLS: dict[str, dict[str, Any]] = {
    "tgl": {
        "batch_size": 600,
        "negative_window": None,
        "epochs": 100,
        "patience": None,
        "lr": 1e-4,
        "lr_decay": "none",
    },
}


class FitConfig(Settings):
    """How a model is trained."""

    # "tgl": as TGL trains and evaluates. It sets the defaults of everything that is not given, and negatives
    # are drawn from all nodes, evaluation has the training's batches, weights are chosen by the mean AP of
    # validation's batches, and the test follows a replay of all that is before it.
    protocol: Literal["tgl"] | None = None
    preset: Literal["large"] | None = None  # the defaults of everything that is not given
    batch_size: int = pydantic.Field(200, ge=1)  # events between two updates of the memory
    step_size: int | None = pydantic.Field(None, ge=1)  # … of the weights; None: as batch_size
    most_lost: int | None = pydantic.Field(None, ge=0)  # updates; a batch ends before it would lose more
    shift: bool = False  # whether every epoch cuts the stream at other places
    # Events among which a negative is no real pair, as in evaluation; None: the whole batch, as in the paper.
    negative_window: int | None = pydantic.Field(200, ge=1)
    epochs: int = pydantic.Field(10, ge=1)  # at most
    lr: float = pydantic.Field(1e-3, gt=0, allow_inf_nan=False)
    lr_decay: Literal["none", "cosine"] = "cosine"  # over all epochs, down to 0
    lr_rule: Literal["fixed", "sqrt", "linear"] = (
        "fixed"  # how lr grows with the events per step, from 200 on
    )
    warmup: float = pydantic.Field(0.0, ge=0, allow_inf_nan=False)  # epochs over which lr rises from 0
    optimiser: Literal["adam", "muon"] = "adam"
    # Share of the training's time; time differences beyond it are encoded as that long (not where memory is
    # projected in time, as in JODIE, which grows with their logarithm). None: as they are.
    max_time_delta: float | None = pydantic.Field(None, gt=0, allow_inf_nan=False)
    # Mends what large batches do to memory.
    smoothing: pydantic.SerializeAsAny[SmoothingSettings] | None = None
    # With cell="scan": events that see the same memory in training; 0: each sees all that is strictly before.
    staleness: int | None = pydantic.Field(None, ge=0)  # None: 50
    patience: int | None = pydantic.Field(3, ge=1)  # epochs without a better validation before stopping
    seed: int = pydantic.Field(0, ge=0, lt=2**31)  # of negatives, dropout and sampled neighbours
    eval_batch_size: int = pydantic.Field(200, ge=1)  # in validation and test, whatever batch_size is
    device: str | None = None  # cpu, cuda, cuda:1, …; None: where the model is
    precision: Literal["float32", "bfloat16"] = "float32"  # of the matrix products; weights stay float32
    compile: bool = False  # whether torch.compile makes the model's parts faster

    @pydantic.field_validator("smoothing", mode="before")
    @classmethod
    def _smoothing_from_a_file(cls, value: object) -> object:
        if value is None or isinstance(value, SmoothingSettings):
            return value
        if isinstance(value, dict):
            return SmoothingSettings.from_dict(value)
        raise ValueError(
            "smoothing is pres.PRES(…) in Python, and a table [smoothing] of its options in a file."
        )

    @pydantic.model_validator(mode="before")
    @classmethod
    def _from_the_protocol(cls, given: Any) -> Any:
        if not isinstance(given, dict) or str(given.get("protocol")) not in PROTOCOLS:
            return given
        if given.get("preset") is not None:
            raise ValueError("protocol and preset both say how to train: give one.")
        found = PROTOCOLS[given["protocol"]] | given
        return {"eval_batch_size": found["batch_size"]} | found

    @pydantic.model_validator(mode="before")
    @classmethod
    def _from_the_preset(cls, given: Any) -> Any:
        if not isinstance(given, dict) or not isinstance(given.get("preset"), str):
            return given
        if given["preset"] not in PRESETS:
            return given
        return PRESETS[given["preset"]] | given

    @pydantic.model_validator(mode="after")
    def _weights_move_with_the_memory(self) -> Self:
        if self.step_size is not None and self.step_size > self.batch_size:
            raise ValueError(
                f"step_size={self.step_size} exceeds batch_size={self.batch_size}: weights cannot move less "
                "often than the memory."
            )
        return self

    @property
    def events_per_step(self) -> int:
        """Events between two updates of the weights."""
        return self.step_size or self.batch_size

    @property
    def pool(self) -> Literal["destinations", "nodes"]:
        """Which nodes negatives are drawn from."""
        return "destinations" if self.protocol is None else "nodes"

    @property
    def train_staleness(self) -> int:
        """How many events of a scanned batch see the same memory."""
        return 50 if self.staleness is None else self.staleness


class TrainConfig(FitConfig):
    """Everything ``pres train`` needs to know; saved with a run, and enough to repeat it."""

    source: str  # a file of events, or a dataset's name
    reading: dict[str, Any] = pydantic.Field(
        default_factory=dict
    )  # how to read it: options of pres.read or pres.load
    model: str = "tgn"  # a name in the registry of models
    model_options: dict[str, Any] = pydantic.Field(default_factory=dict)  # arguments of the model

    @property
    def fit_options(self) -> dict[str, Any]:
        """The part of the settings that `fit` takes."""
        return {name: getattr(self, name) for name in FitConfig.model_fields}


def read_config(path: Path) -> dict[str, Any]:
    """Return the settings in a TOML or JSON file, not checked yet."""
    if not path.is_file():
        raise SourceNotFoundError(f"{path}: no such file of settings.")
    if path.suffix.lower() not in (".toml", ".json"):
        raise OptionError(f"{path}: settings are read from .toml or .json.")
    try:
        text = path.read_text()
        found = json.loads(text) if path.suffix.lower() == ".json" else tomllib.loads(text)
    except (OSError, ValueError) as error:  # both parsers' errors are ValueErrors that tell the line
        raise UnreadableSourceError(f"{path} cannot be read: {one_line(error)}.") from None
    if not isinstance(found, dict):
        raise UnreadableSourceError(f"{path} holds no settings: it must be one object of names and values.")
    return found
