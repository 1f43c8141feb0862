import torch
from hypothesis import given
from hypothesis import strategies as st

from pres.nn.ranking import ranking


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
