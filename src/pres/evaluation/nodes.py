"""`pres.classify`: the state of a source at each of its events, told from what it did before.

The encoder was trained on links. It is frozen and replayed along the stream; a small decoder learns the
labels of the training part from the embeddings that the sources had just before their events.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from sklearn.metrics import average_precision_score, roc_auc_score
from torch import Tensor
from torch.nn.functional import cross_entropy

from pres.data.stream import EventStream
from pres.errors import LabelError, OptionError
from pres.evaluation.embeddings import source_embeddings
from pres.models import MDGNN
from pres.nn import NodeDecoder
from pres.nn.ops import rows

STEP = 1_000  # events per step of the decoder at most, and
STEPS = 20  # steps per epoch at least, so that a short stream is learned from too
WEIGHT_DECAY = 1e-4
AT_ONCE = 100_000  # events that the decoder scores in one go, so that any number of them fits into memory
PARTS = {"train": "training", "val": "validation", "test": "test"}


@dataclass(frozen=True)
class LabelMetrics:
    """How well the labels of one part of a stream are told; macro means where there are more than two."""

    events: int
    counts: tuple[int, ...]  # events of each class
    positives: int | None  # events of the positive class; None for more than two classes
    auc: float  # area under the ROC curve
    ap: float  # average precision


@dataclass(frozen=True)
class DecoderEpoch:
    """One epoch of the decoder: its mean training loss, and how it did on validation."""

    epoch: int
    loss: float
    val_auc: float


@dataclass(frozen=True)
class Classification:
    """What `classify` found; all figures are of the epoch that was best on validation.

    Of two classes the larger label is the positive one. Of more, each is told from all others, and ``auc``
    and ``ap`` are means over the classes that occur in the part.
    """

    dataset: str
    variant: str | None
    model: str
    labels: Literal["binary", "multi-class"]
    classes: tuple[int, ...]  # the labels, in the order of counts, weights and logits
    class_weights: tuple[float, ...]  # of each class in the loss; 0 for one that training never shows
    with_features: bool  # whether the decoder read the event's own features too
    batch_size: int  # of the replay
    lr: float
    seed: int
    epochs: int
    best_epoch: int
    train: LabelMetrics
    val: LabelMetrics
    test: LabelMetrics
    history: tuple[DecoderEpoch, ...] = field(repr=False)
    decoder: NodeDecoder = field(repr=False, compare=False)  # of the best epoch

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the decoder as plain values, as ``pres classify --json`` prints it."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != "decoder"}
        values |= {part: dataclasses.asdict(getattr(self, part)) for part in PARTS}
        return values | {"history": [dataclasses.asdict(epoch) for epoch in self.history]}

    def __repr__(self) -> str:
        title = self.dataset if self.variant is None else f"{self.dataset} ({self.variant})"
        positives = self.test.positives
        rare = f"{len(self.classes)} classes in" if positives is None else f"{positives:,} positives of"
        return (
            f"Classification by {self.model} on {title}: test ROC-AUC {self.test.auc:.4f}, AP "
            f"{self.test.ap:.4f} ({rare} {self.test.events:,} events), validation ROC-AUC {self.val.auc:.4f} "
            f"at epoch {self.best_epoch} of {self.epochs}"
        )


def classify(
    model: MDGNN,
    events: EventStream,
    *,
    epochs: int = 20,
    lr: float = 5e-4,
    batch_size: int = 200,
    seed: int = 0,
    with_features: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
    on_epoch: Callable[[DecoderEpoch], None] | None = None,
) -> Classification:
    """Return how well the labels of ``events`` are told from the embeddings of their sources.

    A decoder learns from the training part, with classes weighted so that each counts alike, and is chosen on
    validation by its ROC-AUC. The model stays as it is. The decoder is small, and always learns on the CPU.

    Args:
        model: A model made from ``events``, its weights trained on links.
        events: The whole stream, with labels, split 70 / 15 / 15 in time.
        epochs: Epochs of the decoder.
        lr: Learning rate of the decoder.
        batch_size: Events per batch of the replay, whatever the training batch was.
        seed: The same seed gives the same decoder, bit for bit.
        with_features: Whether the decoder also reads the numeric features of the labelled event itself.
        on_progress: Called with the number of events replayed so far, and of those to replay.
        on_epoch: Called after every epoch of the decoder.
    """
    _check_options(epochs, lr, seed)
    model.check_stream(events)
    classes, target = torch.unique(_labels(events), return_inverse=True)
    parts = _parts(events, classes, target)
    if with_features and events.x is None:
        raise OptionError(f"with_features: '{events.info.title}' has no numeric features to read.")
    inputs = source_embeddings(model, events, batch_size=batch_size, on_progress=on_progress).float()
    if with_features and events.x is not None:
        inputs = torch.cat([inputs, events.x.cpu()], dim=1)
    weights = _balanced(target[parts["train"]], len(classes))
    # The generator is put back, and autocast, which may be on around the replay, is nothing for a decoder.
    with torch.random.fork_rng(devices=[]), torch.autocast("cpu", enabled=False):
        torch.default_generator.manual_seed(seed)
        decoder = NodeDecoder(inputs.shape[1], len(classes))
        train, val = ((inputs[parts[name]], target[parts[name]]) for name in ("train", "val"))
        history = _train(decoder, train, val, weights, epochs, lr, on_epoch)
        logits = _logits(decoder, inputs)
    found = {name: label_metrics(logits[part], target[part]) for name, part in parts.items()}
    return Classification(
        dataset=events.info.name,
        variant=events.info.variant,
        model=model.title,
        labels="binary" if len(classes) == 2 else "multi-class",
        classes=tuple(classes.tolist()),
        class_weights=tuple(weights.tolist()),
        with_features=with_features,
        batch_size=batch_size,
        lr=lr,
        seed=seed,
        epochs=epochs,
        best_epoch=_best(history).epoch,
        **found,
        history=tuple(history),
        decoder=decoder,
    )


def label_metrics(logits: Tensor, target: Tensor) -> LabelMetrics:
    """Return the metrics of logits `[n, classes]` against the classes `[n]` that are true."""
    classes = logits.shape[1]
    counts = torch.bincount(target, minlength=classes).tolist()
    told = [1] if classes == 2 else [c for c in range(classes) if counts[c]]
    figures = []
    for c in told:
        truth, score = (target == c).numpy(), _log_odds(logits.double(), c).numpy()
        figures.append((roc_auc_score(truth, score), average_precision_score(truth, score)))
    auc, ap = np.mean(figures, axis=0).tolist()
    return LabelMetrics(
        events=len(target),
        counts=tuple(counts),
        positives=counts[1] if classes == 2 else None,
        auc=auc,
        ap=ap,
    )


def _log_odds(logits: Tensor, c: int) -> Tensor:
    """Return the log-odds `[n]` of one class against all others."""
    others = torch.cat([logits[:, :c], logits[:, c + 1 :]], dim=1)
    return logits[:, c] - others.logsumexp(dim=1)


def _train(
    decoder: NodeDecoder,
    train: tuple[Tensor, Tensor],
    val: tuple[Tensor, Tensor],
    weights: Tensor,
    epochs: int,
    lr: float,
    on_epoch: Callable[[DecoderEpoch], None] | None,
) -> list[DecoderEpoch]:
    """Train on inputs `[n, dim]` and classes `[n]`; the decoder ends as it was best on validation's."""
    known, true = train
    decoder.standardise_by(known)
    optimiser = torch.optim.AdamW(decoder.parameters(), lr=lr, weight_decay=WEIGHT_DECAY)
    size = min(STEP, math.ceil(len(known) / STEPS))
    history: list[DecoderEpoch] = []
    best: dict[str, Tensor] = {}
    for epoch in range(1, epochs + 1):
        total = 0.0
        decoder.train()
        for some in torch.split(torch.randperm(len(known)), size):
            loss = cross_entropy(decoder(rows(known, some)), true[some], weight=weights)
            optimiser.zero_grad()
            torch.autograd.backward(loss)
            optimiser.step()
            total += len(some) * loss.item()
        auc = label_metrics(_logits(decoder, val[0]), val[1]).auc
        history.append(DecoderEpoch(epoch, total / len(known), auc))
        if _best(history) is history[-1]:
            best = {name: value.clone() for name, value in decoder.state_dict().items()}
        if on_epoch is not None:
            on_epoch(history[-1])
    decoder.load_state_dict(best)
    return history


def _best(history: list[DecoderEpoch]) -> DecoderEpoch:
    return max(history, key=lambda done: done.val_auc)  # the first of equals


@torch.no_grad()
def _logits(decoder: NodeDecoder, inputs: Tensor) -> Tensor:
    decoder.eval()
    return torch.cat([decoder(some) for some in torch.split(inputs, AT_ONCE)])


def _balanced(target: Tensor, classes: int) -> Tensor:
    """Return weights `[classes]` with which all classes that occur count alike, and events 1 on average."""
    counts = torch.bincount(target, minlength=classes)
    weights = len(target) / (int((counts > 0).sum()) * counts.clamp(min=1))
    return torch.where(counts > 0, weights, 0.0)


def _labels(events: EventStream) -> Tensor:
    if events.label is None:
        raise LabelError(
            f"'{events.info.title}' has no labels to learn. Name their column when reading it: "
            "pres.read(…, label=…), or pres train … --label … in a terminal."
        )
    return events.label.cpu()


def _parts(events: EventStream, classes: Tensor, target: Tensor) -> dict[str, slice]:
    """Return where each part lies, once all of them are known to hold more than one class."""
    parts = {}
    for name, part in zip(PARTS, events.split(), strict=True):
        parts[name] = slice(part.offset, part.offset + len(part))
        found = torch.unique(target[parts[name]])
        if len(found) < 2:
            lacks = "there is nothing to tell apart" if name == "train" else "ROC-AUC is undefined there"
            raise LabelError(
                f"all {len(part):,} events of the {PARTS[name]} part of '{events.info.title}' have the label "
                f"{int(classes[found[0]])}, so {lacks}. Use more events, or a label that occurs along all "
                "of the stream."
            )
    return parts


def _check_options(epochs: int, lr: float, seed: int) -> None:
    if epochs < 1:
        raise OptionError(f"epochs={epochs}: the decoder learns for at least one.")
    if not 0 < lr <= 1:
        raise OptionError(f"lr={lr}: the decoder's learning rate lies between 0 and 1.")
    if not 0 <= seed < 2**63:
        raise OptionError(f"seed={seed}: a seed is a whole number from 0.")
