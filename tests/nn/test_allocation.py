"""Zeros that take no room before they are written to."""

import errno
import mmap
import os
import re
from pathlib import Path

import pytest
import torch

from pres.nn import Memory
from pres.nn.allocation import LARGE, zeros_when_used

SMAPS = Path("/proc/self/smaps")


@pytest.mark.parametrize("rows", [3, LARGE // 4])
def test_zeros_are_zeros_to_write_to(rows: int) -> None:
    found = zeros_when_used(rows, 2)
    assert found.shape == (rows, 2) and found.dtype == torch.float32 and not found.any()
    found[1] = 5
    assert found.sum() == 10 and found.clone().double().sum() == 10


def test_a_kernel_without_large_pages_gives_zeros_too(monkeypatch: pytest.MonkeyPatch) -> None:
    class Without(mmap.mmap):
        def madvise(self, *given: object) -> None:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr("pres.nn.allocation.mmap.mmap", Without)
    assert not zeros_when_used(LARGE // 4, 2).any()


def resident(block: torch.Tensor) -> int:
    """How many bytes the mappings that hold a tensor have in memory."""
    begin, end, found, counts = block.data_ptr(), block.data_ptr() + block.nbytes, 0, False
    for line in SMAPS.read_text().splitlines():
        if mapping := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            first, last = (int(edge, 16) for edge in mapping.groups())
            counts = first < end and begin < last
        elif counts and line.startswith("Rss:"):
            found += 1024 * int(line.split()[1])
    return found


@pytest.mark.skipif(not SMAPS.exists(), reason="reads what Linux tells of a process's mappings")
def test_a_state_takes_room_where_something_was_written() -> None:
    state = Memory(500_000, 32, 0, slots=4, start=torch.tensor(0))
    assert state.memory.nbytes + state.mail.nbytes > 500e6
    nodes = torch.arange(0, 500_000, 1_000)
    state.write(nodes, torch.ones(500, 32), nodes)
    state.write_mail(nodes, torch.ones(500, 64), nodes, nodes)
    two_pages = 2 * mmap.PAGESIZE  # at most, of each of the 500 nodes
    for block in (state.memory, state.mail):
        assert 500 * 32 * 4 <= resident(block) <= 2 * 500 * two_pages + 20e6  # perhaps of both in one mapping
    state.reset()
    for block in (state.memory, state.mail):
        assert resident(block) <= 2 * 500 * two_pages + 20e6
    assert not state.memory[nodes].any() and not state.mail[nodes].any()
