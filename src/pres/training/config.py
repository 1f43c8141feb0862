"""Settings of a training run: strict, whether they come from Python, from flags or from a file."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any, Literal

import pydantic

from pres.data.stream import EventStream
from pres.errors import OptionError, SourceNotFoundError, UnreadableSourceError, nearest, one_line
from pres.models.registry import MODELS
from pres.settings import Settings, setting
from pres.smoothing import SmoothingSettings
from pres.storage import read_json

# What large batches need to keep their accuracy; how it was chosen is in docs/large-batches.md. Their size
# follows the stream, see `with_batch_size`.
PRESETS: dict[str, dict[str, Any]] = {
    "large": {"optimiser": "muon", "lr": 4e-3, "warmup": 0.25, "max_time_delta": 0.5},
}
STEPS = 30  # that an epoch of the preset has at least
SMALLEST, LARGEST = 200, 3_200  # batches of the preset
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

    # Beside the settings of `PROTOCOLS`: negatives are drawn from all nodes, evaluation has the training's
    # batches, weights are chosen by the mean AP of validation's batches, and the test follows a replay of all
    # that is before it.
    protocol: Literal["tgl"] | None = setting(
        None, "tgl: train and evaluate as TGL does; explicit settings override it."
    )
    preset: Literal["large"] | None = setting(
        None,
        "large: large batches that keep their accuracy, for models with cell=scan; explicit settings "
        "override it.",
    )
    batch_size: int = setting(200, "Events between two updates of memory.", ge=1)
    step_size: int | None = setting(
        None,
        "Events between two optimiser steps, by default batch_size; with more, the gradients of several "
        "whole batches are accumulated.",
        ge=1,
    )
    negative_window: int | None = setting(
        200,
        "Events among which no negative is a real pair, at most a batch: from batch_size on the whole batch.",
        ge=1,
    )
    epochs: int = setting(10, "Epochs at most.", ge=1, le=1_000_000)
    # Inside an epoch memory first takes in the rest of the training part, as at the epoch's end, so that
    # validations compare; afterwards it is as before, and training goes on as if nothing had happened.
    validate_every: int | None = setting(
        None, "Validate after every so many events of an epoch too, not only at its end.", ge=1
    )
    patience: int | None = setting(3, "Validations without a better one before stopping.", ge=1)
    optimiser: Literal["adam", "muon"] = setting("adam", "What moves the weights.")
    lr: float = setting(
        1e-3,
        "Learning rate of steps of 200 events. Muon's grows with the root of the step; Adam's is as given.",
        gt=0,
        allow_inf_nan=False,
    )
    lr_decay: Literal["none", "cosine"] = setting("cosine", "How the learning rate falls over the epochs.")
    warmup: float = setting(
        0.0, "Epochs over which the learning rate rises from 0.", ge=0, allow_inf_nan=False
    )
    # Not where memory is projected in time, as in JODIE, which grows with the logarithm of the difference.
    max_time_delta: float | None = setting(
        None,
        "Longer time differences count as this share of the training's time, by default without a limit.",
        gt=0,
        allow_inf_nan=False,
    )
    smoothing: pydantic.SerializeAsAny[SmoothingSettings] | None = setting(
        None, "Mends what large batches do to memory: pres.PRES(…)."
    )
    staleness: int | None = setting(
        None,
        "With cell=scan: events that see the same memory in training, by default 50; 0: each sees all that "
        "is strictly before.",
        ge=0,
    )
    seed: int = setting(
        0, "The same seed gives the same negatives, dropout and sampled neighbours.", ge=0, lt=2**31
    )
    eval_batch_size: int = setting(200, "Events per batch in validation and test.", ge=1)
    precision: Literal["float32", "bfloat16"] = setting(
        "float32", "Of matrix products; weights and memory stay float32."
    )

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
        if not isinstance(given, dict) or str(given.get("preset")) not in PRESETS:
            return given
        return PRESETS[given["preset"]] | given

    @property
    def events_per_step(self) -> int:
        """Events between two optimiser steps; whole batches if there are several."""
        several = self.batches_per_step
        return several * self.batch_size if several > 1 else self.step_size or self.batch_size

    @property
    def batches_per_step(self) -> int:
        """Batches whose gradients are accumulated for an optimiser step; 1 also for several steps a batch."""
        return -(-(self.step_size or self.batch_size) // self.batch_size)

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
    reading: dict[str, Any] = pydantic.Field(default_factory=dict)  # options of pres.read or pres.load
    model: str = setting("tgn", "A name in the registry of models.")
    model_options: dict[str, Any] = pydantic.Field(default_factory=dict)  # arguments of the model
    device: str | None = setting(None, "Where to compute, by default cpu; cuda for a GPU.")

    @pydantic.field_validator("model")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in MODELS:
            raise ValueError(f"model={value!r}: there is {', '.join(MODELS)}.{nearest(value, MODELS)}")
        return value

    @property
    def fit_options(self) -> dict[str, Any]:
        """The part of the settings that `fit` takes."""
        return {name: getattr(self, name) for name in FitConfig.model_fields}


def batch_size_for(train_events: int) -> int:
    """Return the preset's batch size for so many training events, in whole hundreds.

    It is as large as leaves an epoch enough optimiser steps.
    """
    return max(SMALLEST, min(LARGEST, train_events // STEPS // 100 * 100))


def with_batch_size(options: dict[str, Any], events: EventStream) -> tuple[dict[str, Any], str | None]:
    """Return options of `fit` with the preset's batch size, and the words that say why; None if one is given.

    Args:
        options: Fields of `FitConfig`.
        events: The whole stream.
    """
    if options.get("preset") != "large" or options.get("batch_size") is not None:
        return options, None
    train = len(events.split().train)
    b = batch_size_for(train)
    steps = -(-train // b)
    why = "the largest that it uses" if b == LARGEST else f"which leaves an epoch {steps} optimiser steps"
    line = f"preset='large': batches of {b:,} events for {train:,} of training, {why}."
    return options | {"batch_size": b}, line


def read_config(path: Path) -> dict[str, Any]:
    """Return the settings in a TOML or JSON file, not checked yet."""
    if not path.is_file():
        raise SourceNotFoundError(f"{path}: no such file of settings.")
    if path.suffix.lower() not in (".toml", ".json"):
        raise OptionError(f"{path}: settings are read from .toml or .json.")
    try:
        text = path.read_text()
        found = json.loads(text) if path.suffix.lower() == ".json" else tomllib.loads(text)
    except (
        OSError,
        ValueError,
        RecursionError,
    ) as error:  # of either parser
        raise UnreadableSourceError(f"{path} cannot be read: {one_line(error)}.") from None
    if not isinstance(found, dict):
        raise UnreadableSourceError(f"{path} holds no settings: it must be one object of names and values.")
    if "sha256" in found:  # the settings of a run, which say if they changed
        try:
            return read_json(path)
        except UnreadableSourceError as error:
            raise UnreadableSourceError(f"{error} If it was edited, remove its line sha256.") from None
    return found
