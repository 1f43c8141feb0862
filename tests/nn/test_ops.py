"""Index arithmetic against plain loops."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from pres.nn.ops import Asked, Slots, ranking


@given(st.lists(st.integers(0, 40), max_size=60), st.sampled_from([1, 2**20, 2**57]))
def test_a_ranking_is_what_sorting_and_looking_up_find(values: list[int], scale: int) -> None:
    given_values = torch.tensor([value * scale for value in values], dtype=torch.int64)
    found = ranking(given_values)
    distinct = sorted(set(given_values.tolist()))
    assert found.values.tolist() == distinct
    assert found.place.tolist() == [distinct.index(value) for value in given_values.tolist()]
    ends = [*found.starts.tolist(), len(values)]
    for i, value in enumerate(distinct):
        where = [place for place, other in enumerate(given_values.tolist()) if other == value]
        assert found.order[ends[i] : ends[i + 1]].tolist() == where


def test_places_have_the_shape_of_what_is_ranked() -> None:
    given_values = torch.tensor([[5, 3], [3, 9]])
    found = ranking(given_values)
    assert torch.equal(found.values[found.place], given_values)


CPU = torch.device("cpu")
ROWS = st.integers(1, 4).flatmap(
    lambda k: st.lists(st.lists(st.booleans(), min_size=k, max_size=k), min_size=1, max_size=9)
)


def lists_of(rows: list[list[bool]]) -> list[list[int]]:
    """The positions among all slots that each query's filled ones have."""
    k = len(rows[0])
    return [[q * k + i for i, is_filled in enumerate(row) if is_filled] for q, row in enumerate(rows)]


@given(ROWS)
def test_slots_are_packed_query_by_query(rows: list[list[bool]]) -> None:
    slots, expected = Slots.of(torch.tensor(rows)), lists_of(rows)
    assert slots.filled.tolist() == [at for held in expected for at in held]
    assert slots.query.tolist() == [q for q, held in enumerate(expected) for _ in held]
    assert slots.starts.tolist() == [sum(len(held) for held in expected[:q]) for q in range(len(rows))]
    assert len(slots) == sum(map(sum, rows)) and slots.full == all(map(all, rows))


@given(ROWS)
def test_what_is_packed_and_padded_again_is_0_where_slots_are_empty(rows: list[list[bool]]) -> None:
    mask = torch.tensor(rows)
    slots, values = Slots.of(mask), torch.arange(1.0, 2 * mask.numel() + 1).view(2, *mask.shape)
    packed = slots.pack(values)
    assert torch.equal(packed, torch.stack([value[mask] for value in values]))
    assert torch.equal(slots.pad(packed), values * mask)


@given(ROWS, st.data())
def test_some_queries_hold_what_they_held(rows: list[list[bool]], data: st.DataObject) -> None:
    slots, expected = Slots.of(torch.tensor(rows)), lists_of(rows)
    queries = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=12))
    held, starts = slots.held_by(torch.tensor(queries, dtype=torch.int64))
    assert slots.filled[held].tolist() == [at for q in queries for at in expected[q]]
    assert starts.tolist() == [sum(len(expected[q]) for q in queries[:i]) for i in range(len(queries))]


def test_one_slot_for_each_is_a_full_mask() -> None:
    each, of_mask = Slots.one_each(3, CPU), Slots.of(torch.ones(3, 1, dtype=torch.bool))
    for field in ("mask", "filled", "query", "starts"):
        assert torch.equal(getattr(each, field), getattr(of_mask, field)), field


def test_slots_are_found_by_who_asks() -> None:
    slots = Slots.of(torch.tensor([[True, True], [False, False], [True, False], [False, True]]))
    asked = Asked(slots, torch.tensor([4, 2, 1, 4]))
    assert asked.of_slots.tolist() == [4, 4, 1, 4]
    order, starts = asked.slots_by_asker
    assert order.tolist() == [2, 0, 1, 3]  # of 1, of 2 none, of 4
    assert starts.tolist() == [0, 1, 1]
    alone = Asked(slots)
    assert alone.of_slots.tolist() == slots.query.tolist() == [0, 0, 2, 3]
