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

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from pres.data.stream import EventStream
from pres.errors import LabelError, OptionError
from pres.evaluation.embeddings import source_embeddings
from pres.evaluation.metrics import LabelMetrics, label_metrics
from pres.models import MDGNN
from pres.nn import NodeDecoder
from pres.nn.ops import rows

STEP = 1_000  # events per step of the decoder at most, and
STEPS = 20  # steps per epoch at least, so that a short stream is learned from too
WEIGHT_DECAY = 1e-4
CALIBRATION = 100  # steps towards the rates of the classes
NEVER = 30.0  # by how much the logit of a class is lowered that training never shows
AT_ONCE = 100_000  # events that the decoder scores in one go, so that any number of them fits into memory
PARTS = {"train": "training", "val": "validation", "test": "test"}


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

    The decoder learns with weights by which rare classes count as much as frequent ones. Afterwards its
    logits are shifted, so that each class's mean score over the training part is its rate there.
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
    baseline_val: LabelMetrics  # of the rate of each class among the source's training events
    baseline_test: LabelMetrics
    mean_scores: tuple[float, ...]  # of the test part: the mean probability of each class
    history: tuple[DecoderEpoch, ...] = field(repr=False)
    scores: Tensor = field(repr=False, compare=False)  # [n, classes] probabilities, of every event
    decoder: NodeDecoder = field(repr=False, compare=False)  # of the best epoch

    def to_dict(self) -> dict[str, Any]:
        """Return everything but scores and decoder as plain values, as ``pres classify --json`` prints it."""
        left_out = ("scores", "decoder")
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name not in left_out}
        measured = (*PARTS, "baseline_val", "baseline_test")
        values |= {name: dataclasses.asdict(getattr(self, name)) for name in measured}
        return values | {"history": [dataclasses.asdict(epoch) for epoch in self.history]}

    def __repr__(self) -> str:
        title = self.dataset if self.variant is None else f"{self.dataset} ({self.variant})"
        positives = self.test.positives
        rare = f"{len(self.classes)} classes in" if positives is None else f"{positives:,} positives of"
        return (
            f"Classification by {self.model} on {title}: test ROC-AUC {self.test.auc:.4f}, AP "
            f"{self.test.ap:.4f} ({rare} {self.test.events:,} events; by the source's past labels alone "
            f"{self.baseline_test.auc:.4f} and {self.baseline_test.ap:.4f}), validation ROC-AUC "
            f"{self.val.auc:.4f} at epoch {self.best_epoch} of {self.epochs}"
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

    A decoder learns from the training part and is chosen on validation by its ROC-AUC. It is small, and
    always learns on the CPU. The model stays as it is.

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
        _calibrate(decoder, *train)
        logits = _logits(decoder, inputs)
    found = {name: label_metrics(logits[part], target[part]) for name, part in parts.items()}
    rates = source_rates(events.src.cpu(), target, parts["train"], len(classes))
    baseline_val, baseline_test = (
        label_metrics(rates[part].log(), target[part]) for part in (parts["val"], parts["test"])
    )
    scores = logits.softmax(dim=1)
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
        baseline_val=baseline_val,
        baseline_test=baseline_test,
        mean_scores=tuple(scores[parts["test"]].double().mean(dim=0).tolist()),
        scores=scores,
        history=tuple(history),
        decoder=decoder,
    )


def source_rates(src: Tensor, target: Tensor, train: slice, classes: int) -> Tensor:
    """Return how frequent each class is among the training events of each event's source, `[n, classes]`.

    It is the baseline of a decoder: who had a label will have it again. The class rates of the whole training
    part count as one more event of every source.
    """
    known, truth = src[train], target[train]
    overall = torch.bincount(truth, minlength=classes).double() / len(truth)
    sources, index = torch.unique(src, return_inverse=True)
    counts = torch.zeros(len(sources), classes, dtype=torch.float64)
    counts.index_put_((index[train], truth), torch.ones(len(known), dtype=torch.float64), accumulate=True)
    rates = (counts + overall) / (counts.sum(dim=1, keepdim=True) + 1)
    return rates[index].clamp_(min=1e-12)


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


@torch.no_grad()
def _calibrate(decoder: NodeDecoder, inputs: Tensor, target: Tensor) -> None:
    """Shift the logits so that each class's mean probability over inputs `[n, dim]` is its rate."""
    logits = _logits(decoder, inputs).double()
    rate = torch.bincount(target, minlength=logits.shape[1]) / len(target)
    shift = torch.where(rate > 0, 0.0, -NEVER).double()
    for _ in range(CALIBRATION):
        mean = (logits + shift).softmax(dim=1).mean(dim=0)
        shift = shift + torch.where(rate > 0, rate.log() - mean.log(), 0.0)
    decoder.out.bias.add_(shift.float())


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
