"""The segmented scan by itself: one batch of a real stream, forward and backward, on one thread."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

import pres
from benchmarks.timing import median_seconds
from pres.data.incidence import incidences
from pres.nn.scan import linear_scan

B, D, ROUNDS = 3_200, 100, 31
LOOPED = "a loop over ranks"


def run() -> None:
    """Print milliseconds, and how many times as long a loop over ranks takes."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    print(f"\nsegmented scan, d = {D}, one thread, median of {ROUNDS} interleaved rounds (ms)")
    print(f"{'rows of':<36}{'rows':>7}{'longest':>9}{'forward':>9}{'both':>7}{'loop, both':>12}")
    for name, first, rows in _cases():
        keep, add, initial = _values(rows, len(first))
        longest = int(torch.diff(first, append=torch.tensor([rows])).max())
        given = keep, add, initial, first
        work: dict[str, Callable[[], object]] = {
            "forward": partial(_forward, *given),
            "both": partial(_both, linear_scan, *given),
        }
        if longest < 1_000:
            work[LOOPED] = partial(_both, by_rank, *given)
        spent = {each: 1_000 * value for each, value in median_seconds(work, ROUNDS).items()}
        looped = f"{spent[LOOPED]:>12.1f}" if LOOPED in spent else f"{'–':>12}"
        print(f"{name:<36}{rows:>7,}{longest:>9,}{spent['forward']:>9.2f}{spent['both']:>7.2f}{looped}")
    torch.set_num_threads(threads)


def _cases() -> list[tuple[str, Tensor, int]]:
    """Return names, where chains begin, and how many rows there are."""
    found: list[tuple[str, Tensor, int]] = []
    for stream in ("wikipedia", "mooc"):
        if not os.environ.get("PRES_DATA"):
            print(f"{stream}: skipped, PRES_DATA is not set")
            continue
        events = pres.load(stream)
        batches = [events[start : start + B] for start in range(0, len(events) - B + 1, B)]
        starts = [_chains(batch) for batch in batches]
        longest = [int(torch.diff(first, append=torch.tensor([rows])).max()) for first, rows in starts]
        middle = sorted(range(len(starts)), key=longest.__getitem__)[len(starts) // 2]
        found.append((f"{stream}, the median longest chain", *starts[middle]))
        found.append((f"{stream}, the longest chain", *starts[longest.index(max(longest))]))
    found.append(("all nodes distinct", torch.arange(2 * B), 2 * B))
    found.append(("a single chain", torch.zeros(1, dtype=torch.int64), 2 * B))
    return found


def _chains(batch: pres.EventStream) -> tuple[Tensor, int]:
    """Return where the chain of each node begins among a batch's incidences, and how many there are."""
    nodes = incidences(batch.src, batch.dst, batch.num_nodes).nodes
    return torch.diff(nodes, prepend=nodes.new_tensor([-1])).nonzero().squeeze(1), len(nodes)


def _values(rows: int, chains: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return gates between 0 and 1, what is added, and states before."""
    draw = torch.Generator().manual_seed(0)
    keep = torch.rand(rows, D, generator=draw)
    add, initial = (torch.randn(n, D, generator=draw) for n in (rows, chains))
    return keep.requires_grad_(), add.requires_grad_(), initial


@torch.no_grad()
def _forward(keep: Tensor, add: Tensor, initial: Tensor, first: Tensor) -> Tensor:
    return linear_scan(keep, add, initial, first)


def _both(scan: Callable[..., Tensor], *given: Tensor) -> None:
    torch.autograd.backward(scan(*given).sum())


def by_rank(keep: Tensor, add: Tensor, initial: Tensor, first: Tensor) -> Tensor:
    """Return the same states by a loop: the first row of every chain, then all second ones, and so on."""
    lengths = torch.diff(first, append=first.new_tensor([len(add)]))
    order = torch.argsort(lengths, descending=True)
    lengths, start, state = lengths[order], first[order], initial[order]
    places, states = [], []
    for rank in range(int(lengths[0])):
        going = int((lengths > rank).sum())
        row = start[:going] + rank
        state = torch.addcmul(add[row], keep[row], state[:going])
        places.append(row)
        states.append(state)
    return torch.cat(states)[torch.argsort(torch.cat(places))]
