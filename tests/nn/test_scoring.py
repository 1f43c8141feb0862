"""Scores of pairs, by hand and as autograd has them."""

import torch
from torch import Tensor

from pres.nn import LinkDecoder
from pres.nn.scoring import scores, scores_plainly

B, MET, DIM = 4, 3, 5


def inputs() -> tuple[Tensor, list[Tensor]]:
    torch.manual_seed(0)
    h = torch.randn(B * (1 + MET), DIM, dtype=torch.float64).requires_grad_()
    return h, list(LinkDecoder(DIM).double().parameters())


def test_results_and_gradients_are_those_of_autograd() -> None:
    h, weights = inputs()
    found, expected = (way(h, B, MET, *weights) for way in (scores, scores_plainly))
    assert torch.allclose(found, expected, atol=1e-14)
    direction = torch.randn(B, MET, dtype=torch.float64)
    by_hand, plain = (torch.autograd.grad(result, [h, *weights], direction) for result in (found, expected))
    for one, other in zip(by_hand, plain, strict=True):
        assert one.shape == other.shape
        assert torch.allclose(one, other, atol=1e-13)


def test_a_pair_is_scored_as_the_decoder_scores_it_alone() -> None:
    torch.manual_seed(0)
    decoder, h = LinkDecoder(DIM), torch.randn(B * (1 + MET), DIM)
    found = decoder.in_rows(h, B, MET)
    for i in range(B):
        for j in range(MET):
            assert torch.allclose(found[i, j], decoder(h[i], h[B + i * MET + j]), atol=1e-6)


def test_the_gradient_has_a_gradient() -> None:
    h, weights = inputs()
    assert torch.autograd.gradgradcheck(lambda *given: scores(given[0], B, MET, *given[1:]), (h, *weights))


def test_of_no_pairs_there_are_no_scores() -> None:
    decoder, h = LinkDecoder(DIM), torch.empty(0, DIM).requires_grad_()
    found = decoder.in_rows(h, 0, MET)
    assert found.shape == (0, MET)
    torch.autograd.backward(found.sum())
    assert decoder.src.weight.grad is not None
    assert not decoder.src.weight.grad.any()
