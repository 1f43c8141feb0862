"""Zeros that take no room before they are written to."""

import platform
from pathlib import Path

import pytest
import torch

from pres.allocation import LARGE, zeros_when_used
from pres.nn import Memory


@pytest.mark.parametrize("rows", [3, LARGE // 4])
def test_zeros_are_zeros_to_write_to(rows: int) -> None:
    found = zeros_when_used(rows, 2)
    assert found.shape == (rows, 2) and found.dtype == torch.float32 and not found.any()
    found[1] = 5
    assert found.sum() == 10 and found.clone().double().sum() == 10


@pytest.mark.skipif(platform.system() != "Linux", reason="reads /proc")
def test_a_state_takes_room_where_something_was_written() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    before = resident()
    state = Memory(500_000, 32, 0, slots=4, start=torch.tensor(0))
    small = 500_000 * (4 * 16 + 7 * 8)  # times, events and counts
    assert state.memory.nbytes + state.mail.nbytes > 500e6
    nodes = torch.arange(0, 500_000, 1_000)
    state.commit(nodes, torch.ones(500, 32), nodes)
    state.deliver(nodes, torch.ones(500, 64), nodes, nodes)
    assert resident() - before < small + 50e6
    state.reset()
    assert resident() - before < small + 50e6
    assert not state.memory[nodes].any() and not state.mail[nodes].any()
