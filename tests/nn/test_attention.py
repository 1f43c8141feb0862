"""Attention without keys, values or copies, against a key and a value for every slot."""

from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor

from pres.nn.attention import attend, attend_plainly
from pres.nn.ops import Asked, Picked, Slots

CASES = list(product([False, True], [False, True], [1, 2]))


def make(
    shared: bool, dropped: bool, heads: int, dtype: torch.dtype = torch.float64
) -> tuple[list[Tensor], Any]:
    generator = torch.Generator().manual_seed(heads)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=dtype).requires_grad_()

    q, k, dim = 9, 4, 6
    m = 5 if shared else q
    tables = [normal(7, 3), normal(20, 6)]
    weights = [normal(m, dim), normal(dim, 9), normal(dim, 9), normal(dim)]
    mask = torch.rand(q, k, generator=generator) > 0.3
    mask[3] = False  # a query with nothing to read
    slots = Slots.of(mask)
    places = [torch.randint(0, len(table), (len(slots),), generator=generator) for table in tables]
    rows = [Picked(table, place) for table, place in zip(tables, places, strict=True)]
    asker = torch.randint(0, m, (q,), generator=generator) if shared else None
    keep = (torch.rand(heads, q, k, generator=generator) > 0.2).to(dtype) / 0.8 if dropped else None
    return [*weights, *tables], (rows, Asked(slots, asker), heads, keep)


def both(inputs: list[Tensor], rest: Any) -> tuple[Tensor, Tensor]:
    query, key, value, bias = inputs[:4]
    return attend(query, key, value, bias, *rest), attend_plainly(query, key, value, bias, *rest)


@pytest.mark.parametrize(("shared", "dropped", "heads"), CASES)
def test_results_and_gradients_are_those_of_keys_and_values(shared: bool, dropped: bool, heads: int) -> None:
    inputs, rest = make(shared, dropped, heads)
    found, expected = both(inputs, rest)
    assert torch.allclose(found, expected, atol=1e-12)
    assert torch.equal(found[3], torch.zeros(6, dtype=torch.float64))
    direction = torch.randn(found.shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    fast, plain = (torch.autograd.grad(h, inputs, direction) for h in (found, expected))
    for one, other in zip(fast, plain, strict=True):
        assert torch.allclose(one, other, atol=1e-11)


@pytest.mark.parametrize("shared", [False, True])
def test_the_gradient_has_a_gradient_also_where_inputs_depend_on_each_other(shared: bool) -> None:
    inputs, rest = make(shared, False, 2)
    rows, asked, heads, keep = rest

    def second(function: object) -> tuple[Tensor, ...]:
        query = inputs[0] + inputs[4][0].sum()  # the query comes from a table, as in a model
        h = function(query, *inputs[1:4], rows, asked, heads, keep)  # type: ignore[operator]
        first = torch.autograd.grad(h.sin().sum(), inputs, create_graph=True)
        return torch.autograd.grad(sum((g * g).sum() for g in first), inputs)  # type: ignore[arg-type]

    for one, other in zip(second(attend), second(attend_plainly), strict=True):
        assert torch.allclose(one, other, atol=1e-9)


def test_in_float32_a_step_agrees_to_five_digits() -> None:
    inputs, rest = make(True, True, 2, torch.float32)
    found, expected = both(inputs, rest)
    assert torch.allclose(found, expected, atol=1e-5)
    fast, plain = (torch.autograd.grad(h.sum(), inputs) for h in (found, expected))
    for one, other in zip(fast, plain, strict=True):
        assert torch.allclose(one, other, rtol=1e-4, atol=1e-5)
