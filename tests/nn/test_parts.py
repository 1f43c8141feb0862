"""Parts of an axis, and the rankings of all of them at once."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from pres.nn.parts import Parts, distinct_of_each, rankings
from pres.nn.ranking import ranking

CPU = torch.device("cpu")


def test_parts_know_where_they_are() -> None:
    parts = Parts([2, 0, 3], CPU)
    assert parts.starts.tolist() == [0, 2, 2]
    assert parts.number.tolist() == [0, 0, 2, 2, 2]
    assert [part.tolist() for part in parts.split(torch.arange(5))] == [[0, 1], [], [2, 3, 4]]
    assert Parts.of_numbers(parts.number, 4).lengths == [2, 0, 3, 0]


@given(st.lists(st.lists(st.integers(0, 12), max_size=12), min_size=1, max_size=6))
def test_rankings_are_those_of_each_part(given_parts: list[list[int]]) -> None:
    values = [torch.tensor(part, dtype=torch.int64) for part in given_parts]
    found = rankings(torch.cat(values), Parts([len(part) for part in values], CPU))
    assert found.values.lengths == [len(set(part)) for part in given_parts]
    for each, own in zip(found.each(), values, strict=True):
        alone = ranking(own)
        for field in ("values", "place", "order", "starts"):
            assert torch.equal(getattr(each, field), getattr(alone, field)), field


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 12)), max_size=30))
def test_distinct_values_of_each_part_whatever_the_order(pairs: list[tuple[int, int]]) -> None:
    number, values = (torch.tensor([pair[i] for pair in pairs], dtype=torch.int64) for i in (0, 1))
    found, parts, place = distinct_of_each(values, number, 4)
    expected = [sorted({value for part, value in pairs if part == i}) for i in range(4)]
    assert [own.tolist() for own in parts.split(found)] == expected
    read = [expected[part][at] for (part, _), at in zip(pairs, place.tolist(), strict=True)]
    assert read == values.tolist()
    alone, whole, at = distinct_of_each(values, None, 1)
    assert torch.equal(alone, torch.unique(values)) and whole.lengths == [len(alone)]
    assert torch.equal(alone[at], values)
