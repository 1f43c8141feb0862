"""Node classification: what is learned, what is reported, and what is refused."""

import json
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor

import pres
from pres.data.info import StreamInfo
from pres.data.stream import EventStream
from pres.errors import LabelError, OptionError
from pres.evaluation.embeddings import source_embeddings
from pres.evaluation.metrics import label_metrics
from pres.evaluation.nodes import Classification, DecoderEpoch, classify
from pres.nn import NodeDecoder
from pres.training.checkpoint import state_of

N, USERS, ITEMS = 1_500, 30, 6


def random_stream(seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    src = torch.randint(0, USERS, (N,), generator=generator)
    dst = USERS + torch.randint(0, ITEMS, (N,), generator=generator)
    return src, dst, torch.randn(N, 2, generator=generator)


SRC, DST, X = random_stream()


def last_of_source(values: Tensor) -> Tensor:
    """The value at the source's event before each event; 0 before its first."""
    seen: dict[int, float] = {}
    found = []
    for node, value in zip(SRC.tolist(), values.tolist(), strict=True):
        found.append(seen.get(node, 0.0))
        seen[node] = value
    return torch.tensor(found)


PAST = (last_of_source(X[:, 0]) > 0.5).long()  # what the source's last event was like: about 30 % are 1


def stream(label: Tensor | None, x: Tensor | None = X) -> EventStream:
    return EventStream(
        SRC, DST, torch.arange(N), x=x, label=label, num_nodes=USERS + ITEMS, info=StreamInfo(name="planted")
    )


def encoder(events: EventStream) -> pres.JODIE:
    """A model that was never trained: a plain cell without a gate remembers the last event best.

    How well depends on its random weights: the ROC-AUC of six seeds is 0.83 to 0.92.
    """
    torch.manual_seed(5)
    return pres.JODIE(events, memory_dim=16, time_dim=8, cell="rnn", node_encoding_dim=0)


def classified(label: Tensor | None, x: Tensor | None = X, **options: Any) -> Classification:
    events = stream(label, x)
    return classify(encoder(events), events, **{"epochs": 10, "lr": 5e-3, "batch_size": 4} | options)


def shuffled(values: Tensor, seed: int = 1) -> Tensor:
    return values[torch.randperm(len(values), generator=torch.Generator().manual_seed(seed))]


def test_labels_that_follow_from_the_past_are_told_and_shuffled_ones_are_not() -> None:
    told, chance = classified(PAST), classified(shuffled(PAST))
    assert told.test.auc > 0.85 and told.val.auc > 0.85
    assert 0.38 < chance.test.auc < 0.62
    assert told.test.ap > 1.5 * chance.test.ap


def test_two_and_more_classes_are_told_and_said() -> None:
    past = last_of_source(X[:, 0])
    label = 10 + (past > -0.5).long() + (past > 0.5).long()
    found = classified(label)
    assert (found.labels, found.classes) == ("multi-class", (10, 11, 12))
    assert found.test.auc > 0.75 and found.test.positives is None
    for part, events in zip((found.train, found.val, found.test), stream(label).split(), strict=True):
        assert events.label is not None
        assert part.counts == tuple(int((events.label == c).sum()) for c in (10, 11, 12))
        assert part.events == len(events) == sum(part.counts)
    assert "3 classes in 225 events" in repr(found)


def test_of_any_two_labels_the_larger_is_positive() -> None:
    plain, renamed = classified(PAST, epochs=2), classified(7 - 4 * (1 - PAST), epochs=2)
    assert renamed.classes == (3, 7) and renamed.labels == "binary"
    assert renamed.test == plain.test and plain.classes == (0, 1)
    assert plain.test.positives == int(PAST[-225:].sum()) == plain.test.counts[1]


def test_classes_are_weighted_so_that_each_counts_alike() -> None:
    rare = (torch.arange(N) % 50 == 0).long()
    found = classified(rare, epochs=1)
    train = len(stream(rare).split().train)
    assert found.train.counts == (1_029, 21) and train == 1_050
    assert found.class_weights == pytest.approx((1_050 / (2 * 1_029), 1_050 / (2 * 21)))
    assert sum(np.multiply(found.class_weights, found.train.counts)) == pytest.approx(train)


@pytest.mark.parametrize("every", [10, 50])
def test_scores_are_probabilities_at_the_rate_at_which_labels_occur(every: int) -> None:
    rare = (torch.arange(N) % every == 0).long()
    found = classified(rare, epochs=3)
    torch.testing.assert_close(found.scores.sum(dim=1), torch.ones(N))
    rate = 1 / every
    assert float(found.scores[:1_050, 1].mean()) == pytest.approx(rate, rel=1e-3)
    assert found.mean_scores == pytest.approx(found.scores[-225:].mean(dim=0).tolist(), rel=1e-5)
    assert 0.5 * rate < found.mean_scores[1] < 2 * rate


def test_the_baseline_is_how_often_a_source_had_each_label() -> None:
    found = classified(PAST, epochs=1)
    events, positives = [0] * USERS, [0] * USERS
    for node, label in zip(SRC[:1_050].tolist(), PAST[:1_050].tolist(), strict=True):
        events[node] += 1
        positives[node] += label
    overall = sum(positives) / 1_050
    score = [(positives[u] + overall) / (events[u] + 1) for u in SRC[-225:].tolist()]
    assert found.baseline_test.auc == pytest.approx(roc_auc_score(PAST[-225:].numpy(), score))
    assert found.baseline_test.counts == found.test.counts and found.baseline_val.counts == found.val.counts
    sources = (SRC % 5 == 0).long()  # a label that belongs to the source
    assert classified(sources, epochs=1).baseline_test.auc == 1


def test_a_class_that_training_never_shows_has_no_weight_but_counts_where_it_occurs() -> None:
    label = PAST.clone()
    label[-100:] = 2
    found = classified(label, epochs=2)
    assert found.class_weights[2] == 0 and found.train.counts[2] == found.val.counts[2] == 0
    assert found.test.counts[2] == 100 and float(found.scores[:, 2].max()) < 1e-6


def test_metrics_equal_those_of_scores_worked_out_by_hand() -> None:
    logits = torch.tensor([[0.0, 3.0], [0.0, 1.0], [0.0, 2.0], [5.0, 5.5]])
    found = label_metrics(logits, torch.tensor([1, 1, 0, 0]))
    # the log-odds are 3, 1 | 2, 0.5: three of four pairs are in order; precision at the positives is 1, 2 / 3
    assert (found.auc, found.ap) == pytest.approx((3 / 4, (1 + 2 / 3) / 2))
    assert (found.events, found.counts, found.positives) == (4, (2, 2), 2)


def test_metrics_of_many_classes_are_means_over_those_that_occur() -> None:
    generator = torch.Generator().manual_seed(4)
    logits, target = torch.randn(40, 4, generator=generator), torch.arange(40) % 3  # none of class 3
    chance = logits.double().softmax(dim=1)
    by_hand = [roc_auc_score((target == c).numpy(), chance[:, c].numpy()) for c in range(3)]
    found = label_metrics(logits, target)
    assert found.auc == pytest.approx(np.mean(by_hand), abs=1e-12)
    assert found.counts == (14, 13, 13, 0) and found.positives is None


def test_figures_are_of_the_best_epoch_and_its_decoder() -> None:
    seen: list[DecoderEpoch] = []
    found = classified(PAST, on_epoch=seen.append)
    assert tuple(seen) == found.history and len(seen) == found.epochs == 10
    best = max(seen, key=lambda done: done.val_auc)
    assert found.best_epoch == best.epoch and found.val.auc == pytest.approx(best.val_auc, abs=1e-4)
    assert seen[-1].loss < seen[0].loss
    events = stream(PAST)
    with torch.no_grad():
        logits = found.decoder(source_embeddings(encoder(events), events, batch_size=4))
    assert label_metrics(logits[-225:], PAST[-225:]) == found.test
    torch.testing.assert_close(logits.softmax(dim=1), found.scores)


def test_the_same_seed_gives_the_same_bits_and_leaves_the_generator_alone() -> None:
    events = stream(PAST)
    torch.manual_seed(0)
    model = pres.TGN(events, memory_dim=8, time_dim=4, embedding_dim=8).train()
    model.update_state(events[:100])
    kept = state_of(model)

    def found(seed: int, generator_seed: int) -> tuple[Classification, dict[str, Tensor]]:
        torch.manual_seed(generator_seed)
        before = torch.get_rng_state()
        result = classify(model, events, epochs=2, batch_size=50, seed=seed)
        assert torch.equal(before, torch.get_rng_state())
        return result, result.decoder.state_dict()

    (one, first), (two, second), (other, third) = found(3, 1), found(3, 2), found(4, 1)
    assert one == two and one.history == two.history
    assert all(torch.equal(value, second[name]) for name, value in first.items())
    assert not torch.equal(first["out.weight"], third["out.weight"]) and one.history != other.history
    assert all(torch.equal(value, kept[name]) for name, value in model.state_dict().items())
    assert model.training and all(parameter.grad is None for parameter in model.parameters())


def test_features_of_the_event_itself_are_read_only_if_asked_for() -> None:
    label = (X[:, 1] > 0).long()
    assert 0.38 < classified(label).test.auc < 0.62
    found = classified(label, with_features=True)
    assert found.test.auc > 0.95 and found.with_features
    with pytest.raises(OptionError, match="with_features: 'planted' has no numeric features"):
        classified(PAST, x=None, with_features=True)


def test_the_decoder_learns_in_full_precision_whatever_the_replay_is_in() -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = classified(PAST)
    assert found.decoder.out.weight.dtype == torch.float32
    assert found.test.auc > 0.8


def test_a_decoder_standardises_and_leaves_constants_alone() -> None:
    h = torch.tensor([[1.0, 0.3, 5.0], [3.0, 0.3, 7.0]])
    h[:, 1] += torch.tensor([0.0, 1e-8])  # rounding, nothing to learn from
    decoder = NodeDecoder(3, classes=4, hidden=5, dropout=0.5).eval()
    decoder.standardise_by(h)
    standardised = np.array([[-1.0, 0.0, -1.0], [1.0, 0.0, 1.0]])
    weights = {name: value.double().numpy() for name, value in decoder.state_dict().items()}
    hidden = np.maximum(standardised @ weights["hidden.weight"].T + weights["hidden.bias"], 0)
    logits = hidden @ weights["out.weight"].T + weights["out.bias"]
    np.testing.assert_allclose(decoder(h).detach().numpy(), logits, atol=1e-5)


@pytest.mark.parametrize(
    ("label", "says"),
    [
        (None, r"'planted' has no labels to learn. .*pres.read\(…, label=…\), or pres train … --label"),
        (torch.zeros(N), "all 1,050 events of the training part of 'planted' have the label 0"),
        (torch.arange(N) > 1_100, "the training part of 'planted' have the label 0, so there is nothing"),
        (torch.arange(N) == 9, "all 225 events of the validation part .* ROC-AUC is undefined"),
        (torch.arange(N) % 1_250 == 9, "all 225 events of the test part .* Use more events, or a label"),
    ],
)
def test_labels_that_do_not_serve_are_one_clear_line(label: Tensor | None, says: str) -> None:
    with pytest.raises(LabelError, match=says) as error:
        classified(label if label is None else label.long())
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"epochs": 0}, "epochs=0"),
        ({"lr": 0.0}, r"lr=0\.0"),
        ({"lr": float("nan")}, "lr=nan"),
        ({"lr": 2.0}, r"lr=2\.0"),
        ({"seed": -1}, "seed=-1"),
        ({"batch_size": 0}, "batch size 0"),
    ],
)
def test_impossible_settings_are_one_clear_line(options: dict[str, Any], says: str) -> None:
    with pytest.raises(OptionError, match=says):
        classified(PAST, **options)


def test_a_part_of_the_stream_is_refused() -> None:
    events = stream(PAST)
    with pytest.raises(OptionError, match="Give the whole stream"):
        classify(pres.JODIE(events, memory_dim=4, time_dim=4), events[:1_000])


def test_values_that_training_never_came_near_do_no_harm() -> None:
    label, x = (X[:, 1] > 0).long(), X.clone()
    x[-3, 0], x[1_100, 0] = 1e12, -1e12
    found = classified(label, x=x, with_features=True, lr=1.0)
    assert found.test.auc > 0.9


def test_the_result_is_plain_values_and_a_line() -> None:
    found = classified(PAST, epochs=2)
    values = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert (values["dataset"], values["model"], values["labels"]) == ("planted", "JODIE", "binary")
    assert values["test"]["auc"] == found.test.auc and len(values["history"]) == 2
    assert "decoder" not in values
    assert repr(found).startswith("Classification by JODIE on planted: test ROC-AUC 0.")
    assert f"{found.test.positives} positives of 225 events" in repr(found)


def test_the_embedded_stream_is_classified_by_every_model() -> None:
    events = pres.load("synthetic", num_events=1_500)
    for make in (pres.TGN, pres.JODIE, pres.APAN):
        found = pres.classify(make(events, memory_dim=8, time_dim=4), events, epochs=2)
        assert 0 <= found.test.auc <= 1 and found.model == make.__name__
