from itertools import chain, pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pres.errors import OptionError
from pres.sampling import PendingProfile, TemporalBatches, levels, pending_sets
from tests.oracles.sampling import Event, fixed_edges, level_of_events, pending_set, updates_per_node
from tests.streams import as_stream, small_streams


@given(events=small_streams(), size=st.integers(1, 45))
def test_pending_profile_equals_brute_force(events: list[Event], size: int) -> None:
    stream = as_stream(events)
    edges = fixed_edges(len(events), size)
    batches = [events[start:stop] for start, stop in pairwise(edges)]
    profile = PendingProfile.of(stream, torch.tensor(edges))

    sizes = [[len(pending_set(batch, i)) for i in range(len(batch))] for batch in batches]
    assert profile.sizes.tolist() == list(chain.from_iterable(sizes))
    updates = {
        (node, k): count for k, batch in enumerate(batches) for node, count in updates_per_node(batch).items()
    }
    found = zip(profile.nodes.tolist(), profile.batches.tolist(), profile.updates.tolist(), strict=True)
    assert {(node, batch): count for node, batch, count in found} == updates
    chains = [level_of_events(batch) for batch in batches]
    assert profile.levels.tolist() == list(chain.from_iterable(chains))

    lost = [sum(count - 1 for count in updates_per_node(batch).values()) for batch in batches]
    per_batch = profile.per_batch
    assert per_batch["events"].tolist() == [len(batch) for batch in batches]
    assert per_batch["pending"].tolist() == [sum(line) for line in sizes]
    assert per_batch["lost_updates"].tolist() == lost
    assert per_batch["levels"].tolist() == [max(line) + 1 for line in chains]

    load = profile.load()
    flat = list(chain.from_iterable(sizes))
    assert load.batches == len(batches)
    assert load.largest_batch == max(len(batch) for batch in batches)
    assert load.events_with_pending == sum(count > 0 for count in flat) / len(flat)
    assert load.mean_pending == sum(flat) / len(flat)
    assert load.largest_pending == max(flat)
    assert load.lost_updates == sum(lost) / sum(updates.values())
    assert load.longest_chain == max(max(line) for line in chains) + 1
    assert load.mean_level_width == len(events) / sum(max(line) + 1 for line in chains)


@given(events=small_streams(), start=st.integers(0, 20), size=st.integers(1, 20))
def test_explicit_pending_sets_equal_brute_force(events: list[Event], start: int, size: int) -> None:
    start = min(start, len(events) - 1)
    batch = events[start : start + size]
    offsets, members = pending_sets(as_stream(events)[start : start + size])
    found = [members[offsets[i] : offsets[i + 1]].tolist() for i in range(len(batch))]
    assert found == [pending_set(batch, i) for i in range(len(batch))]


@given(events=small_streams(), size=st.integers(1, 45))
def test_no_two_events_of_a_level_share_a_node(events: list[Event], size: int) -> None:
    stream = as_stream(events)
    batches = TemporalBatches(stream, size)
    found = levels(stream, batches.edges)
    for batch in batches:
        own = found[batch.offset : batch.offset + len(batch)]
        for level in sorted(set(own.tolist())):
            at = (own == level).nonzero().squeeze(1).tolist()
            ends = [{int(batch.src[i]), int(batch.dst[i])} for i in at]
            assert sum(len(pair) for pair in ends) == len(set().union(*ends))


def test_a_worked_example() -> None:
    # two events of node 0, then one that shares both nodes with the first, then a stranger
    stream = as_stream([(0, 1, 1.0), (0, 2, 2.0), (1, 0, 3.0), (3, 4, 4.0)], isolated=0)
    profile = PendingProfile.of(stream, torch.tensor([0, 4]))
    assert profile.sizes.tolist() == [0, 1, 2, 0]
    assert profile.levels.tolist() == [0, 1, 2, 0]
    assert profile.updates.tolist() == [3, 2, 1, 1, 1]
    assert profile.load().lost_updates == 3 / 8


def test_ties_are_not_pending_on_each_other_but_keep_their_order_in_levels() -> None:
    stream = as_stream([(0, 1, 1.0), (0, 1, 1.0), (0, 1, 2.0)], isolated=0)
    profile = PendingProfile.of(stream, torch.tensor([0, 3]))
    assert profile.sizes.tolist() == [0, 0, 2]
    assert profile.levels.tolist() == [0, 1, 2]


def test_edges_that_do_not_cut_the_stream_are_refused() -> None:
    stream = as_stream([(0, 1, 1.0), (0, 2, 2.0), (1, 2, 3.0)])
    for edges in ([0, 2], [1, 3], [0, 4], [0, 2, 1, 3], []):
        for profile in (PendingProfile.of, levels):
            with pytest.raises(OptionError, match="do not cut 3 events"):
                profile(stream, torch.tensor(edges, dtype=torch.int64))


def test_an_empty_stream_has_no_load() -> None:
    empty = as_stream([(0, 1, 1.0)])[:0]
    load = PendingProfile.of(empty, torch.tensor([0])).load()
    assert (load.batches, load.longest_chain, load.events_with_pending, load.mean_level_width) == (0, 0, 0, 0)
