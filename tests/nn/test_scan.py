"""The segmented scan against a loop over rows."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from benchmarks.counting import counted
from pres.nn.scan import gated_scan, linear_scan, sums_of_rows
from tests.oracles.scan import states_one_by_one

D = 3


def chains(lengths: Sequence[int], seed: int = 0, dtype: torch.dtype = torch.float64) -> tuple[Tensor, ...]:
    """Return rows of chains of such lengths, what they begin with, and where."""
    draw = torch.Generator().manual_seed(seed)
    m, c = sum(lengths), len(lengths)
    keep = torch.rand(m, D, generator=draw, dtype=torch.float64)
    add, initial = (torch.randn(n, D, generator=draw, dtype=torch.float64) for n in (m, c))
    first = torch.tensor([sum(lengths[:i]) for i in range(c)], dtype=torch.int64)
    return keep.to(dtype), add.to(dtype), initial.to(dtype), first


@pytest.mark.parametrize(
    "lengths",
    [[257], [1] * 64, [1], [2], [3], [5, 1, 1, 8, 2], [], [64, 64], [1, 100], [100, 1]],
    ids=["one node", "all distinct", "1", "2", "3", "mixed", "none", "even", "last long", "first long"],
)
def test_states_equal_those_of_a_loop(lengths: list[int]) -> None:
    keep, add, initial, first = chains(lengths)
    found = linear_scan(keep, add, initial, first)
    torch.testing.assert_close(
        found, states_one_by_one(keep, add, initial, first.tolist()), rtol=1e-12, atol=1e-12
    )


@settings(max_examples=60, deadline=None)
@given(lengths=st.lists(st.integers(1, 40), min_size=1, max_size=30), seed=st.integers(0, 10_000))
def test_gradients_equal_those_of_a_loop(lengths: list[int], seed: int) -> None:
    *rows, first = chains(lengths, seed)
    weight = torch.randn(sum(lengths), D, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    found, expected = ([each.clone().requires_grad_() for each in rows] for _ in range(2))
    ours = (linear_scan(found[0], found[1], found[2], first) * weight).sum()
    slow = (states_one_by_one(expected[0], expected[1], expected[2], first.tolist()) * weight).sum()
    gradients = torch.autograd.grad(ours, found), torch.autograd.grad(slow, expected)
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("lengths", [[5], [1, 1, 1], [3, 1, 4], [2], [1]])
def test_gradients_of_both_orders_are_those_of_differences(lengths: list[int]) -> None:
    keep, add, initial, first = chains(lengths)
    leaves = tuple(each.requires_grad_() for each in (keep, add, initial))

    def states(keep: Tensor, add: Tensor, initial: Tensor) -> Tensor:
        return linear_scan(keep, add, initial, first)

    assert torch.autograd.gradcheck(states, leaves)
    assert torch.autograd.gradgradcheck(states, leaves)


def test_what_is_not_strictly_between_zero_and_one_is_kept_too() -> None:
    keep, add, initial, first = chains([9, 4, 6])
    keep = 4 * keep - 2
    keep[3] = 0
    keep[7] = 1
    expected = states_one_by_one(keep, add, initial, first.tolist())
    torch.testing.assert_close(linear_scan(keep, add, initial, first), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kept", [1e-30, 1e-20, 1e-3, 0.5])
def test_products_too_small_for_a_number_lose_nothing(kept: float) -> None:
    keep, add, initial, first = chains([400, 30], dtype=torch.float32)
    keep = torch.full_like(keep, kept)
    exact = states_one_by_one(keep.double(), add.double(), initial.double(), first.tolist())
    torch.testing.assert_close(linear_scan(keep, add, initial, first), exact.float(), rtol=1e-5, atol=1e-6)


def test_half_precision_is_scanned_in_single() -> None:
    keep, add, initial, first = chains([300], dtype=torch.bfloat16)
    found = linear_scan(keep, add, initial, first)
    expected = states_one_by_one(keep.double(), add.double(), initial.double(), first.tolist())
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected.float(), rtol=1e-4, atol=1e-5)


def test_no_chain_sees_another() -> None:
    keep, add, initial, first = chains([4, 7, 3])
    before = linear_scan(keep, add, initial, first)
    changed = add.clone()
    changed[4:11] += 100
    after = linear_scan(keep, changed, initial, first)
    assert torch.equal(after[:4], before[:4]) and torch.equal(after[11:], before[11:])
    assert not torch.isclose(after[4:11], before[4:11]).any()


def test_later_rows_change_no_state_before_them() -> None:
    keep, add, initial, first = chains([40])
    before = linear_scan(keep, add, initial, first)
    for row in (0, 17, 18, 39):
        changed = add.clone()
        changed[row:] += 1
        assert torch.equal(linear_scan(keep, changed, initial, first)[:row], before[:row])


def _operations(lengths: Sequence[int]) -> int:
    keep, add, initial, first = chains(lengths, dtype=torch.float32)
    for each in (keep, add, initial):
        each.requires_grad_()
    return counted(lambda: torch.autograd.backward(linear_scan(keep, add, initial, first).sum())).operations


def test_operations_grow_by_a_level_where_rows_double() -> None:
    """They do so whatever chains the rows are of: neither by row, nor by chain, nor by rank."""
    small, large, single = (_operations(lengths) for lengths in ([8] * 100, [8] * 1_600, [12_800]))
    assert large == single
    assert 0 < large - small <= 30 * 4  # 4 levels more
    assert small < 350


def test_gates_that_are_shut_have_no_gradient_of_rounding() -> None:
    draw = torch.Generator().manual_seed(5)
    gates, begin = torch.randn(64, 2, generator=draw), torch.randn(1, 1, generator=draw)
    gates[::2, 0] = -60.0  # z is 1e-26 there
    gates.requires_grad_()
    torch.autograd.backward(gated_scan(gates.clone(), begin, torch.tensor([0])).sum())
    assert gates.grad is not None
    assert float(gates.grad[::2, 1].abs().max()) < 1e-20 and float(gates.grad[1::2, 1].abs().max()) > 1e-3


def test_a_scan_of_gates_is_a_linear_one_with_its_gradients() -> None:
    draw = torch.Generator().manual_seed(6)
    first = torch.tensor([0, 5, 6, 30])
    gates, begin, weight = (
        torch.randn(n, d, generator=draw, dtype=torch.float64) for n, d in ((77, 6), (4, 3), (77, 3))
    )
    given = gates.requires_grad_(), begin.requires_grad_()
    update, new = gates[:, :3].sigmoid(), 2 * gates[:, 3:].sigmoid() - 1
    expected = linear_scan(1 - update, update * new, begin, first)
    found = gated_scan(gates.clone(), begin, first)
    torch.testing.assert_close(found, expected)
    of_found, of_expected = (torch.autograd.grad((each * weight).sum(), given) for each in (found, expected))
    torch.testing.assert_close(of_found, of_expected)


def test_sums_of_rows_are_those_of_copies_with_their_gradients() -> None:
    draw = torch.Generator().manual_seed(2)
    tables = [torch.randn(n, 3, generator=draw, dtype=torch.float64).requires_grad_() for n in (4, 1, 6)]
    places = [torch.randint(0, len(table), (9,), generator=draw) for table in tables]

    def summed(*tables: Tensor) -> Tensor:
        return sums_of_rows(*zip(tables, places, strict=True))

    copies = [table[place] for table, place in zip(tables, places, strict=True)]
    torch.testing.assert_close(summed(*tables), copies[0] + copies[1] + copies[2])
    assert torch.autograd.gradcheck(summed, tables) and torch.autograd.gradgradcheck(summed, tables)
