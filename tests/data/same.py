"""What it means that two streams are the same."""

import torch

from pres.data.stream import COLUMNS, EventStream


def assert_same(found: EventStream, wanted: EventStream) -> None:
    """Every column, to the bit, and everything that is said about them but where they came from."""
    for name in COLUMNS:
        ours, theirs = getattr(found, name), getattr(wanted, name)
        assert (ours is None) == (theirs is None), name
        if ours is not None:
            assert ours.dtype == theirs.dtype and torch.equal(ours, theirs), name
    for name in ("num_nodes", "num_src", "directed", "offset"):
        assert getattr(found, name) == getattr(wanted, name), name
    for name in ("name", "variant", "time_unit", "dates", "feature_names", "category_names"):
        assert getattr(found.info, name) == getattr(wanted.info, name), name
    # As text: a category may be NaN, which equals nothing.
    assert repr(found.info.category_levels) == repr(wanted.info.category_levels)
    for side in ("src_values", "dst_values"):
        ours, theirs = getattr(found.ids, side), getattr(wanted.ids, side)
        assert (ours is None) == (theirs is None)
        if ours is not None:
            assert ours.dtype == theirs.dtype and ours.to_list() == theirs.to_list()
