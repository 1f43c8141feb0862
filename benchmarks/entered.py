"""The files and functions that one training step enters, in the order in which it enters them.

python -m benchmarks.entered
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import torch

import pres
from pres.models.registry import build_model
from pres.training.scan_step import prepare_scan, train_on_scan
from pres.training.step import prepare, train_on_batch

SOURCE = Path(pres.__file__).parent
CASES = {"tgn": {}, "tgn scan": {"cell": "scan"}}


def entered(step: Callable[[], object]) -> dict[str, list[str]]:
    """Return the functions of `pres` that a call enters, by file; lambdas and comprehensions do not count."""
    found: dict[CodeType, None] = {}

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            found.setdefault(frame.f_code)

    sys.setprofile(note)
    try:
        step()
    finally:
        sys.setprofile(None)
    by_file: dict[str, list[str]] = {}
    for code in found:
        path = Path(code.co_filename)
        if path.is_relative_to(SOURCE) and not code.co_name.startswith("<"):
            by_file.setdefault(str(path.relative_to(SOURCE)), []).append(code.co_qualname)
    return by_file


def step_of(model: str, **options: Any) -> Callable[[], object]:
    """Return a step on the second batch of a small stream: its nodes have mail already."""
    events = pres.load("synthetic")[:600]
    made = build_model(model, events, options).train()
    scans = made.scans
    optimiser = torch.optim.Adam(made.parameters(), lr=1e-3)
    negatives = torch.randint(events.num_nodes, (600, 1), generator=torch.Generator().manual_seed(0))

    def step(start: int, stop: int) -> None:
        batch, drawn = events[start:stop], negatives[start:stop]
        if scans:
            train_on_scan(made, prepare_scan(made, batch, drawn, staleness=100), optimiser)
        else:
            train_on_batch(made, prepare(made, batch, drawn), optimiser)

    step(0, 300)
    return lambda: step(300, 600)


def main() -> None:
    for name, options in CASES.items():
        by_file = entered(step_of(name.split()[0], **options))
        functions = sum(len(own) for own in by_file.values())
        print(f"{name}: {len(by_file)} files, {functions} functions")
        for path, own in by_file.items():
            print(f"  {path}: {', '.join(own)}")


if __name__ == "__main__":
    main()
